"""What is asked of git, where the repository is: which work tree a folder is in, what has changed there, one more of
them, one less. Each is a fixed command; nobody outside says what git is to run.

git runs programs on the say of a repository's own settings: hooks, external diffs, text conversions, filters, a file
system monitor. An agent may have written those, so none of them is run to look at something. Only a checkout runs the
filters, without which the files would be other than their user's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from typing import Iterator

# What a command said, whether that was cut off, and what it complained of.
_Said = namedtuple("_Said", "status output is_cut complaint")

_ELSEWHERE = "/opt/homebrew/bin:/usr/local/bin:/opt/local/bin:/usr/bin:/bin"
_APPLES = "/usr/bin/git"
_APPLES_TOOLS = ("/Library/Developer/CommandLineTools/usr/bin/git", "/Applications/Xcode.app")
_ALWAYS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "--no-pager", "--literal-pathspecs")
# Nor does it get what a partial clone has not got, by whatever program the repository names for that. A setting would
# not do: the repository's own for one protocol goes before ours for all.
_READING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--find-renames")
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
# Since 2.54 hooks are also settings, which `core.hooksPath` has no say in.
_HOOKS = r"^hook\..*\.(command|event|enabled)$"
_MOST_SAID = 8_000_000
# Of all names in a large repository.
_MOST_NAMES = 100_000_000
_MOST_WORKTREES = 200
_MOST_FILES = 20_000
# Of names, so that an answer fits into a frame however it has to be written.
_MOST_CHARACTERS = 500_000
_LONGEST_NAME = 80
_CHUNK = 65_536
_STATUSES = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "added", "T": "modified"}
# What a work tree is in the middle of, by the files that git keeps meanwhile.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")


class GitError(Exception):
    """It cannot be done, and nothing was; the message says why."""


class Slow(GitError):
    """git did not come to an end."""


def look(path: str, limit: float) -> dict[str, object]:
    """Which work tree a folder is in. Raises GitError where it is in none."""
    git = _Git(path, limit)
    is_bare = git.line("rev-parse", "--is-bare-repository") == "true"
    is_inside = git.line("rev-parse", "--is-inside-work-tree") == "true"
    if not is_inside and not is_bare:
        raise GitError("%s is inside the folder that git itself keeps" % _shown(path))
    own, common = (git.path("rev-parse", word) for word in ("--absolute-git-dir", "--git-common-dir"))
    top = "" if is_bare else git.path("rev-parse", "--show-toplevel")
    is_main = own == common
    main = common if is_bare else top if is_main else git.listed()[0]["path"]
    head = git.said("symbolic-ref", "-q", "HEAD").output.decode("utf-8", "replace").rstrip("\n")
    return {
        "top": top,
        "main": main,
        # What all of its work trees share.
        "common": common,
        "branch": head[len("refs/heads/") :] if head.startswith("refs/heads/") else "",
        "commit": git.line("rev-parse", "-q", "--verify", "HEAD^{commit}"),
        "is_main": is_main,
        "is_bare": is_bare,
        "is_submodule": bool(git.line("rev-parse", "--show-superproject-working-tree")),
    }


def changed(path: str, most: int, limit: float) -> dict[str, object]:
    """What differs from the last commit, what git does not know yet included."""
    git, found = _work_tree(path, limit)
    with git.own_index():
        words = git.read("diff", "--name-status", "-z", *_DIFF, git.base(found), "--").split(b"\0")
    files, at = [], 0
    while at + 1 < len(words):
        letter = words[at][:1].decode("ascii", "replace")
        is_pair = letter in "RC"
        name, before = words[at + (2 if is_pair else 1)], words[at + 1] if letter == "R" else b""
        files.append({"path": _text(name), "status": _STATUSES.get(letter, "modified"), "from": _text(before)})
        at += 3 if is_pair else 2
    files += [{"path": name, "status": "untracked", "from": ""} for name in git.untracked()]
    # What is in conflict is named twice.
    once = list({(each["path"], each["status"]): each for each in files}.values())
    told = _that_fit([each["path"] + each["from"] for each in once])
    return {**_place(found), "files": once[: min(most, told)], "total": len(once)}


def diff(path: str, only: str, most: int, limit: float) -> dict[str, object]:
    """The same as text, up to so many bytes, of one file or all; files that git does not know yet by name."""
    git, found = _work_tree(path, limit)
    form = ("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
    with git.own_index():
        said = git.said("diff", *_DIFF, *form, git.base(found), "--", *([only] if only else []), most=most + 1)
    if said.status and not said.is_cut:
        raise GitError("git refused: %s" % said.complaint)
    is_cut = said.is_cut or len(said.output) > most
    text = said.output[:most]
    if is_cut:
        text = text[: text.rfind(b"\n") + 1]
    untracked = [
        name for name in git.untracked() if not only or name == only or name.startswith(only.rstrip("/") + "/")
    ]
    return {
        **_place(found),
        "diff": text.decode("utf-8", "replace"),
        "is_cut": is_cut,
        "untracked": untracked[: _that_fit(untracked)],
    }


def survey(paths: list[str], limit: float) -> dict[str, object]:
    """The work trees of all repositories that these folders are in, and in which of them each folder is."""
    until = time.monotonic() + limit
    worktrees: dict[str, dict[str, object]] = {}
    places = {}
    for path in paths:
        try:
            found = look(path, until - time.monotonic())
            if str(found["top"] or found["main"]) not in worktrees:
                room = _MOST_WORKTREES - len(worktrees)
                for each in _Git(path, until - time.monotonic()).listed()[:room]:
                    top = str(found["top"]) if each["is_main"] and found["is_main"] and found["top"] else each["path"]
                    worktrees[str(top)] = {**each, "path": top, "repository": found["main"], "is_dirty": None}
        except Slow:
            break
        except GitError:
            continue
        places[path] = str(found["top"] or found["main"])
    for each in worktrees.values():
        if not each["is_bare"] and not each["is_gone"] and time.monotonic() < until:
            try:
                each["is_dirty"] = _is_dirty(_Git(str(each["path"]), until - time.monotonic()))
            except GitError:
                # Told as not known.
                continue
    return {"worktrees": list(worktrees.values()), "places": places}


def add(path: str, branch: str, folder: str, is_apart: bool, limit: float) -> dict[str, object]:
    """The work tree that has that branch, which is made if there is none, and the branch if there is none of that name.
    `folder` is where new ones lie; `is_apart` keeps it from being the repository's own folder."""
    found = look(path, limit)
    if found["is_submodule"]:
        raise GitError("%s is in a submodule, which gets no work trees from here; make one by hand" % _shown(path))
    git = _Git(path, limit, is_reading=False)
    if branch.startswith("-") or git.said("check-ref-format", "refs/heads/" + branch).status:
        raise GitError("%s is no name for a branch" % _shown(branch))
    for each in git.listed():
        if each["branch"] != branch:
            continue
        top = found["top"] if each["is_main"] and found["is_main"] else each["path"]
        if each["is_main"] and is_apart:
            raise GitError("%s is checked out in %s itself; name another branch" % (_shown(branch), _shown(str(top))))
        if each["is_gone"]:
            raise GitError("git has %s in %s, which is gone; run `git worktree prune`" % (_shown(branch), each["path"]))
        return {"top": top, "branch": branch, "is_new": False, "is_new_branch": False}
    where = _free_folder(_expanded(folder, found), branch)
    is_known = not git.said("show-ref", "--verify", "--quiet", "refs/heads/" + branch).status
    start = [branch] if is_known else ["HEAD"]
    new = []
    if not is_known:
        # One that a remote has is followed, as `git checkout` would.
        listed = git.read("for-each-ref", "--format=%(refname)", "refs/remotes/*/" + branch).decode("utf-8", "replace")
        theirs = listed.split()
        new = ["--track" if len(theirs) == 1 else "--no-track", "-b", branch]
        if len(theirs) == 1:
            start = theirs
        elif not found["commit"]:
            raise GitError("%s has no commit yet to begin a branch at; make the first one" % _shown(str(found["main"])))
    said = git.said("worktree", "add", *new, "--", where, *start)
    if said.status:
        raise GitError("git made no work tree: %s" % said.complaint)
    return {"top": os.path.realpath(where), "branch": branch, "is_new": True, "is_new_branch": not is_known}


