"""What is asked of git, where the repository is: which work tree a folder is in, what has changed there, one more of
them, one less. Each is a fixed command; nobody outside says what git is to run.

Everything is read through a view (`git_view.py`), in which git runs nothing that a repository names. A new work tree is
made in one of two ways. For the user it is `git worktree add`, with the filters of their settings, without which the
files would be other than theirs, and without hooks. For anybody else it is made through a view as well
(`git_plain.py`): its files are as they are in the commit, whatever a filter would make of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time

from agtmux.probe import git_plain
from agtmux.probe.git_view import (
    GitError,
    OwnSettings,
    Repository,
    Slow,
    View,
    find_git,
    find_repository,
    is_true,
    shown,
    text,
)

__all__ = [
    "GitError",
    "Slow",
    "add",
    "changed",
    "check_removable",
    "diff",
    "find_git",
    "folder_name",
    "look",
    "remove",
    "survey",
    "undo",
]

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--find-renames")
# Since 2.54 hooks are also settings, which `core.hooksPath` has no say in.
_HOOKS = r"^hook\..*\.(command|event|enabled)$"
# Of all names in a large repository.
_MOST_NAMES = 100_000_000
_MOST_WORKTREES = 200
_MOST_FILES = 20_000
# Of names, so that an answer fits into a frame however it has to be written.
_MOST_CHARACTERS = 500_000
_LONGEST_NAME = 80
_STATUSES = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "added", "T": "modified"}
# What a work tree is in the middle of, by the files that git keeps meanwhile.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_SUBMODULE = b"160000 "


def look(path: str, limit: float) -> dict[str, object]:
    """Which work tree a folder is in. Raises GitError where it is in none."""
    until = time.monotonic() + limit
    repository = find_repository(path, until)
    with View(repository, until) as view:
        return _found(repository, view, until)


def changed(path: str, most: int, limit: float) -> dict[str, object]:
    """What differs from the last commit, what git does not know yet included."""
    until = time.monotonic() + limit
    repository = _work_tree(path, until)
    with View(repository, until) as view:
        words = view.read("diff", "--name-status", "-z", *_DIFF, _base(view), "--").split(b"\0")
        untracked = _untracked(view)
        branch = _branch(view)
    files, at = [], 0
    while at + 1 < len(words):
        letter = words[at][:1].decode("ascii", "replace")
        is_pair = letter in "RC"
        name, before = words[at + (2 if is_pair else 1)], words[at + 1] if letter == "R" else b""
        files.append({"path": text(name), "status": _STATUSES.get(letter, "modified"), "from": text(before)})
        at += 3 if is_pair else 2
    files += [{"path": name, "status": "untracked", "from": ""} for name in untracked]
    # What is in conflict is named twice.
    once = list({(each["path"], each["status"]): each for each in files}.values())
    told = _that_fit([each["path"] + each["from"] for each in once])
    return {"top": repository.top, "branch": branch, "files": once[: min(most, told)], "total": len(once)}


def diff(path: str, only: str, most: int, limit: float) -> dict[str, object]:
    """The same as text, up to so many bytes, of one file or all; files that git does not know yet by name."""
    until = time.monotonic() + limit
    repository = _work_tree(path, until)
    form = ("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
    with View(repository, until) as view:
        answer = view.run("diff", *_DIFF, *form, _base(view), "--", *([only] if only else []), most=most + 1)
        if answer.status and not answer.is_cut:
            raise GitError("git refused: %s" % answer.complaint)
        untracked = [
            name for name in _untracked(view) if not only or name == only or name.startswith(only.rstrip("/") + "/")
        ]
        branch = _branch(view)
    is_cut = answer.is_cut or len(answer.output) > most
    output = answer.output[:most]
    if is_cut:
        output = output[: output.rfind(b"\n") + 1]
    return {
        "top": repository.top,
        "branch": branch,
        "diff": output.decode("utf-8", "replace"),
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
            repository = find_repository(path, until)
            with View(repository, until) as view:
                main = _main(repository)
                if (repository.top or main) not in worktrees:
                    room = _MOST_WORKTREES - len(worktrees)
                    for each in _listed(repository, view)[:room]:
                        worktrees[str(each["path"])] = {**each, "repository": main, "is_dirty": None}
        except Slow:
            break
        except GitError:
            continue
        places[path] = repository.top or main
    for each in worktrees.values():
        if not each["is_bare"] and not each["is_gone"] and time.monotonic() < until:
            try:
                each["is_dirty"] = _is_dirty_at(str(each["path"]), until)
            except GitError:
                # Told as not known.
                continue
    return {"worktrees": list(worktrees.values()), "places": places}


def add(path: str, branch: str, folder: str, is_apart: bool, limit: float, is_plain: bool = False) -> dict[str, object]:
    """The work tree that has that branch, which is made if there is none, and the branch if there is none of that name.
    `folder` is where new ones lie; `is_apart` keeps it from being the repository's own folder. With `is_plain` nothing
    that the repository names is run."""
    until = time.monotonic() + limit
    repository = find_repository(path, until)
    with View(repository, until) as view:
        found = _found(repository, view, until)
        if found["is_submodule"]:
            raise GitError("%s is in a submodule, which gets no work trees from here; make one by hand" % shown(path))
        if branch.startswith("-") or view.run("check-ref-format", "refs/heads/" + branch).status:
            raise GitError("%s is no name for a branch" % shown(branch))
        for each in _listed(repository, view):
            if each["branch"] != branch:
                continue
            top = each["path"]
            if each["is_main"] and is_apart:
                raise GitError("%s is checked out in %s itself; name another branch" % (shown(branch), shown(str(top))))
            if each["is_gone"]:
                raise GitError("git has %s in %s, which is gone; run `git worktree prune`" % (shown(branch), top))
            return {"top": top, "branch": branch, "is_new": False, "is_new_branch": False, "unfiltered": 0}
        where = _free_folder(_expanded(folder, found), branch)
        is_known = not view.run("show-ref", "--verify", "--quiet", "refs/heads/" + branch).status
        start = "refs/heads/" + branch if is_known else "HEAD"
        upstream = ""
        if not is_known:
            # One that a remote has is followed, as `git checkout` would.
            listed = view.read("for-each-ref", "--format=%(refname)", "refs/remotes/*/" + branch)
            remotes = listed.decode("utf-8", "replace").split()
            if len(remotes) == 1:
                start = upstream = remotes[0]
            elif not found["commit"]:
                raise GitError(
                    "%s has no commit yet to begin a branch at; make the first one" % shown(_main(repository))
                )
        unfiltered = 0
        if is_plain:
            unfiltered = git_plain.make(repository, view, where, branch, start, upstream, until)
    if not is_plain:
        new = [] if is_known else ["--track" if upstream else "--no-track", "-b", branch]
        git = OwnSettings(path, until, _without_hooks(repository), may_fetch=True)
        answer = git.run("worktree", "add", *new, "--", where, branch if is_known else start)
        if answer.status:
            raise GitError("git made no work tree: %s" % answer.complaint)
    top = os.path.realpath(where)
    return {"top": top, "branch": branch, "is_new": True, "is_new_branch": not is_known, "unfiltered": unfiltered}


def check_removable(path: str, limit: float) -> dict[str, object]:
    """Raises GitError if anything would be lost with that work tree."""
    until = time.monotonic() + limit
    repository = _work_tree(path, until)
    top = repository.top
    if repository.own == repository.common:
        raise GitError("%s is the repository itself and stays" % shown(top))
    if any(os.path.exists(os.path.join(repository.own, name)) for name in _UNFINISHED):
        raise GitError("%s is in the middle of a merge, a rebase or the like; end that first" % shown(top))
    with View(repository, until) as view:
        if _is_dirty(view):
            raise GitError("%s has changes that are not committed; commit them or throw them away first" % shown(top))
        overlooked = _overlooked(view, top)
        if overlooked:
            raise GitError(
                "git was told to overlook changes of %s in %s (assume-unchanged or skip-worktree); take that back first"
                % (shown(overlooked), shown(top))
            )
        if any(entry.startswith(_SUBMODULE) for entry in _entries(view)):
            raise GitError("%s has submodules, which may hold work of their own; remove it by hand" % shown(top))
        branch, commit = _branch(view), _commit(view)
        # A stash has them too, and is dropped without a thought.
        lasting = ("refs/heads", "refs/tags", "refs/remotes")
        holding = view.read("for-each-ref", "--format=%(refname)", "--contains", "HEAD", *lasting) if commit else b""
        refs = holding.decode("utf-8", "replace").split()
    if commit and not [ref for ref in refs if ref != "refs/heads/%s" % branch]:
        raise GitError("%s has commits that are nowhere else; push or merge them first" % shown(top))
    return {"top": top, "branch": branch}


def remove(path: str, limit: float) -> dict[str, object]:
    """The work tree, and never its branch."""
    until = time.monotonic() + limit
    removed = check_removable(path, limit)
    repository = _work_tree(str(removed["top"]), until)
    main = _main(repository)
    git = OwnSettings(main, until)
    # Of what was changed this very moment. git's own check comes to the same, but would run the filters and look into
    # submodules by their own settings, so it is told (`--force`) to leave that out. It still removes nothing but a work
    # tree that it knows and that is not locked.
    if _is_dirty_at(repository.top, until):
        raise GitError("git kept the work tree: %s was changed just now" % shown(repository.top))
    answer = git.run("worktree", "remove", "--force", "--", str(removed["top"]))
    if answer.status:
        raise GitError("git kept the work tree: %s" % answer.complaint)
    # The folder that new ones are put into by default goes with the last of them. Another folder is the user's own.
    if os.path.dirname(str(removed["top"])) == main + ".worktrees":
        with contextlib.suppress(OSError):
            os.rmdir(main + ".worktrees")
    return {**removed, "main": main}


def undo(path: str, branch: str, limit: float) -> dict[str, object]:
    """Remove a work tree that was made for something that then did not happen, and that branch, if one is named. Raises
    GitError, and leaves both, if anything was done there since."""
    until = time.monotonic() + limit
    removed = remove(path, limit)
    if branch:
        repository = find_repository(str(removed["main"]), until)
        with View(repository, until) as view:
            holders = [each["path"] for each in _listed(repository, view) if each["branch"] == branch]
            if holders:
                raise GitError("git kept the branch %s: it is checked out in %s" % (shown(branch), holders[0]))
            git_plain.delete_branch(repository, view, branch, until)
    # The folder for all of them may have been made for this one; it stays if there are others.
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
    return removed


def _work_tree(path: str, until: float) -> Repository:
    repository = find_repository(path, until)
    if repository.is_bare:
        raise GitError("%s is a bare repository, without files" % shown(path))
    return repository


def _found(repository: Repository, view: View, until: float) -> dict[str, object]:
    return {
        "top": repository.top,
        "main": _main(repository),
        # What all of its work trees share.
        "common": repository.common,
        "branch": _branch(view),
        "commit": _commit(view),
        "is_main": repository.own == repository.common,
        "is_bare": repository.is_bare,
        "is_submodule": bool(repository.top) and _is_submodule(repository.top, until),
    }


def _main(repository: Repository) -> str:
    """The folder that the repository itself is in, as git names it."""
    common: str = repository.common
    if repository.own == common and repository.top:
        return str(repository.top)
    is_inside = not repository.is_bare and os.path.basename(common) == ".git"
    return os.path.dirname(common) if is_inside else common


def _is_submodule(top: str, until: float) -> bool:
    """Whether another repository around it has it as a part."""
    try:
        around = find_repository(os.path.dirname(top), until)
        if not around.top:
            return False
        with View(around, until) as view:
            entry = view.read("ls-files", "--stage", "-z", "--", os.path.relpath(top, around.top))
    except Slow:
        raise
    except GitError:
        return False
    return entry.startswith(_SUBMODULE)


def _branch(view: View) -> str:
    head = view.line("symbolic-ref", "-q", "HEAD")
    return head[len("refs/heads/") :] if head.startswith("refs/heads/") else ""


def _commit(view: View) -> str:
    """The last commit; empty before the first. Raises GitError where there is one that cannot be read: all files would
    be told as new, and a work tree as one that has no commits to lose."""
    answer = view.run("rev-parse", "-q", "--verify", "HEAD^{commit}")
    if not answer.status:
        return text(answer.output).rstrip("\n")
    is_unborn = view.run("rev-parse", "-q", "--verify", "HEAD").status == 1 and not view.has_file(
        view.line("symbolic-ref", "-q", "HEAD") or "HEAD"
    )
    if not is_unborn:
        raise GitError("its last commit cannot be read: %s" % answer.complaint)
    return ""


def _base(view: View) -> str:
    """What the files are compared with: the last commit, or nothing before the first."""
    return _commit(view) or view.line("hash-object", "-t", "tree", "--stdin")


def _untracked(view: View) -> list[str]:
    names = view.read("ls-files", "-z", "--others", "--exclude-standard", "--full-name")
    return [text(name) for name in names.split(b"\0") if name]


def _entries(view: View) -> list[bytes]:
    return view.read("ls-files", "--stage", "-z", most=_MOST_NAMES).split(b"\0")


def _overlooked(view: View, top: str) -> str:
    """A file that is there and that git does not compare, on somebody's word; empty if there is none."""
    for line in view.read("ls-files", "-v", "-z", most=_MOST_NAMES).split(b"\0"):
        # A small letter is assume-unchanged. What a sparse checkout leaves out is S, and not there.
        tag, name = line[:1], line[2:]
        if (tag.islower() or tag == b"S") and os.path.lexists(os.path.join(os.fsencode(top), name)):
            return text(name)
    return ""


