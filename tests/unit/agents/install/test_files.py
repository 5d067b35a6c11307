"""Replacing other people's files: all or nothing, only what was read, and nothing left in the folder."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agtmux.agents.install.files import LocalFiles
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.excerpts import LeftOut
from agtmux.probe.files import MOST_BYTES, FileState
from support.histories import with_history

FILES = LocalFiles({})
OLD = FileState(b"old\r\n", 0o640)
NEW = FileState(b"new", 0o600)
ELSE = FileState(b"else", 0o640)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_bytes(b"old\r\n")
    path.chmod(0o640)
    return path


def test_a_file_is_read_with_its_mode(file: Path) -> None:
    state = FILES.read(str(file))
    assert state is not None
    assert (state.data, state.mode, state.target) == (b"old\r\n", 0o640, None)
    assert FILES.read(str(file) + "x") is None
    assert FILES.read(str(file.parent / "none" / "x")) is None


def test_a_file_is_replaced_with_its_mode_kept_and_nothing_beside_it(file: Path) -> None:
    assert FILES.replace(str(file), b"new", OLD) == []
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert names(file.parent) == ["settings.json"]


def test_a_new_file_and_its_folders_are_private_and_go_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "hooks.json"
    made = FILES.replace(str(path), b"new", None)
    assert made == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    FILES.remove(str(path), NEW, made)
    assert names(tmp_path) == []


def test_a_folder_that_was_used_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "hooks.json"
    made = FILES.replace(str(path), b"new", None)
    (tmp_path / "a" / "mine").write_text("x")
    FILES.remove(str(path), NEW, made)
    assert names(tmp_path / "a") == ["mine"]


@pytest.mark.parametrize("before", [ELSE, None])
def test_a_file_that_changed_meanwhile_is_left_alone(file: Path, before: FileState | None) -> None:
    with pytest.raises(AgtmuxError, match="try again") as caught:
        FILES.replace(str(file), b"new", before)
    assert caught.value.code is ErrorCode.PRECONDITION_FAILED
    with pytest.raises(AgtmuxError):
        FILES.remove(str(file), ELSE, [])
    assert file.read_bytes() == b"old\r\n"
    assert names(file.parent) == ["settings.json"]


def test_a_file_that_vanished_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(AgtmuxError):
        FILES.replace(str(tmp_path / "a" / "x"), b"new", OLD)
    assert names(tmp_path) == []


def test_a_symbolic_link_stays_one_and_the_file_behind_it_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file.rename(tmp_path / "real" / "claude.json")
    file.symlink_to(Path("real") / "claude.json")
    state = FILES.read(str(file))
    assert state is not None
    assert state.target == str((tmp_path / "real" / "claude.json").resolve())
    FILES.replace(str(file), b"new", OLD)
    assert file.is_symlink()
    assert (tmp_path / "real" / "claude.json").read_bytes() == b"new"
    assert names(tmp_path / "real") == ["claude.json"]


def test_a_link_to_a_file_that_is_not_there_yet_is_followed_there_and_back(tmp_path: Path) -> None:
    link = tmp_path / "settings.json"
    link.symlink_to(tmp_path / "dots" / "settings.json")
    made = FILES.replace(str(link), b"new", None)
    assert link.is_symlink()
    assert link.read_bytes() == b"new"
    FILES.remove(str(link), NEW, made)
    assert names(tmp_path) == ["settings.json"]
    assert link.is_symlink()


def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(AgtmuxError, match="leads nowhere"):
        FILES.read(str(tmp_path / "a"))


def test_a_read_only_file_is_respected(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(AgtmuxError, match="read-only"):
        FILES.replace(str(file), b"new", OLD)
    with pytest.raises(AgtmuxError, match="read-only"):
        FILES.remove(str(file), OLD, [])
    assert file.read_bytes() == b"old\r\n"
    assert names(file.parent) == ["settings.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_respected(file: Path) -> None:
    os.chown(file, 12345, -1)
    with pytest.raises(AgtmuxError, match="another user"):
        FILES.replace(str(file), b"new", OLD)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is in every group")
def test_the_group_of_a_file_is_kept(file: Path) -> None:
    os.chown(file, -1, 12345)
    FILES.replace(str(file), b"new", OLD)
    assert file.stat().st_gid == 12345


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(AgtmuxError, match="not a file"):
        FILES.read(str(tmp_path))
    (tmp_path / "file").write_text("x")
    with pytest.raises(AgtmuxError, match="cannot change"):
        FILES.replace(str(tmp_path / "file" / "hooks.json"), b"new", None)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(file: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, usual[1]))
    try:
        with pytest.raises(AgtmuxError, match="cannot change"):
            FILES.replace(str(file), b"larger than that", OLD)
        with pytest.raises(AgtmuxError, match="cannot change"):
            FILES.replace(str(file.parent / "a" / "b"), b"larger than that", None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert file.read_bytes() == b"old\r\n"
    assert names(file.parent) == ["settings.json"]


def test_what_a_killed_process_left_is_cleared_away(file: Path) -> None:
    (file.parent / ".settings.json.agtmux-lock").touch()
    (file.parent / ".settings.json.agtmux-abc.tmp").touch()
    FILES.replace(str(file), b"new", OLD)
    assert names(file.parent) == ["settings.json"]


def test_of_many_writers_one_wins_each_time_and_no_change_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_bytes(b"0")
    lost: list[AgtmuxError] = []

    def add() -> None:
        for _ in range(5):
            while True:
                state = FILES.read(str(path))
                assert state is not None
                try:
                    FILES.replace(str(path), b"%d" % (int(state.data) + 1), state)
                    break
                except AgtmuxError as error:
                    lost.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert path.read_bytes() == b"20"
    assert {error.code for error in lost} <= {ErrorCode.PRECONDITION_FAILED}
    assert names(tmp_path) == ["count"]


def test_what_an_agent_writes_while_a_large_file_is_put_together_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(with_history(MOST_BYTES))
    state = FILES.read(str(path), ["hooks"])
    assert state is not None and state.left_out is not None

    class Busy(LeftOut):
        def filled(self, data: bytes, source: bytes) -> list[bytes | memoryview]:
            (tmp_path / "next").write_text("{}")
            (tmp_path / "next").rename(path)
            return super().filled(data, source)

    with pytest.raises(AgtmuxError, match="something else") as caught:
        FILES.replace(str(path), state.data, state._replace(left_out=Busy(*state.left_out)))
    assert caught.value.code is ErrorCode.PRECONDITION_FAILED
    assert path.read_text() == "{}" and names(tmp_path) == ["settings.json"]


def test_nothing_of_a_large_file_can_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(with_history(MOST_BYTES))
    before = path.read_bytes()
    state = FILES.read(str(path), ["hooks"])
    assert state is not None
    with pytest.raises(AgtmuxError, match="would lose something"):
        FILES.replace(str(path), b"{}", state)
    path.write_text("{}")
    with pytest.raises(AgtmuxError, match="something else"):
        FILES.whole(str(path), state)
    path.write_bytes(before)
    FILES.replace(str(path), state.data, state)
    assert path.read_bytes() == before and names(tmp_path) == ["settings.json"]


def test_a_lock_that_is_held_for_too_long_is_an_error(file: Path) -> None:
    lock = file.parent / ".settings.json.agtmux-lock"
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(AgtmuxError) as caught:
            LocalFiles({}, limit=0.1).replace(str(file), b"new", OLD)
        assert caught.value.code is ErrorCode.TIMEOUT
        holder.communicate(b"\n", timeout=30)
    FILES.replace(str(file), b"new", OLD)
    assert names(file.parent) == ["settings.json"]
