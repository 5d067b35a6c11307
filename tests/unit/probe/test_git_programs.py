"""git runs nothing that a repository names: no setting, hook or attribute of it, whenever that is changed."""

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.probe import git, git_plain, git_view
from support.parrots import git as run_git
from support.parrots import repository

LIMIT = 30.0
BESIDE = "{repository}.worktrees"

# Every setting of git 2.39 to 2.54 by which it runs a program, or by which another one comes into force. `PROGRAM`
# leaves a trace.
PROGRAMS = {
    "alias.diff": "!PROGRAM",
    "alias.ls-files": "!PROGRAM",
    "alias.rev-parse": "!PROGRAM",
    "alias.status": "!PROGRAM",
    "browser.odd.cmd": "PROGRAM",
    "core.alternateRefsCommand": "PROGRAM",
    "core.askPass": "PROGRAM",
    "core.attributesFile": "ATTRIBUTES",
    "core.editor": "PROGRAM",
    "core.fsmonitor": "PROGRAM",
    "core.gitProxy": "PROGRAM",
    "core.hooksPath": "HOOKS",
    "core.pager": "PROGRAM",
    "core.sshCommand": "PROGRAM",
    "credential.helper": "!PROGRAM",
    "credential.https://far.invalid.helper": "!PROGRAM",
    "diff.external": "PROGRAM",
    "diff.odd.command": "PROGRAM",
    "diff.odd.textconv": "PROGRAM",
    "diff.tool": "odd",
    "difftool.odd.cmd": "PROGRAM",
    "extensions.partialClone": "far",
    "extensions.worktreeConfig": "true",
    "filter.odd.clean": "PROGRAM",
    "filter.odd.process": "PROGRAM",
    "filter.odd.required": "true",
    "filter.odd.smudge": "PROGRAM",
    "gpg.program": "PROGRAM",
    "gpg.ssh.defaultKeyCommand": "PROGRAM",
    "gpg.x509.program": "PROGRAM",
    "guitool.odd.cmd": "PROGRAM",
    "hook.odd.command": "PROGRAM",
    "hook.odd.event": "post-checkout",
    "imap.tunnel": "PROGRAM",
    "include.path": "INCLUDED",
    "includeIf.gitdir:/.path": "INCLUDED",
    "init.templateDir": "TEMPLATE",
    "instaweb.httpd": "PROGRAM",
    "interactive.diffFilter": "PROGRAM",
    "log.showSignature": "true",
    "man.odd.cmd": "PROGRAM",
    "merge.odd.driver": "PROGRAM",
    "mergetool.odd.cmd": "PROGRAM",
    "pager.diff": "PROGRAM",
    "pager.ls-files": "PROGRAM",
    "pager.status": "PROGRAM",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "remote.far.promisor": "true",
    "remote.far.receivepack": "PROGRAM",
    "remote.far.uploadpack": "PROGRAM",
    "remote.far.url": "ext::PROGRAM",
    "remote.far.vcs": "odd",
    "sendemail.smtpServer": "PROGRAM",
    "sequence.editor": "PROGRAM",
    "submodule.odd.update": "!PROGRAM",
    "tar.odd.command": "PROGRAM",
    "trailer.odd.command": "PROGRAM",
    "trailer.odd.cmd": "PROGRAM",
    "uploadpack.packObjectsHook": "PROGRAM",
    "url.ext::PROGRAM .insteadOf": "https://",
}
HOOKS = (
    *("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-commit", "post-merge"),
    *("post-rewrite", "pre-auto-gc", "query-watchman"),
)