def check_removable(path: str, limit: float) -> dict[str, object]:
    """Raises GitError if anything would be lost with that work tree."""
    git, found = _work_tree(path, limit)
    top = str(found["top"])
    if found["is_main"]:
        raise GitError("%s is the repository itself and stays" % _shown(top))
    own = git.path("rev-parse", "--absolute-git-dir")
    if any(os.path.exists(os.path.join(own, name)) for name in _UNFINISHED):
        raise GitError("%s is in the middle of a merge, a rebase or the like; end that first" % _shown(top))
    if _is_dirty(git):
        raise GitError("%s has changes that are not committed; commit them or throw them away first" % _shown(top))
    overlooked = git.overlooked(top)
    if overlooked:
        raise GitError(
            "git was told to overlook changes of %s in %s (assume-unchanged or skip-worktree); take that back first"
            % (_shown(overlooked), _shown(top))
        )
    # A stash has them too, and is dropped without a thought.
    lasting = ("refs/heads", "refs/tags", "refs/remotes")
    holding = git.read("for-each-ref", "--format=%(refname)", "--contains", "HEAD", *lasting)
    refs = holding.decode("utf-8", "replace").split()
    if found["commit"] and not [ref for ref in refs if ref != "refs/heads/%s" % found["branch"]]:
        raise GitError("%s has commits that are nowhere else; push or merge them first" % _shown(top))
    return {"top": top, "branch": found["branch"]}


