"""agtmux-hook is tried and not believed: it is silent by design, whatever is wrong with it."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from agtmux.doctor.here import try_hook
from agtmux.hook.compose import compose

WITHOUT_PYTHON = compose().replace("python3", "no-such-python3")


def a_hook(folder: Path, text: str, mode: int = 0o755) -> str:
    path = folder / "agtmux-hook"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_only_a_hook_that_hands_on_an_event_works(tmp_path: Path) -> None:
    assert try_hook(None).path is None
    works = try_hook(a_hook(tmp_path, compose()))
    assert (works.is_executable, works.works) == (True, True)
    for text in (WITHOUT_PYTHON, "#!/bin/sh\nexit 0\n", "#!/no/such/shell\n", ""):
        found = try_hook(a_hook(tmp_path, text))
        assert (found.is_executable, found.works) == (True, False), text[:20]
    assert not try_hook(a_hook(tmp_path, compose(), 0o644)).is_executable
    assert not try_hook(str(tmp_path / "nothing")).is_executable


def test_a_hook_works_whatever_the_umask_of_the_daemon(tmp_path: Path) -> None:
    """It sends nothing to a socket that others may write to, so the socket it is tried with is for its owner alone."""
    path = a_hook(tmp_path, compose())
    umask = os.umask(0)
    try:
        assert try_hook(path).works
    finally:
        os.umask(umask)


def test_a_hook_is_not_called_broken_where_others_could_replace_its_socket(
    short_tmp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = short_tmp / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    assert try_hook(a_hook(tmp_path, compose())).works is None


def test_a_hook_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    assert try_hook(a_hook(tmp_path, "#!/bin/sh\nexec sleep 60\n")).works is False
    assert time.monotonic() - began < 10


def test_a_hook_that_cannot_be_tried_is_not_called_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing"))
    assert try_hook(a_hook(tmp_path, compose())).works is None


def test_a_hook_is_tried_also_where_temporary_files_have_long_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert try_hook(a_hook(tmp_path, compose())).works is True
    assert list(deep.iterdir()) == []


def test_trying_a_hook_leaves_nothing_behind(tmp_path: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_tmp))
    assert try_hook(a_hook(tmp_path, compose())).works
    assert list(short_tmp.iterdir()) == []
