"""What a probe does beside looking: beside it indeed, with an end to everything, and whole or not at all."""

import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from support.home import Home, wait_until
from support.probe import ProbeProcess


@pytest.fixture
def file(home: Home) -> Path:
    path = home.folder / "settings.json"
    path.write_bytes(b"old")
    return path


@pytest.fixture
def held(file: Path) -> Iterator[TextIO]:
    """The file's lock, in somebody else's hand."""
    lock = file.with_name(".settings.json.agtmux-lock")
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


def change(file: Path, limit: float = 4.0) -> dict[str, object]:
    digest = hashlib.sha256(b"old").hexdigest()
    return {"path": str(file), "data": "bmV3", "expected": digest, "mode": None, "limit": limit}


def test_what_hangs_holds_up_no_look_and_no_more_than_a_few(home: Home, file: Path, held: TextIO) -> None:
    pane = home.pane()
    probe = ProbeProcess(home)
    hanging = [probe.begin_errand("replace", **change(file)) for _ in range(16)]
    assert [row["pane_id"] for row in probe.look()["looked"]["panes"]] == [pane]
    assert "hang" in probe.errand("read", path=str(file))["declined"]["message"]
    probe.look()
    for number in hanging:
        assert probe.outcome(number)["declined"]["code"] == "E_TIMEOUT"
    assert file.read_bytes() == b"old"
    assert probe.errand("read", path=str(file))["done"]["data"] == "b2xk"


def test_what_comes_too_late_is_not_done(home: Home, file: Path) -> None:
    probe = ProbeProcess(home)
    assert probe.errand("replace", **change(file, limit=0.0))["declined"]["code"] == "E_TIMEOUT"
    assert file.read_bytes() == b"old"
    assert [path.name for path in home.folder.glob("*settings*")] == ["settings.json"]


def test_what_is_under_way_when_the_line_ends_is_finished(home: Home, file: Path, held: TextIO) -> None:
    probe = ProbeProcess(home)
    probe.begin_errand("replace", **change(file))
    probe.look()
    probe.process.stdin.close()
    probe.process.stdin = None
    fcntl.flock(held, fcntl.LOCK_UN)
    assert probe.process.wait(20) == 0
    assert file.read_bytes() == b"new"
    assert [path.name for path in home.folder.glob("*settings*")] == ["settings.json"]


def test_what_hangs_when_the_line_ends_is_not_waited_for(home: Home, file: Path, held: TextIO) -> None:
    probe = ProbeProcess(home)
    probe.begin_errand("replace", **change(file, limit=30.0))
    probe.look()
    probe.process.stdin.close()
    probe.process.stdin = None
    assert probe.process.wait(10) == 0
    assert file.read_bytes() == b"old"


def test_an_errand_that_makes_no_sense_ends_nothing(home: Home) -> None:
    probe = ProbeProcess(home)
    for about in ({}, {"path": 7}, {"path": "/x", "data": "é", "expected": None, "mode": None}, {"path": "/\0"}):
        assert probe.errand("replace", **about)["declined"]["code"] in ("E_INTERNAL", "E_CONFIG")
    probe.begin_errand("nothing that there is")
    assert probe.look()["looked"]["server"] == ""


def test_folders_shared_with_the_door_go_with_the_last_of_them(home: Home) -> None:
    """The program is put into a folder that the probe made; another probe is asked to remove it."""
    place = {"AGTMUX_STATE_DIR": str(home.folder / "a" / "state")}
    first = ProbeProcess(home, hooks=True, env=place)
    assert first.next_notice("door")["complaint"] == ""
    path = str(home.folder / "a" / "share" / "program")
    folders = first.errand("replace", path=path, data="eA==", expected=None, mode=0o700)["done"]["folders"]
    assert folders == [str(home.folder / "a"), str(home.folder / "a" / "share")]
    first.process.terminate()
    first.process.wait(20)
    second = ProbeProcess(home, hooks=True, env=place)
    assert second.next_notice("door")["complaint"] == ""
    assert second.errand("remove", path=path, expected=hashlib.sha256(b"x").hexdigest(), folders=folders)["done"] == {}
    second.process.terminate()
    second.process.wait(20)
    wait_until(lambda: not (home.folder / "a").exists(), "the folder to be gone")