def remove(path: str, limit: float) -> dict[str, object]:
    """The work tree, and never its branch. git itself refuses if anything would be lost that `check_removable` cannot
    see, such as what was changed this very moment."""
    removed = check_removable(path, limit)
    main = str(look(path, limit)["main"])
    # A setting may hide new files from git's own check.
    words = ("-c", "status.showUntrackedFiles=normal", "worktree", "remove", "--", str(removed["top"]))
    said = _Git(main, limit, is_reading=False).said(*words)
    if said.status:
        raise GitError("git kept the work tree: %s" % said.complaint)
    return {**removed, "main": main}


def undo(path: str, branch: str, limit: float) -> dict[str, object]:
    """Remove a work tree that was made for something that then did not happen, and that branch, if one is named. Raises
    GitError, and leaves both, if anything was done there since."""
    removed = remove(path, limit)
    if branch:
        said = _Git(str(removed["main"]), limit, is_reading=False).said("branch", "-D", "--", branch)
        if said.status:
            raise GitError("git kept the branch %s: %s" % (_shown(branch), said.complaint))
    # The folder for all of them may have been made for this one; it stays if there are others.
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
    return removed


class _Git:
    """git in one folder, until a deadline."""

    def __init__(self, folder: str, limit: float, *, is_reading: bool = True) -> None:
        if not os.path.isabs(folder) or "\0" in folder:
            raise GitError("%s is no path from the root" % _shown(folder))
        if not os.path.isdir(folder):
            raise GitError("there is no folder %s" % _shown(folder))
        self._until = time.monotonic() + limit
        self._index = ""
        self._environment = dict(_READING) if is_reading else {}
        self._words = [find_git(), *_ALWAYS, "-C", folder]
        if self.said("rev-parse", "--git-dir").status:
            complaint = self.said("rev-parse", "--git-dir").complaint
            if "not a git repository" in complaint:
                raise GitError("%s is in no git repository" % _shown(folder))
            raise GitError("git refuses %s: %s" % (_shown(folder), complaint))
        self._words[1:1] = self._without_programs(is_reading)

    def said(self, *words: str, most: int = _MOST_SAID) -> _Said:
        index = {"GIT_INDEX_FILE": self._index} if self._index else {}
        return _run([*self._words, *words], self._until, most, {**self._environment, **index})

    @contextlib.contextmanager
    def own_index(self) -> Iterator[None]:
        """`git diff` writes what it has found out into the index, also if it is told to leave that. It gets a copy."""
        with tempfile.TemporaryDirectory(prefix="agtmux-") as folder:
            index = os.path.join(folder, "index")
            # There is none before the first file was added. With its time: git looks into a file that has been written
            # in the same second as the index.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(self.path("rev-parse", "--git-path", "index"), index)
            self._index = index
            try:
                yield
            finally:
                self._index = ""

    def read(self, *words: str, most: int = _MOST_SAID) -> bytes:
        """All that it says; raises GitError if it refuses, or says too much."""
        said = self.said(*words, most=most)
        if said.status or said.is_cut:
            raise GitError("git refused: %s" % (said.complaint or "there is too much of it"))
        output: bytes = said.output
        return output

    def line(self, *words: str) -> str:
        """Empty if it refuses."""
        said = self.said(*words)
        return "" if said.status else said.output.decode("utf-8", "replace").rstrip("\n")

    def path(self, *words: str) -> str:
        """A path with all links followed. It is told to others, so it has to be text."""
        found = self.read(*words)
        try:
            return os.path.realpath(os.path.join(self._words[-1], found[:-1].decode()))
        except UnicodeDecodeError:
            raise GitError("its path is not UTF-8: %s" % _text(found[:-1])) from None

    def base(self, found: dict[str, object]) -> str:
        """What the files are compared with: the last commit, or nothing before the first."""
        return "HEAD" if found["commit"] else self.line("hash-object", "-t", "tree", "--stdin")

    def untracked(self) -> list[str]:
        said = self.read("ls-files", "-z", "--others", "--exclude-standard", "--full-name")
        return [_text(name) for name in said.split(b"\0") if name]

    def overlooked(self, top: str) -> str:
        """A file that is there and that git does not compare, on somebody's word; empty if there is none."""
        for line in self.read("ls-files", "-v", "-z", most=_MOST_NAMES).split(b"\0"):
            # A small letter is assume-unchanged. What a sparse checkout leaves out is S, and not there.
            tag, name = line[:1], line[2:]
            if (tag.islower() or tag == b"S") and os.path.lexists(os.path.join(os.fsencode(top), name)):
                return _text(name)
        return ""

    def listed(self) -> list[dict[str, object]]:
        """All work trees of the repository, its own folder first."""
        # Older than 2.36 it knows no -z, and paths with a newline cannot be read.
        said = self.said("worktree", "list", "--porcelain", "-z")
        lines = (
            said.output.split(b"\0") if not said.status else self.read("worktree", "list", "--porcelain").split(b"\n")
        )
        found: list[dict[str, object]] = []
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"worktree":
                is_gone = not os.path.isdir(value)
                found.append({"path": _text(value), "branch": "", "commit": "", "is_bare": False, "is_gone": is_gone})
                found[-1]["is_main"] = len(found) == 1
            elif word == b"branch":
                found[-1]["branch"] = _text(value)[len("refs/heads/") :]
            elif word == b"HEAD":
                found[-1]["commit"] = _text(value)
            elif word == b"bare":
                found[-1]["is_bare"] = True
        if not found:
            raise GitError("git names no work tree")
        return found

    def _without_programs(self, is_reading: bool) -> list[str]:
        """Settings by which git runs no hook, and to read something converts nothing either."""
        pattern = "%s|%s" % (_FILTERS, _HOOKS) if is_reading else _HOOKS
        names = self.said("config", "--null", "--name-only", "--get-regexp", pattern).output.split(b"\0")
        words = []
        for name in dict.fromkeys(filter(None, names)):
            if b"=" in name:
                raise GitError("a program in its settings has a name that cannot be switched off: %s" % _text(name))
            off = name + b"="
            if name.startswith(b"hook."):
                off = name[: name.rindex(b".")] + b".enabled=false"
            elif name.endswith(b".required"):
                off += b"false"
            words += ["-c", os.fsdecode(off)]
        return words