class Traps:
    """A repository, and a program that leaves a trace if git runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = repository(folder / "parcels")
        self.trace = folder / "sprung"
        self.program = folder / "trap.sh"
        # Not one to talk to: a process that does not answer would only hold things up.
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.trace}\nexit 1\n')
        self.program.chmod(0o755)
        self.places = {
            "PROGRAM": str(self.program),
            "HOOKS": str(folder / "hooks"),
            "ATTRIBUTES": str(folder / "attributes"),
            "INCLUDED": str(folder / "included"),
            "TEMPLATE": str(folder / "template"),
        }
        self.config = self.repo / ".git" / "config"
        self.clean = self.config.read_bytes()
        (folder / "attributes").write_text("* filter=odd diff=odd merge=odd\n")
        (folder / "included").write_text(f'[filter "odd"]\n\tclean = {self.program}\n\tsmudge = {self.program}\n')
        self.write_hooks(folder / "hooks")
        (self.repo / ".gitattributes").write_text("*.py filter=odd diff=odd merge=odd\n")
        run_git(self.repo, "add", ".gitattributes")
        run_git(self.repo, "commit", "-q", "-m", "Attributes")
        # A filter and a diff have something to do.
        (self.repo / "label.py").write_text("weight = 2\n")
        (self.repo / "new.py").write_text("x\n")
        os.utime(self.repo / "README.md")

    def write_hooks(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(f"#!/bin/sh\nexec {self.program} {name}\n")
            (folder / name).chmod(0o755)

    def hostile(self, keys: list[str]) -> bytes:
        """The config file with these keys."""
        path = self.folder / "config"
        path.write_bytes(self.clean)
        for key in keys:
            words = [
                re.sub("|".join(self.places), lambda each: self.places[each[0]], word) for word in (key, PROGRAMS[key])
            ]
            subprocess.run(["git", "config", "--file", str(path), *words], check=True, timeout=30)
        return path.read_bytes()

    def read(self) -> None:
        """Everything that is read, of which all may fail."""
        for read in (
            lambda: git.look(str(self.repo), LIMIT),
            lambda: git.changed(str(self.repo), 100, LIMIT),
            lambda: git.diff(str(self.repo), "", 100_000, LIMIT),
            lambda: git.survey([str(self.repo)], LIMIT),
        ):
            attempt(read)

    def check(self) -> None:
        assert not self.trace.exists(), self.trace.read_text()


def attempt(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except git.GitError as error:
        return error


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path)


def test_no_setting_of_a_repository_names_a_program_that_is_run(traps: Traps) -> None:
    keys = list(PROGRAMS)
    # A few at a time: one that git cannot work with would hide the others.
    for few in (keys[start::8] for start in range(8)):
        traps.config.write_bytes(traps.hostile(few))
        attempt(lambda: git.changed(str(traps.repo), 100, LIMIT))
        attempt(lambda: git.diff(str(traps.repo), "", 100_000, LIMIT))
        assert not traps.trace.exists(), (few, traps.trace.read_text())


def test_all_of_them_at_once_run_nothing_whatever_is_read_or_made_for_an_agent(traps: Traps) -> None:
    tree = Path(str(git.add(str(traps.repo), "early", BESIDE, False, LIMIT, is_plain=True)["top"]))
    traps.config.write_bytes(traps.hostile(list(PROGRAMS)))
    traps.write_hooks(traps.repo / ".git" / "hooks")
    (traps.repo / ".git" / "info").mkdir(exist_ok=True)
    (traps.repo / ".git" / "info" / "attributes").write_text("* filter=odd diff=odd\n")
    # What a partial clone would fetch.
    blob = run_git(traps.repo, "-c", "core.fsmonitor=", "rev-parse", "HEAD:README.md")
    traps.trace.unlink(missing_ok=True)
    missing = traps.repo / ".git" / "objects" / blob[:2] / blob[2:]
    content = missing.read_bytes()
    missing.unlink()
    traps.read()
    assert isinstance(attempt(lambda: git.add(str(traps.repo), "x", BESIDE, False, LIMIT, is_plain=True)), git.GitError)
    missing.write_bytes(content)
    traps.read()
    made = git.add(str(traps.repo), "labels", BESIDE, False, LIMIT, is_plain=True)
    assert made["is_new"] and made["unfiltered"] == 3
    git.undo(str(made["top"]), "labels", LIMIT)
    os.utime(tree / "label.py")
    git.remove(str(tree), LIMIT)
    assert not Path(str(made["top"])).exists() and not tree.exists()
    traps.check()
    # By hand they spring, or they would be no traps.
    subprocess.run(["git", "diff"], cwd=traps.repo, capture_output=True, timeout=60)
    assert traps.trace.exists()


TOGGLER = """
import os, sys, time
repo, hostile, clean, stop = sys.argv[1:]
texts = [open(path, "rb").read() for path in (hostile, clean)]
places = {
    ".git/config": texts,
    ".gitattributes": [b"* filter=odd diff=odd\\n", b"*.txt text\\n"],
    ".git/info/attributes": [b"* filter=odd diff=odd\\n", b""],
    ".git/objects/info/alternates": [os.path.join(repo, ".git/objects").encode() + b"\\n", b""],
}
os.makedirs(repo + "/.git/info", exist_ok=True)
os.makedirs(repo + "/.git/objects/info", exist_ok=True)
until = time.monotonic() + 100
turn = 0
while time.monotonic() < until and not os.path.exists(stop):
    for name, contents in places.items():
        path = os.path.join(repo, name)
        with open(path + ".new", "wb") as file:
            file.write(contents[turn % 2])
        os.replace(path + ".new", path)
    source, target = ("hooks", "hooks.off") if turn % 2 else ("hooks.off", "hooks")
    try:
        os.rename(os.path.join(repo, ".git", source), os.path.join(repo, ".git", target))
    except OSError:
        pass
    turn += 1
    # Uneven, so that every step of a read is met.
    time.sleep((turn * 7 % 11) / 2000)
