"""A log is written into a work tree, and git is told to leave it alone without a byte of anybody else's changed."""

import os
import subprocess
from pathlib import Path

import pytest

from agtmux.probe import worktree_logs


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path / "tree"], check=True)
    return (tmp_path / "tree").resolve()


def unseen(tree: Path) -> bool:
    done = subprocess.run(["git", "-C", tree, "status", "--porcelain"], check=True, capture_output=True)
    return done.stdout == b""


def write(tree: Path) -> str:
    return worktree_logs.write(str(tree), "a.md", b"x", 10)


@pytest.mark.parametrize(
    "before",
    [
        b"", b"*.o\n", b"*.o", b"*.o\r\n", b"\xff\xfe\n", b"# leave /.agtmux/ to me\n",
        b"!/.agtmux/\n", b"build /.agtmux/\n",
    ],
)  # fmt: skip
def test_what_was_excluded_stays_to_the_byte(tree: Path, before: bytes):
    exclude = tree / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes(before)
    write(tree)
    after = exclude.read_bytes()
    assert after.startswith(before) and unseen(tree)
    write(tree)
    assert exclude.read_bytes() == after


@pytest.mark.parametrize("line", [b"/.agtmux/", b"/.agtmux/  ", b"/.agtmux/\r"])
def test_what_is_excluded_already_is_not_written_again(tree: Path, line: bytes):
    exclude = tree / ".git/info/exclude"
    exclude.write_bytes(b"*.o\n" + line + b"\n")
    write(tree)
    assert exclude.read_bytes() == b"*.o\n" + line + b"\n"


def test_a_repository_without_the_folder_gets_it(tree: Path):
    exclude = tree / ".git/info/exclude"
    exclude.unlink()
    exclude.parent.rmdir()
    write(tree)
    assert exclude.read_bytes() == b"/.agtmux/\n" and unseen(tree)


def test_a_list_that_is_too_long_to_be_read_is_left_alone(tree: Path):
    exclude = tree / ".git/info/exclude"
    before = b"x\n" * 600_000 + b"last"
    exclude.write_bytes(before)
    with pytest.raises(worktree_logs.LogError):
        write(tree)
    assert exclude.read_bytes() == before and not (tree / ".agtmux").exists()


@pytest.mark.parametrize("where", [".agtmux", ".agtmux/logs", ".git/info/exclude"])
def test_links_and_what_is_no_file_are_refused(tree: Path, tmp_path: Path, where: str):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/exclude").write_bytes(b"mine")
    at = tree / where
    at.parent.mkdir(exist_ok=True)
    at.unlink(missing_ok=True)
    at.symlink_to(tmp_path / "precious" / ("exclude" if at.name == "exclude" else "."))
    with pytest.raises(worktree_logs.LogError):
        write(tree)
    assert [each.name for each in (tmp_path / "precious").iterdir()] == ["exclude"]
    assert (tmp_path / "precious/exclude").read_bytes() == b"mine"


def test_a_fifo_in_its_place_holds_nobody_up(tree: Path):
    exclude = tree / ".git/info/exclude"
    exclude.unlink()
    os.mkfifo(exclude)
    with pytest.raises(worktree_logs.LogError, match="exclude"):
        write(tree)