def find_git() -> str:
    path = shutil.which("git") or shutil.which("git", path=_ELSEWHERE)
    # Apple's own is a placeholder, which asks the user to install the real one when it is run.
    is_placeholder = sys.platform == "darwin" and path == _APPLES and not any(map(os.path.exists, _APPLES_TOOLS))
    if path is None or is_placeholder:
        raise GitError("git is not installed there")
    return path


def _run(words: list[str], until: float, most: int, more: dict[str, str]) -> _Said:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LC_", "LANGUAGE"))
    }
    environment.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C", **more)
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment,
                # What it starts ends with it.
                start_new_session=True,
            )
        except OSError as error:
            raise GitError("git cannot be run: %s" % error.strerror) from None
        try:
            output, is_cut = _gathered(process, until, most)
            if not is_cut:
                process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            raise Slow("git did not come to an end in time") from None
        finally:
            if process.returncode is None:
                _kill(process)
            if process.stdout is not None:
                process.stdout.close()
        complaints.seek(0)
        return _Said(
            process.returncode, output, is_cut, _shown(_text(complaints.read(1_000)).strip()) or "no reason given"
        )


def _gathered(process: subprocess.Popen[bytes], until: float, most: int) -> tuple[bytes, bool]:
    """What it says, and whether that is not all."""
    said: list[bytes] = []
    size = 0
    assert process.stdout is not None
    reading = process.stdout.fileno()
    while size <= most:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            raise subprocess.TimeoutExpired("git", 0)
        chunk = os.read(reading, _CHUNK)
        if not chunk:
            return b"".join(said), False
        said.append(chunk)
        size += len(chunk)
    return b"".join(said)[:most], True


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()