print(turn)
"""


@contextmanager
def toggled(traps: Traps) -> Iterator[None]:
    """Settings, attributes, hooks and alternates come and go, in a process of their own."""
    traps.write_hooks(traps.repo / ".git" / "hooks")
    stop, hostile, clean = (traps.folder / name for name in ("stop", "hostile", "clean"))
    hostile.write_bytes(
        traps.hostile([key for key in PROGRAMS if not key.startswith(("extensions", "core.hooksPath"))])
    )
    clean.write_bytes(traps.clean)
    words = [sys.executable, "-c", TOGGLER, str(traps.repo), str(hostile), str(clean), str(stop)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield
        finally:
            stop.touch()
            turns = int(process.communicate(timeout=30)[0])
    assert turns > 100, "the other process hardly ran"


def test_settings_that_change_while_git_reads_run_nothing(traps: Traps) -> None:
    reads = answered = 0
    with toggled(traps):
        until = time.monotonic() + 30
        while reads < 300 and time.monotonic() < until:
            os.utime(traps.repo / "label.py")
            found = attempt(lambda: git.changed(str(traps.repo), 100, LIMIT))
            attempt(lambda: git.survey([str(traps.repo)], LIMIT))
            reads += 2
            answered += not isinstance(found, git.GitError)
            traps.check()
    assert answered > 0, "nothing could be read"


def test_settings_that_change_while_an_agents_worktree_is_made_run_nothing(traps: Traps) -> None:
    made = 0
    with toggled(traps):
        until = time.monotonic() + 20
        for number in range(12):
            if time.monotonic() > until:
                break
            name = f"labels{number}"
            found = attempt(lambda: git.add(str(traps.repo), name, BESIDE, False, LIMIT, is_plain=True))  # noqa: B023 at once
            if not isinstance(found, git.GitError):
                made += 1
                attempt(lambda: git.undo(str(found["top"]), name, LIMIT))  # noqa: B023 at once
            traps.check()
    assert made > 0, "none could be made"


# A link in the repository leads to a file of the user's, which an agent may not write itself


@pytest.mark.parametrize(
    "link", ["logs/refs/heads/labels", "logs/refs/heads", "logs", "refs/heads", "refs", "worktrees", "config"]
)
def test_a_worktree_for_an_agent_writes_nothing_through_a_link(traps: Traps, tmp_path: Path, link: str) -> None:
    elsewhere, place = tmp_path / "elsewhere", traps.repo / ".git" / link
    run_git(traps.repo, "config", "user.name", f"$({traps.program})")
    run_git(traps.repo, "config", "remote.far.fetch", "+refs/heads/*:refs/remotes/far/*")
    run_git(traps.repo, "update-ref", "refs/remotes/far/labels", "HEAD")
    if place.exists():
        # All that is there stays readable.
        place.rename(elsewhere)
    elif link.endswith("labels"):
        elsewhere.write_text("# the user's own\n")
    else:
        elsewhere.mkdir()
    place.symlink_to(elsewhere)
    before = contents(elsewhere)
    attempt(lambda: git.add(str(traps.repo), "labels", BESIDE, False, LIMIT, is_plain=True))
    assert contents(elsewhere) == before


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [each for each in sorted(path.rglob("*")) if each.is_file()]
    return {str(each): each.read_bytes() for each in files}


def test_the_index_of_a_worktree_for_an_agent_is_not_written_through_a_link(
    traps: Traps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that appears as soon as git's folder for the work tree does."""
    elsewhere, write = tmp_path / "elsewhere", git_plain._write_admin

    def write_and_link(repository: git_view.Repository, admin: str, *more: Any) -> None:
        write(repository, admin, *more)
        Path(admin, "index").symlink_to(elsewhere)

    monkeypatch.setattr(git_plain, "_write_admin", write_and_link)
    found = attempt(lambda: git.add(str(traps.repo), "labels", BESIDE, False, LIMIT, is_plain=True))
    assert isinstance(found, git.GitError) and not elsewhere.exists()


