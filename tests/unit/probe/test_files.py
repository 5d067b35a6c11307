"""Folders that are made for somebody's settings can be entered, and what comes too late is not done."""

import os
import time
from pathlib import Path

import pytest

from agtmux.probe import files


def test_a_folder_can_be_entered_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o177)
    try:
        made = files.replace(str(tmp_path / "a" / "b" / "settings.json"), b"{}", None, 5.0)
    finally:
        os.umask(before)
    assert made == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert [Path(folder).stat().st_mode & 0o777 for folder in made] == [0o700, 0o700]


def test_what_a_slow_disk_has_written_too_late_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked has been told by then that nothing came of it."""
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    fsync = os.fsync

    def slow(handle: int) -> None:
        time.sleep(0.4)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(files.FilesError) as caught:
        files.replace(str(path), b"new", files.digest(b"old"), 0.3)
    assert caught.value.code == "E_TIMEOUT"
    with pytest.raises(files.FilesError, match="in time"):
        files.replace(str(tmp_path / "a" / "new.json"), b"new", None, 0.3)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