def _work_tree(path: str, limit: float) -> tuple[_Git, dict[str, object]]:
    found = look(path, limit)
    if found["is_bare"]:
        raise GitError("%s is a bare repository, without files" % _shown(path))
    # At its top, or names would be those below the folder.
    return _Git(str(found["top"]), limit), found


def _that_fit(names: list[str]) -> int:
    """How many of them can be told."""
    left = _MOST_CHARACTERS
    for number, name in enumerate(names[:_MOST_FILES]):
        left -= len(name)
        if left < 0:
            return number
    return min(len(names), _MOST_FILES)


def _place(found: dict[str, object]) -> dict[str, object]:
    return {"top": found["top"], "branch": found["branch"]}


def _is_dirty(git: _Git) -> bool:
    """The first thing that git says is enough."""
    # A setting may hide new files.
    said = git.said("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", most=1)
    if said.status and not said.is_cut:
        raise GitError("git refused: %s" % said.complaint)
    return bool(said.output)


def _expanded(folder: str, found: dict[str, object]) -> str:
    main = str(found["main"])
    if found["is_bare"] or main.endswith(".git"):
        # `parcels.git` and `parcels/.bare` are called parcels, both of them.
        stem = re.sub(r"\.git$", "", os.path.basename(main))
        main = os.path.join(os.path.dirname(main), stem) if stem.strip(".") else os.path.dirname(main)
    return os.path.expanduser(folder.replace("{repository}", main))


def _free_folder(folder: str, branch: str) -> str:
    name = folder_name(branch)
    mark = hashlib.sha256(branch.encode("utf-8", "replace")).hexdigest()[:6]
    for each in (name, "%s-%s" % (name, mark)):
        if not os.path.lexists(os.path.join(folder, each)):
            return os.path.join(folder, each)
    raise GitError("%s is in the way; move it" % _shown(os.path.join(folder, name)))


def folder_name(branch: str) -> str:
    """`feature/auth` lies in `feature-auth`."""
    name = re.sub(r"[^\w.+-]+", "-", branch).strip("-.")
    return name[:_LONGEST_NAME] or "worktree"


def _text(name: bytes) -> str:
    """A name of a file as text; what is none of it is told by its bytes."""
    return name.decode("utf-8", "backslashreplace")


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:300]
