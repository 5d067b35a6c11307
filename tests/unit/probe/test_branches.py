"""Branches of real repositories, made by the real git and read without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agtmux.probe.branches import Branches

# Longer than anything is believed without looking.
LATER = 3.5
MAIN = b"ref: refs/heads/main\n"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def git(folder: Path, *arguments: str, fails: bool = False) -> None:
    settings = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": "/dev/null"}
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, env=environment, capture_output=True)
    assert (done.returncode != 0) is fails, done.stderr


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path / "repo", "init", "-q", "-b", "main")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path / "repo"


def branch(folder: Path | str) -> str:
    return Branches().look([str(folder)])[str(folder)]


def a_head(folder: Path, content: bytes) -> Path:
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_bytes(content)
    return folder


def test_a_folder_is_on_the_branch_of_the_repository_around_it(repo: Path, tmp_path: Path):
    (deep := repo / "a" / "b" / "c").mkdir(parents=True)
    folders = [str(each) for each in (repo, deep, repo / ".git" / "refs", tmp_path, deep)]
    assert Branches().look(folders) == dict(zip(folders, ["main", "main", "main", "", "main"], strict=True))


def test_a_checkout_is_noticed_at_once(repo: Path):
    looker = Branches(Clock())
    for name in ("one", "two", "feature/ünïcode-枝", "one", "main"):
        git(repo, "checkout", "-q", "-B", name)
        assert looker.look([str(repo)]) == {str(repo): name}


def test_a_detached_head_and_a_rebase_are_on_no_branch(repo: Path):
    looker, folder = Branches(Clock()), str(repo)
    for name in ("base", "other"):
        git(repo, "checkout", "-q", "-b", name, "main")
        (repo / "file").write_text(name)
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", name)
    assert looker.look([folder])[folder] == "other"
    git(repo, "rebase", "-q", "base", fails=True)
    assert looker.look([folder])[folder] == ""
    git(repo, "rebase", "--abort")
    assert looker.look([folder])[folder] == "other"
    git(repo, "checkout", "-q", "--detach")
    assert looker.look([folder])[folder] == ""


def test_a_worktree_has_a_branch_of_its_own(repo: Path, tmp_path: Path):
    tree, looker = tmp_path / "tree", Branches(clock := Clock())
    assert looker.look([str(tree)]) == {str(tree): ""}
    git(repo, "worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "below").mkdir()
    clock.now += LATER
    assert list(looker.look([str(repo), str(tree), str(tree / "below")]).values()) == ["main", "side", "side"]
    git(repo, "worktree", "remove", "--force", str(tree))
    clock.now += LATER
    assert looker.look([str(tree)]) == {str(tree): ""}


def test_a_submodule_has_a_branch_of_its_own(repo: Path, tmp_path: Path):
    git(outer := tmp_path / "outer", "init", "-q", "-b", "outermost")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    git(outer / "inner", "checkout", "-q", "-b", "inmost")
    assert (outer / "inner" / ".git").read_text().startswith("gitdir: ../")
    assert (branch(outer), branch(outer / "inner")) == ("outermost", "inmost")


def test_repositories_that_come_move_and_go_are_noticed_soon(repo: Path, tmp_path: Path):
    looker, inner, moved = Branches(clock := Clock()), repo / "inner", tmp_path / "moved"
    inner.mkdir()

    def later(*folders: Path) -> list[str]:
        clock.now += LATER
        return list(looker.look([str(folder) for folder in folders]).values())

    assert later(inner, moved) == ["main", ""]
    git(inner, "init", "-q", "-b", "inmost")
    assert later(inner, moved) == ["inmost", ""]
    (inner / ".git").rename(inner / "git")
    assert later(inner, moved) == ["main", ""]
    repo.rename(moved)
    assert later(inner, moved, moved / "inner") == ["", "main", "main"]
    (moved / ".git").rename(moved / "git")
    assert later(moved, moved / "inner") == ["", ""]


def test_above_a_link_is_what_it_points_to(repo: Path, tmp_path: Path):
    (repo / "deep" / "er").mkdir(parents=True)
    git(other := tmp_path / "other", "init", "-q", "-b", "elsewhere")
    (other / "link").symlink_to(repo / "deep")
    (tmp_path / "round").symlink_to("round")
    assert branch(other / "link") == branch(other / "link" / "er") == branch(f"{other}/link/../deep") == "main"
    assert branch(tmp_path / "round") == ""


def test_who_is_no_longer_asked_for_is_forgotten(repo: Path, tmp_path: Path):
    looker = Branches()
    looker.look([str(repo), str(tmp_path)])
    looker.look([])
    assert not looker._places and set(looker._heads) == {""}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (MAIN, "main"),
        (b"ref:refs/heads/a/b/c", "a/b/c"),
        (b"ref: refs/heads/" + b"x" * 300 + b"\n", "x" * 200),
        (b"ref: refs/heads/.invalid\n", ""),  # reftable
        (b"ref: refs/remotes/origin/main\n", ""),
        (b"ref: refs/heads/a\x1b[31mb\n", ""),
        (b"ref: refs/heads/a\nb\n", ""),
        ("ref: refs/heads/a\u202eb\u009b31mc\u2028d\n".encode(), "ab31mcd"),
        (b"ref: refs/heads/caf\xe9\n", "caf\ufffd"),
        (b"4b825dc642cb6eb9a060e54bf8d69288fbee4904\n", ""),
        (bytes(range(256)), ""),
        (b"ref: refs/heads/" + b"x" * 5_000, ""),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_a_head_names_is_fit_to_be_shown(tmp_path: Path, content: bytes, name: str):
    assert branch(a_head(tmp_path, content)) == name


@pytest.mark.parametrize("content", ["", "gitdir:", "gitdir: ", "gitdir: /nowhere", "gitdir: a\0b", "x" * 9999])
def test_a_git_file_that_leads_nowhere_hides_what_is_above_it(tmp_path: Path, content: str):
    folder = a_head(tmp_path, MAIN) / "sub"
    folder.mkdir()
    (folder / ".git").write_text(content)
    assert branch(folder) == ""
    # An empty folder of that name does not, as git has it.
    (folder / ".git").unlink()
    (folder / ".git").mkdir()
    assert branch(folder) == "main"


@pytest.mark.parametrize("folder", ["", ".", "sub", "/nowhere/at/all", "/../a\0b", "/../a\ud800", "/", "/dev/null"])
def test_what_is_no_folder_is_on_no_branch(folder: str):
    assert branch(folder) == ""


def test_a_head_that_is_no_file_is_not_waited_for(tmp_path: Path):
    (a_head(tmp_path, MAIN) / ".git" / "HEAD").unlink()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch(tmp_path) == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("locked", [".git/HEAD", ".git", "sub"])
def test_what_may_not_be_read_is_on_no_branch(repo: Path, locked: str):
    (repo / "sub" / "low").mkdir(parents=True)
    (repo / locked).chmod(0)
    assert branch(repo / "sub" / "low") == ""
    (repo / locked).chmod(0o700)


def test_the_way_up_ends(tmp_path: Path):
    near, far = (a_head(tmp_path, MAIN) / "/".join("d" * levels) for levels in (90, 110))
    far.mkdir(parents=True)
    assert list(Branches().look([str(far), str(near)]).values()) == ["", "main"]


@pytest.mark.skipif(os.system("unshare -Urm true 2>/dev/null") != 0, reason="may not mount")
def test_the_way_up_ends_where_a_file_system_does(tmp_path: Path):
    (a_head(tmp_path, MAIN) / "mounted").mkdir()
    look = "import sys; from agtmux.probe.branches import *; print(*Branches().look(sys.argv[1:]).values(), sep='|')"
    commands = """mount -t tmpfs none "$1/mounted" && mkdir "$1/mounted/low" &&
        "$2" -c "$3" "$1/mounted/low" "$1" && "$2" -c "$3" "$1" "$1/mounted/low" """
    arguments = ["unshare", "-Urm", "sh", "-c", commands, "", str(tmp_path), sys.executable, look]
    assert subprocess.check_output(arguments, text=True) == "|main\nmain|\n"


def test_the_top_of_a_work_tree_is_told_with_its_branch(repo: Path, tmp_path: Path):
    """gwt S1.2: worktree_path."""
    (repo / "a" / "b").mkdir(parents=True)
    apart = tmp_path / "apart"
    git(repo, "worktree", "add", "-q", "-b", "labels", str(apart))
    outside = tmp_path / "outside"
    outside.mkdir()
    found = Branches().look_at([str(repo), str(repo / "a" / "b"), str(apart), str(outside)])
    assert [top for _, top in found.values()] == [str(repo), str(repo), str(apart), ""]
    assert found[str(apart)][0] == "labels"