def test_a_branch_that_is_undone_leaves_no_log_in_the_way_of_others(traps: Traps) -> None:
    made = git.add(str(traps.repo), "labels/small", BESIDE, False, LIMIT)
    git.undo(str(made["top"]), "labels/small", LIMIT)
    run_git(traps.repo, "branch", "labels")


# What is read is the work tree's own


@pytest.mark.parametrize("is_bare_folder", [False, True])
@pytest.mark.parametrize("has_git", [False, True])
def test_no_setting_has_another_folder_read_as_the_work_tree(
    tmp_path: Path, is_bare_folder: bool, has_git: bool
) -> None:
    home = tmp_path / "home"
    if has_git:
        repository(home)
    else:
        home.mkdir()
    (home / ".key").write_text("the user's secret\n")
    repo = repository(home / "parcels")
    folder = repo
    if is_bare_folder:
        # A git directory by its content, whatever its name.
        folder = home / "folder"
        (repo / ".git").rename(folder)
    empty = run_git(folder, "hash-object", "-w", "--stdin")
    run_git(folder, "config", "core.bare", "false")
    run_git(folder, "config", "core.worktree", str(home))
    run_git(folder, "update-index", "--add", "--cacheinfo", f"100644,{empty},.key")
    for read in (
        lambda: git.diff(str(folder), "", 100_000, LIMIT),
        lambda: git.changed(str(folder), 100, LIMIT),
        lambda: git.look(str(folder), LIMIT),
    ):
        with pytest.raises(git.GitError):
            read()
    surveyed = git.survey([str(folder)], LIMIT)
    assert surveyed == {"worktrees": [], "places": {}}


def test_submodules_and_separate_git_folders_are_read(tmp_path: Path) -> None:
    other, repo = repository(tmp_path / "other"), repository(tmp_path / "parcels")
    run_git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "part")
    assert "core.worktree" in run_git(repo / "part", "config", "--list")
    run_git(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "kept apart"), str(other), "apart")
    for tree in (repo / "part", tmp_path / "apart"):
        assert git.look(str(tree), LIMIT)["top"] == str(tree)


@pytest.mark.parametrize("broken", ["ref", "commit", "content", "detached"])
def test_a_last_commit_that_cannot_be_read_is_not_told_as_none(traps: Traps, broken: str) -> None:
    run_git(traps.repo, "branch", "-m", "main")
    folder = traps.repo / ".git"
    commit = run_git(traps.repo, "rev-parse", "HEAD")
    stored = folder / "objects" / commit[:2] / commit[2:]
    if broken == "ref":
        (folder / "refs" / "heads" / "main").write_text("no digest\n")
    elif broken == "content":
        stored.chmod(0o644)
        stored.write_text("no object\n")
    else:
        if broken == "detached":
            run_git(traps.repo, "checkout", "-q", "--detach")
        stored.unlink()
    for read in (git.look, lambda path, limit: git.changed(path, 100, limit)):
        with pytest.raises(git.GitError):
            read(str(traps.repo), LIMIT)


# What is copied of a repository is bounded


def test_of_the_files_that_an_index_may_be_split_into_one_is_copied(traps: Traps) -> None:
    folder = traps.repo / ".git"
    (traps.repo / "link0123").write_text("a path that looks like the name of the other file\n")
    run_git(traps.repo, "add", "link0123")
    run_git(traps.repo, "update-index", "--split-index")
    (linked,) = folder.glob("sharedindex.*")
    # Every index has these bytes, so they are no digest of a file.
    for name in ("00", "00 ", "0000", "000000", "ff" * 20):
        (folder / f"sharedindex.{name}").write_bytes(b"x")
    with git_view.View(
        git_view.find_repository(str(traps.repo), time.monotonic() + LIMIT), time.monotonic() + LIMIT
    ) as view:
        assert {path.name for path in Path(view.index).parent.glob("sharedindex.*")} == {linked.name}
    assert {each["path"] for each in git.changed(str(traps.repo), 100, LIMIT)["files"]} >= {"link0123", "label.py"}


