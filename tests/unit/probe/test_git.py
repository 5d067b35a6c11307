"""What git is asked, with real repositories: odd names, odd repositories, large ones, and settings that are traps."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from agtmux.probe import git, git_view
from support.home import wait_until
from support.parrots import git as run_git
from support.parrots import repository

LIMIT = 30.0
BESIDE = "{repository}.worktrees"
ODD = [
    b"-x",
    b"--output=x",
    b"new\nline",
    b"'single' \"double\"",
    b"$(touch x) `x` ; x",
    "日本語 👩‍💻".encode(),
    b"bad\xff\xfe",
    b"tab\tand\\back",
    b":(glob)*",
    b" blank ",
]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "parcels")


def changed(folder: Path) -> dict[str, str]:
    found = git.changed(str(folder), 10_000, LIMIT)
    return {each["path"]: each["status"] for each in found["files"]}  # type: ignore[attr-defined]


def test_every_kind_of_change_is_told(repo: Path) -> None:
    """gwt FR-014."""
    (repo / "old.py").write_text("one\ntwo\nthree\n")
    (repo / "gone.py").write_text("nothing like it\n")
    run_git(repo, "add", ".")
    run_git(repo, "commit", "-q", "-m", "More")
    (repo / "label.py").write_text("weight = 2\n")
    (repo / "gone.py").unlink()
    run_git(repo, "mv", "old.py", "new.py")
    (repo / "staged.py").write_text("x\n")
    run_git(repo, "add", "staged.py")
    (repo / "fresh.py").write_text("x\n")
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "noise.log").write_text("x\n")
    assert changed(repo) == {
        "label.py": "modified",
        "gone.py": "deleted",
        "new.py": "renamed",
        "staged.py": "added",
        "fresh.py": "untracked",
        ".gitignore": "untracked",
    }
    (repo / "below").mkdir()
    # From the top, wherever the agent stands.
    assert changed(repo / "below") == changed(repo)
    found = git.diff(str(repo / "below"), "", 100_000, LIMIT)
    assert "-weight = 1\n+weight = 2\n" in str(found["diff"]) and "rename to new.py" in str(found["diff"])
    assert found["untracked"] == [".gitignore", "fresh.py"] and not found["is_cut"]
    only = git.diff(str(repo), "label.py", 100_000, LIMIT)
    assert "gone.py" not in str(only["diff"]) and only["untracked"] == []


def test_a_change_of_the_same_size_in_the_same_second_is_told(repo: Path) -> None:
    for number in range(20):
        tree = Path(str(git.add(str(repo), f"labels{number}", BESIDE, False, LIMIT)["top"]))
        (tree / "label.py").write_text("weight = 2\n")
        written = int((tree / "label.py").stat().st_mtime)
        if int((repo / ".git" / "worktrees" / tree.name / "index").stat().st_mtime) == written:
            break
    wait_until(lambda: time.time() > written + 1.1, "the next second")
    assert changed(tree) == {"label.py": "modified"}
    assert "+weight = 2" in str(git.diff(str(tree), "", 100_000, LIMIT)["diff"])


def test_names_of_files_are_only_names(repo: Path) -> None:
    for number, name in enumerate(ODD):
        (repo / os.fsdecode(name)).write_text("x\n" * number)
        if number % 2:
            run_git(repo, "add", "--", os.fsdecode(b"./" + name))
    found = changed(repo)
    assert set(found) == {name.decode("utf-8", "backslashreplace") for name in ODD}
    assert set(found.values()) == {"added", "untracked"}
    before = sorted(repo.iterdir())
    for name in ODD:
        git.diff(str(repo), name.decode("utf-8", "replace"), 100_000, LIMIT)
    assert sorted(repo.iterdir()) == before
    # A pathspec's magic is a part of the name.
    found_by_magic = git.diff(str(repo), ":(glob)*", 100_000, LIMIT)
    assert (found_by_magic["diff"], found_by_magic["untracked"]) == ("", [":(glob)*"])
    with pytest.raises(git.GitError):
        git.diff(str(repo), "../outside", 100_000, LIMIT)


def test_bytes_that_are_no_text_are_named_and_not_told(repo: Path) -> None:
    """gwt FR-013."""
    (repo / "image.png").write_bytes(bytes(range(256)) * 10)
    run_git(repo, "add", ".")
    (repo / "latin.txt").write_bytes("Größe\n".encode("latin-1"))
    run_git(repo, "add", ".")
    told = str(git.diff(str(repo), "", 100_000, LIMIT)["diff"])
    assert "Binary files /dev/null and b/image.png differ" in told and "+Gr\ufffd\ufffde\n" in told


def test_five_thousand_files_and_fifty_megabytes(repo: Path) -> None:
    for number in range(5_000):
        (repo / f"file{number}.txt").write_text("x\n")
    run_git(repo, "add", ".")
    run_git(repo, "commit", "-q", "-m", "Many")
    for number in range(5_000):
        (repo / f"file{number}.txt").write_text(f"{number}\n")
    found = git.changed(str(repo), 500, LIMIT)
    assert (found["total"], len(found["files"])) == (5_000, 500)  # type: ignore[arg-type]
    (repo / "big.txt").write_text("".join(f"line {number} of a file that is large\n" for number in range(1_500_000)))
    assert (repo / "big.txt").stat().st_size > 50_000_000
    run_git(repo, "add", "big.txt")
    told = git.diff(str(repo), "", 100_000, LIMIT)
    assert told["is_cut"] and 90_000 < len(str(told["diff"])) <= 100_000 and str(told["diff"]).endswith("\n")
    big = git.diff(str(repo), "big.txt", 5_000, LIMIT)
    assert big["is_cut"] and "+line 0 of" in str(big["diff"])


def test_odd_repositories(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "checkout", "-q", "--detach")
    found = git.look(str(repo), LIMIT)
    assert (found["branch"], found["top"]) == ("", str(repo)) and found["commit"]
    (tmp_path / "plain").mkdir()
    with pytest.raises(git.GitError, match="no git repository"):
        git.look(str(tmp_path / "plain"), LIMIT)
    with pytest.raises(git.GitError, match="no folder"):
        git.look(str(tmp_path / "nowhere"), LIMIT)
    with pytest.raises(git.GitError, match="git itself keeps"):
        git.look(str(repo / ".git" / "refs"), LIMIT)
    run_git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    bare = tmp_path / "bare.git"
    with pytest.raises(git.GitError, match="bare"):
        git.changed(str(bare), 10, LIMIT)
    added = git.add(str(bare), "labels", BESIDE, False, LIMIT)
    assert added["top"] == str(tmp_path / "bare.worktrees" / "labels")
    # Before the first commit all is new.
    run_git(tmp_path, "init", "-q", "empty")
    (tmp_path / "empty" / "first.py").write_text("x\n")
    run_git(tmp_path / "empty", "add", ".")
    assert changed(tmp_path / "empty") == {"first.py": "added"}
    with pytest.raises(git.GitError, match="no commit"):
        git.add(str(tmp_path / "empty"), "labels", BESIDE, False, LIMIT)


def test_a_submodule_is_a_repository_of_its_own_and_not_looked_into(repo: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    run_git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "part")
    run_git(repo, "commit", "-q", "-m", "Part")
    (repo / "part" / "label.py").write_text("changed\n")
    # git would be run in it with its own settings.
    assert changed(repo) == {}
    assert changed(repo / "part") == {"label.py": "modified"}
    run_git(repo / "part", "commit", "-q", "-a", "-m", "In it")
    assert changed(repo) == {"part": "modified"}
    with pytest.raises(git.GitError, match="submodule"):
        git.add(str(repo / "part"), "labels", BESIDE, False, LIMIT)


def test_without_git_nothing_but_that_is_said(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo))
    monkeypatch.setattr(git_view, "_ELSEWHERE", str(repo))
    with pytest.raises(git.GitError, match="not installed"):
        git.look(str(repo), LIMIT)


def trap(folder: Path) -> tuple[str, Path]:
    """A program that leaves a trace if anybody runs it."""
    program, trace = folder / "trap.sh", folder / "sprung"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {trace}\nexec cat 2>/dev/null\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program), trace


def test_no_program_of_the_repositorys_own_is_run(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, trace = trap(tmp_path)
    for name in ("post-checkout", "post-index-change", "pre-commit", "fsmonitor-watchman"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\nexec {program} hook {name}\n")
        hook.chmod(0o755)
    for setting in (
        ("core.fsmonitor", program),
        ("core.pager", program),
        ("core.sshCommand", program),
        ("diff.external", program),
        ("diff.odd.command", program),
        ("diff.odd.textconv", program),
        ("filter.odd.clean", program),
        ("filter.odd.smudge", "cat"),
        ("filter.odd.required", "true"),
        ("pager.diff", program),
        ("alias.diff", f"!{program}"),
        ("color.ui", "always"),
        ("diff.noprefix", "true"),
        ("diff.renames", "false"),
    ):
        run_git(repo, "config", *setting)
    # Both of them, so that a filter has something to do.
    trace.unlink(missing_ok=True)
    (repo / ".gitattributes").write_text("*.py diff=odd filter=odd\n")
    (repo / "label.py").write_text("weight = 2\n")
    os.utime(repo / "README.md")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_ASKPASS", "GIT_SSH"):
        monkeypatch.setenv(name, program)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in (repo / ".git").rglob("*")}
    assert changed(repo) == {".gitattributes": "untracked", "label.py": "modified"}
    told = git.diff(str(repo), "", 100_000, LIMIT)
    assert "--- a/label.py" in str(told["diff"]) and "\x1b" not in str(told["diff"])
    survey = git.survey([str(repo)], LIMIT)
    assert [each["is_dirty"] for each in survey["worktrees"]] == [True]  # type: ignore[attr-defined]
    # Nor is anything written.
    assert {path: path.stat().st_mtime_ns for path in (repo / ".git").rglob("*")} == before
    git.add(str(repo), "labels", BESIDE, False, LIMIT)
    assert not trace.exists(), trace.read_text()
    # The same by hand springs it, or the traps would be none.
    subprocess.run(["git", "status"], cwd=repo, env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=60)
    assert trace.exists()


@pytest.mark.parametrize(
    "name", ["-x", "--force", "a b", "a..b", "x.lock", "", "a//b", "/a", "a/", "@{-1}", "a\nb", "HEAD~1"]
)
def test_what_is_no_name_for_a_branch_makes_none(repo: Path, name: str) -> None:
    before = run_git(repo, "for-each-ref")
    with pytest.raises(git.GitError, match="no name"):
        git.add(str(repo), name, BESIDE, False, LIMIT)
    assert run_git(repo, "for-each-ref") == before and run_git(repo, "worktree", "list").count("\n") == 0


@pytest.mark.parametrize("name", ["feature/auth", "日本語", "a'b\"c", "$(touch\u00a0x)", "#{pane_id}", "x;y", "é" * 90])
def test_every_name_that_git_takes_is_taken_and_found_again(repo: Path, name: str) -> None:
    added = git.add(str(repo), name, BESIDE, True, LIMIT)
    assert added["is_new"] and added["is_new_branch"] and Path(str(added["top"])).parent == Path(f"{repo}.worktrees")
    assert run_git(Path(str(added["top"])), "branch", "--show-current") == name
    again = git.add(str(added["top"]), name, BESIDE, True, LIMIT)
    assert again == {**added, "is_new": False, "is_new_branch": False}


def test_two_branches_of_one_folder_name_and_one_that_only_a_remote_has(repo: Path, tmp_path: Path) -> None:
    first, second = (git.add(str(repo), name, BESIDE, False, LIMIT) for name in ("a/b", "a-b"))
    assert first["top"] != second["top"]
    run_git(tmp_path, "clone", "-q", str(repo), "clone")
    theirs = git.add(str(tmp_path / "clone"), "a/b", BESIDE, False, LIMIT)
    assert run_git(Path(str(theirs["top"])), "rev-parse", "--abbrev-ref", "@{upstream}") == "origin/a/b"
    # One whose folder was removed by hand is not silently made anew.
    subprocess.run(["rm", "-r", str(first["top"])], check=True)
    with pytest.raises(git.GitError, match="prune"):
        git.add(str(repo), "a/b", BESIDE, False, LIMIT)


def test_a_worktree_with_work_that_is_nowhere_else_stays(repo: Path) -> None:
    tree = Path(str(git.add(str(repo), "labels", BESIDE, False, LIMIT)["top"]))
    with pytest.raises(git.GitError, match="itself"):
        git.remove(str(repo), LIMIT)
    for spoil, mend, why in (
        (lambda: (tree / "new.py").write_text("x\n"), lambda: (tree / "new.py").unlink(), "not committed"),
        (lambda: (tree / "label.py").write_text("x\n"), lambda: run_git(tree, "checkout", "-q", "."), "not committed"),
        (
            lambda: run_git(tree, "commit", "-q", "--allow-empty", "-m", "More"),
            lambda: run_git(repo, "merge", "-q", "labels"),
            "nowhere else",
        ),
        (
            # A stash holds the commit that it was made on, and is dropped without a thought.
            lambda: (
                run_git(tree, "commit", "-q", "--allow-empty", "-m", "Stashed on"),
                (tree / "label.py").write_text("x\n"),
                run_git(tree, "stash", "-q"),
            ),
            lambda: run_git(repo, "tag", "kept", "labels"),
            "nowhere else",
        ),
        (
            lambda: (
                run_git(tree, "checkout", "-q", "--detach"),
                run_git(tree, "commit", "-q", "--allow-empty", "-m", "Lost"),
            ),
            lambda: run_git(tree, "checkout", "-q", "labels"),
            "nowhere else",
        ),
    ):
        spoil()
        with pytest.raises(git.GitError, match=why):
            git.remove(str(tree), LIMIT)
        assert tree.is_dir()
        mend()
    assert git.remove(str(tree), LIMIT)["top"] == str(tree)
    assert not tree.exists() and run_git(repo, "branch", "--list", "labels")


def test_the_folder_for_worktrees_goes_with_the_last_of_them_and_a_users_own_stays(repo: Path, tmp_path: Path) -> None:
    trees = [str(git.add(str(repo), name, BESIDE, False, LIMIT)["top"]) for name in ("labels", "weights")]
    git.remove(trees[0], LIMIT)
    assert Path(f"{repo}.worktrees").is_dir()
    git.remove(trees[1], LIMIT)
    assert not Path(f"{repo}.worktrees").exists()
    own = tmp_path / "own"
    own.mkdir()
    run_git(repo, "worktree", "add", "-q", "-b", "prices", str(own / "prices"))
    git.remove(str(own / "prices"), LIMIT)
    assert own.is_dir()


def test_one_that_takes_too_long_is_ended(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 600 & wait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with pytest.raises(git.Slow):
        git.look(str(repo), 0.3)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_was_told_to_overlook_keeps_a_worktree(repo: Path, flag: str) -> None:
    tree = Path(str(git.add(str(repo), "labels", BESIDE, False, LIMIT)["top"]))
    run_git(tree, "update-index", flag, "label.py")
    (tree / "label.py").write_text("weight = 2\n")
    with pytest.raises(git.GitError, match=r"overlook changes of label\.py"):
        git.remove(str(tree), LIMIT)
    assert (tree / "label.py").read_text() == "weight = 2\n"


def test_new_files_that_a_setting_hides_keep_a_worktree(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Path(str(git.add(str(repo), "labels", BESIDE, False, LIMIT)["top"]))
    run_git(repo, "config", "status.showUntrackedFiles", "no")
    (tree / "new.py").write_text("x\n")
    survey = git.survey([str(repo)], LIMIT)
    assert [each["is_dirty"] for each in survey["worktrees"]] == [False, True]  # type: ignore[attr-defined]
    with pytest.raises(git.GitError, match="not committed"):
        git.remove(str(tree), LIMIT)
    # One that comes after our look is git's own to find.
    monkeypatch.setattr(git, "check_removable", lambda *_: {"top": str(tree), "branch": "labels"})
    with pytest.raises(git.GitError, match="kept"):
        git.remove(str(tree), LIMIT)
    assert (tree / "new.py").exists()


def instead_of_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`REAL` in it is the real one."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script.replace('REAL', git.find_git())}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_a_git_that_fetches_what_is_missing_runs_no_program_for_that(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, trace = trap(tmp_path)
    # It does not go on as somebody to talk to.
    Path(program).write_text(Path(program).read_text().replace("exec cat", "exit 1 #"))
    blob = run_git(repo, "rev-parse", "HEAD:label.py").strip()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for setting in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "far"),
        ("remote.far.url", f"ext::{program}"),
        ("remote.far.promisor", "true"),
        ("protocol.ext.allow", "always"),
    ):
        run_git(repo, "config", *setting)
    (repo / "label.py").write_text("weight = 2\n")
    # Before 2.39.4 it knows no word against fetching.
    instead_of_git(tmp_path, 'unset GIT_NO_LAZY_FETCH; exec REAL "$@"', monkeypatch)
    with pytest.raises(git.GitError):
        git.diff(str(repo), "", 100_000, LIMIT)
    assert not trace.exists(), trace.read_text()
    subprocess.run(["git", "diff"], cwd=repo, capture_output=True, timeout=60)
    assert trace.exists()


def test_a_worktree_of_a_partial_clone_gets_the_files_that_are_missing(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "config", "uploadpack.allowFilter", "true")
    run_git(repo, "checkout", "-q", "-b", "labels")
    (repo / "label.py").write_text("weight = 2\n")
    run_git(repo, "commit", "-q", "-a", "-m", "More")
    run_git(repo, "checkout", "-q", "-")
    run_git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{repo}", "clone")
    tree = Path(str(git.add(str(tmp_path / "clone"), "labels", BESIDE, False, LIMIT)["top"]))
    assert (tree / "label.py").read_text() == "weight = 2\n"


def test_hooks_that_are_settings_are_switched_off(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git has them since 2.54; what it is told then is what can be seen here with any."""
    program, _ = trap(tmp_path)
    for name, key in (("one", "command"), ("two.of them", "event")):
        run_git(repo, "config", f"hook.{name}.{key}", program if key == "command" else "post-checkout")
    run_git(repo, "config", "hook.one.enabled", "true")
    asked = tmp_path / "asked"
    instead_of_git(tmp_path, f'printf "%s\\n" "$*" >> {asked}; exec REAL "$@"', monkeypatch)
    git.add(str(repo), "labels", BESIDE, False, LIMIT)
    (line,) = [line for line in asked.read_text().splitlines() if " worktree add " in line]
    assert "-c hook.one.enabled=false" in line and "-c hook.two.of them.enabled=false" in line, line


def test_an_index_that_is_no_file_or_has_no_end_is_not_copied(repo: Path) -> None:
    index = repo / ".git" / "index"
    os.truncate(index, 10**12)
    with pytest.raises(git.GitError, match="too large"):
        git.changed(str(repo), 10, LIMIT)
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(git.GitError, match="no file"):
        git.changed(str(repo), 10, LIMIT)


def test_what_is_undone_leaves_no_empty_folder_behind(repo: Path) -> None:
    first = git.add(str(repo), "labels", BESIDE, False, LIMIT)
    second = git.add(str(repo), "stamps", BESIDE, False, LIMIT)
    folder = Path(str(first["top"])).parent
    git.undo(str(first["top"]), "labels", LIMIT)
    assert folder.is_dir() and not run_git(repo, "branch", "--list", "labels")
    git.undo(str(second["top"]), "", LIMIT)
    assert not folder.exists() and run_git(repo, "branch", "--list", "stamps")