def _listed(repository: Repository, view: View) -> list[dict[str, object]]:
    """All work trees of the repository, its own folder first."""
    # Older than 2.36 it knows no -z, and paths with a newline cannot be read.
    answer = view.run("worktree", "list", "--porcelain", "-z")
    lines = (
        answer.output.split(b"\0") if not answer.status else view.read("worktree", "list", "--porcelain").split(b"\n")
    )
    found: list[dict[str, object]] = []
    for line in lines:
        word, _, value = line.partition(b" ")
        if word == b"worktree":
            is_gone = not os.path.isdir(value)
            found.append({"path": text(value), "branch": "", "commit": "", "is_bare": False, "is_gone": is_gone})
            found[-1]["is_main"] = len(found) == 1
        elif word == b"branch":
            found[-1]["branch"] = text(value)[len("refs/heads/") :]
        elif word == b"HEAD":
            found[-1]["commit"] = text(value)
    if not found:
        raise GitError("git names no work tree")
    # The first is the view itself, in place of the repository's own folder.
    is_bare = repository.is_bare or is_true(repository.settings, "core.bare")
    found[0].update(path=_main(repository), is_bare=is_bare, is_gone=False)
    if is_bare:
        found[0].update(branch="", commit="")
    return found


def _is_dirty_at(path: str, until: float) -> bool:
    with View(_work_tree(path, until), until) as view:
        return _is_dirty(view)