@pytest.mark.skipif(sys.platform != "linux", reason="macOS limits no process's memory")
@pytest.mark.parametrize("place", ["info/attributes", "refs/heads/main"])
def test_a_link_to_endless_zeros_does_not_take_all_memory(
    traps: Traps, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(git_view, "_MOST_MEMORY", 64 * 1024 * 1024)
    run_git(traps.repo, "branch", "-m", "main")
    path = traps.repo / ".git" / place
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/dev/zero")
    # It is refused because of its memory, long before the time is up.
    found = attempt(lambda: git.changed(str(traps.repo), 100, LIMIT))
    assert isinstance(found, git.GitError) and "memory" in str(found), found


def test_a_copy_ends_when_the_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"x")
    with pytest.raises(git.Slow):
        git_view.copy_file(str(tmp_path / "index"), str(tmp_path / "copy"), time.monotonic() - 1)


# What a view has in its settings


VALUES = st.binary(max_size=60).filter(lambda value: b"\0" not in value)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from([*sorted(git_view._PLAIN), "core.excludesfile", "core.attributesfile"]), VALUES))
def test_no_value_of_a_plain_setting_becomes_another_setting(tmp_path_factory: pytest.TempPathFactory, values) -> None:
    path = tmp_path_factory.getbasetemp() / f"config-{os.getpid()}"
    path.write_bytes(
        git_view._config(
            {
                **values,
                **{key.lower(): b"/bin/false" for key in PROGRAMS if ".path" not in key and "attributes" not in key},
            }
        )
    )
    words = ["git", "config", "--file", str(path), "--no-includes", "--null", "--list"]
    listed = subprocess.run(words, check=True, capture_output=True, timeout=30).stdout.split(b"\0")[:-1]
    found = dict(each.partition(b"\n")[::2] for each in listed)
    known = {key.encode() for key in (*git_view._PLAIN, *git_view._FILES)}
    assert set(found) - known <= {b"core.repositoryformatversion"}
    for key in ("core.excludesfile", "core.attributesfile"):
        if key in values and not values[key].startswith(b"~"):
            assert found[key.encode()] == values[key]


# What is read is what git itself says


class Generated:
    """A repository as chance has it, without filters."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.folder = folder
        self.repo = folder / "repo"
        words = ["init", "-q"]
        if chance.random() < 0.25:
            words.append("--object-format=sha256")
        run_git(folder, *words, "repo")
        for key, values in (
            ("core.fileMode", ("true", "false")),
            ("core.autocrlf", ("true", "input", "false")),
            ("core.eol", ("lf", "crlf")),
            ("core.ignoreCase", ("true", "false")),
            ("core.quotePath", ("true", "false")),
            ("core.untrackedCache", ("true", "false")),
            ("core.splitIndex", ("true", "false")),
            ("diff.algorithm", ("histogram", "minimal")),
            ("core.abbrev", ("12", "auto")),
        ):
            if chance.random() < 0.3:
                run_git(self.repo, "config", key, chance.choice(values))
        if chance.random() < 0.3:
            (folder / "ignore").write_text("*.ignored\n")
            run_git(self.repo, "config", "core.excludesFile", str(folder / "ignore"))
        self.is_born = chance.random() < 0.9
        for name in self.names(12):
            self.write(self.repo / name)
        if chance.random() < 0.5:
            (self.repo / ".gitattributes").write_text(
                chance.choice(["* text=auto\n", "*.txt eol=crlf\n", "*.bin binary\n"])
            )
        run_git(self.repo, "add", "-A")
        if self.is_born:
            self.commit()
            self.dress()
        self.disturb()

    def names(self, count: int) -> list[str]:
        stems = ["a", "B b", "dir/c", "dir/deep/d", "ünï", "-x", "tab\t", "e'f", "g.ignored", ".gitignore"]
        endings = [".txt", ".bin", ".py", ""]
        return [self.chance.choice(stems) + str(number) + self.chance.choice(endings) for number in range(count)]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self.chance.choice(["one", "two", "three", "\0"]) for _ in range(self.chance.randint(0, 30))]
        path.write_bytes(self.chance.choice(["\n", "\r\n"]).join(lines).encode())

    def commit(self) -> None:
        run_git(self.repo, "commit", "-q", "--allow-empty", "-m", "More")

    def dress(self) -> None:
        """Odd forms of a repository; `self.repo` is what is read."""
        chance = self.chance
        if chance.random() < 0.2:
            run_git(self.repo, "gc", "-q")
        if chance.random() < 0.2:
            other = repository(self.folder / "other")
            if "sha256" not in run_git(self.repo, "config", "--list"):
                run_git(self.repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "part")
                self.commit()
                run_git(self.repo / "part", "commit", "-q", "--allow-empty", "-m", "In it")
        form = chance.choice(["plain", "plain", "worktree", "detached", "sparse", "clone", "shallow"])
        if form == "worktree":
            run_git(self.repo, "worktree", "add", "-q", "-b", "beside", str(self.folder / "beside"))
            self.repo = self.folder / "beside"
        elif form == "detached":
            run_git(self.repo, "checkout", "-q", "--detach")
        elif form == "sparse":
            run_git(self.repo, "sparse-checkout", "set", "dir")
        elif form in ("clone", "shallow"):
            depth = ["--depth=1"] if form == "shallow" else ["--shared"]
            source = f"file://{self.repo}" if form == "shallow" else str(self.repo)
            run_git(self.folder, "clone", "-q", *depth, source, "clone")
            self.repo = self.folder / "clone"

    def disturb(self) -> None:
        chance = self.chance
        files = [path for path in sorted(self.repo.rglob("*")) if path.is_file() and ".git" not in path.parts]
        for path in files:
            what = chance.choice(["write", "delete", "chmod", "touch", "link", "stage", "move", *["leave"] * 5])
            name = str(path.relative_to(self.repo))
            if "part" in path.parts:
                continue
            if what == "write":
                self.write(path)
            elif what == "delete":
                path.unlink()
            elif what == "chmod":
                path.chmod(0o755)
            elif what == "touch":
                os.utime(path)
            elif what == "link":
                path.unlink()
                path.symlink_to("nowhere")
            elif what == "stage":
                self.write(path)
                subprocess.run(["git", "add", "--", name], cwd=self.repo, capture_output=True, timeout=30)
            else:
                subprocess.run(
                    ["git", "mv", "--", name, name + ".moved"], cwd=self.repo, capture_output=True, timeout=30
                ) if what == "move" else None
        for name in self.names(chance.randint(0, 4)):
            self.write(self.repo / ("new " + name))

    def said(self, *words: str) -> bytes:
        process = subprocess.run(["git", *words], cwd=self.repo, capture_output=True, timeout=60)
        assert process.returncode == 0, process.stderr
        return process.stdout


@pytest.mark.parametrize("seed", range(16))
def test_what_is_read_is_what_git_itself_says(tmp_path: Path, seed: int) -> None:
    made = Generated(tmp_path, seed)
    own = [path for path in (tmp_path / "repo" / ".git").rglob("*") if path.is_file()]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in own}
    changed = git.changed(str(made.repo), 10_000, LIMIT)
    diff = git.diff(str(made.repo), "", 1_000_000, LIMIT)
    survey = git.survey([str(made.repo)], LIMIT)
    found = git.look(str(made.repo), LIMIT)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in own} == before
    base = "HEAD" if made.is_born else made.said("hash-object", "-t", "tree", "/dev/null").decode().strip()
    names = made.said("diff", "--name-status", "-z", "--find-renames", "--ignore-submodules=dirty", base).split(b"\0")[
        :-1
    ]
    told: set[str] = set()
    while names:
        letter = names.pop(0)[:1]
        if letter == b"R":
            names.pop(0)
        told.add(names.pop(0).decode("utf-8", "backslashreplace"))
    others = made.said("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    files = changed["files"]
    assert {each["path"] for each in files if each["status"] != "untracked"} == told  # type: ignore[attr-defined]
    assert [each["path"] for each in files if each["status"] == "untracked"] == [  # type: ignore[attr-defined]
        name.decode("utf-8", "backslashreplace") for name in others
    ]
    plain = made.said("diff", "--find-renames", "--ignore-submodules=dirty", base)
    assert diff["diff"] == plain.decode("utf-8", "replace")
    status = made.said("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
    dirty = {each["path"]: each["is_dirty"] for each in survey["worktrees"]}  # type: ignore[attr-defined]
    assert dirty[str(made.repo)] == bool(status)
    assert found["branch"] == made.said("branch", "--show-current").decode().strip()
    if made.is_born:
        assert found["commit"] == made.said("rev-parse", "HEAD").decode().strip()