def _is_dirty(view: View) -> bool:
    """The first thing that git says is enough."""
    # A setting may hide new files.
    answer = view.run("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", most=1)
    if answer.status and not answer.is_cut:
        raise GitError("git refused: %s" % answer.complaint)
    return bool(answer.output)


def _without_hooks(repository: Repository) -> tuple[str, ...]:
    """Settings by which git runs no hook that is a setting. For what the user asks for: a hook that is set in the
    moment after is run, as by any git command of theirs."""
    words: dict[str, None] = {}
    for key in repository.settings:
        if re.match(_HOOKS, key, re.DOTALL):
            if "=" in key:
                raise GitError("a hook in its settings has a name that cannot be switched off: %s" % shown(key))
            words[key[: key.rindex(".")] + ".enabled=false"] = None
    return tuple(word for setting in words for word in ("-c", setting))


def _that_fit(names: list[str]) -> int:
    """How many of them can be told."""
    left = _MOST_CHARACTERS
    for number, name in enumerate(names[:_MOST_FILES]):
        left -= len(name)
        if left < 0:
            return number
    return min(len(names), _MOST_FILES)


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
    raise GitError("%s is in the way; move it" % shown(os.path.join(folder, name)))


def folder_name(branch: str) -> str:
    """`feature/auth` lies in `feature-auth`."""
    name = re.sub(r"[^\w.+-]+", "-", branch).strip("-.")
    return name[:_LONGEST_NAME] or "worktree"
