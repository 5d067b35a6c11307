"""A work tree made by hand, for a caller that is not the user: no filter, no hook, no fetch, nothing that the
repository names is run.

`git worktree add` reads the repository's own settings, and no option keeps it from what they may name in the next
version. What it does is little and documented (gitrepository-layout): a folder below `worktrees` with three files, a
`.git` file that leads there, a branch, a checkout. The branch and the checkout are done through a view.

The caller may have put symbolic links into the repository. Nothing is written through one: that would be a file
elsewhere, written with the rights of the daemon.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile

from agtmux.probe.git_view import GitError, OwnSettings, Repository, View, copy_file, shown

_MOST_NAMES = 100_000_000
# What a sparse checkout is known by, where work trees have settings of their own.
_SPARSE = ("core.sparsecheckout", "core.sparsecheckoutcone")
_FILTER = re.compile(r"^filter\.(.+)\.(?:smudge|process)$", re.DOTALL)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_FILTER = (b"unspecified", b"unset", b"set")


def make(repository: Repository, view: View, where: str, branch: str, start: str, upstream: str, until: float) -> int:
    """The work tree `where` on that branch, which begins at `start` if it is not there. Returns how many files a filter
    of the settings would have made other than they are. Leaves nothing behind if it fails."""
    if repository.settings.get("extensions.refstorage") not in (None, b"files"):
        raise GitError("its refs are kept as reftables, for which only the user makes work trees from here")
    ref = "refs/heads/" + branch
    for each in ("worktrees", ref, *(["config"] if upstream else [])):
        _check_no_links(repository.common, each)
    commit = view.line("rev-parse", "-q", "--verify", start + "^{commit}")
    if not commit:
        raise GitError("the commit of %s is not there; fetch it first" % shown(start))
    is_new_branch = bool(view.run("show-ref", "--verify", "--quiet", ref).status)
    try:
        os.makedirs(os.path.dirname(where), exist_ok=True)
        os.mkdir(where)
        admin = _new_admin(repository.common, os.path.basename(where))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(where)
        raise GitError("no work tree can be made in %s: %s" % (shown(where), error.strerror)) from None
    has_branch = False
    try:
        _write_admin(repository, admin, where, ref, until)
        if is_new_branch:
            view.read("update-ref", "-m", "branch: Created from " + start, ref, commit, "0" * len(commit))
            has_branch = True
        tree = repository._replace(path=where, top=where, own=admin, is_bare=False)
        with View(tree, until, is_empty=True) as checkout:
            answer = checkout.run("read-tree", "--reset", "-u", commit)
            if answer.status:
                raise GitError(
                    "its files cannot be checked out: %s. What a partial clone has not got is fetched only for the user"
                    % answer.complaint
                )
            unfiltered = _unfiltered(repository, checkout)
            copy_file(checkout.index, os.path.join(admin, "index"), until)
        if is_new_branch and upstream:
            _follow(repository, branch, upstream, until)
        os.unlink(os.path.join(admin, "locked"))
    except BaseException as error:
        shutil.rmtree(where, ignore_errors=True)
        shutil.rmtree(admin, ignore_errors=True)
        if has_branch:
            view.run("update-ref", "-d", ref, commit)
        if isinstance(error, OSError):
            raise GitError("no work tree can be made in %s: %s" % (shown(where), error.strerror)) from None
        raise
    return unfiltered


def delete_branch(repository: Repository, view: View, branch: str, until: float) -> None:
    """One that no work tree has checked out, with the settings that are about it."""
    ref = "refs/heads/" + branch
    commit = view.line("rev-parse", "-q", "--verify", ref)
    answer = view.run("update-ref", "-d", ref, commit)
    if not commit or answer.status:
        raise GitError("git kept the branch %s: %s" % (shown(branch), answer.complaint))
    _delete_log(repository.common, ref)
    if any(key.startswith("branch.%s." % branch) for key in repository.settings):
        _config(repository, until, "--remove-section", "branch." + branch)


def _check_no_links(folder: str, path: str) -> None:
    """Raise GitError if a part of that path is a symbolic link."""
    for part in path.split("/"):
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            raise GitError("%s is a symbolic link; only the user makes work trees there" % shown(folder))


def _delete_log(common: str, ref: str) -> None:
    """The log of a ref, which is in the way of another ref below that name. A view has no logs, so git leaves it."""
    *folders, name = os.path.join("logs", ref).split("/")
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        at = os.open(common, _FOLDER)
        opened.callback(os.close, at)
        for folder in folders:
            at = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            opened.callback(os.close, at)
        os.unlink(name, dir_fd=at)


def _new_admin(common: str, name: str) -> str:
    """An empty folder below `worktrees`, which nothing else has."""
    folder = os.path.join(common, "worktrees")
    os.makedirs(folder, exist_ok=True)
    for number in range(1_000):
        admin = os.path.join(folder, name + (str(number) if number else ""))
        with contextlib.suppress(FileExistsError):
            os.mkdir(admin)
            return admin
    raise GitError("git keeps too many work trees that are called %s; run `git worktree prune`" % shown(name))


def _write_admin(repository: Repository, admin: str, where: str, ref: str, until: float) -> None:
    # Whoever prunes work trees meanwhile leaves it alone.
    _write(os.path.join(admin, "locked"), "initializing\n")
    _write(os.path.join(admin, "gitdir"), os.path.join(os.path.realpath(where), ".git") + "\n")
    _write(os.path.join(admin, "commondir"), "../..\n")
    _write(os.path.join(admin, "HEAD"), "ref: %s\n" % ref)
    _write(os.path.join(where, ".git"), "gitdir: %s\n" % admin)
    patterns = os.path.join(repository.own, "info", "sparse-checkout")
    if not repository.is_bare and os.path.isfile(patterns):
        os.mkdir(os.path.join(admin, "info"))
        copy_file(patterns, os.path.join(admin, "info", "sparse-checkout"), until)
        given = [(key, repository.settings.get(key)) for key in _SPARSE]
        words = ["\t%s = %s\n" % (key[len("core.") :], value.decode()) for key, value in given if _is_word(value)]
        if "extensions.worktreeconfig" in repository.settings and words:
            _write(os.path.join(admin, "config.worktree"), "[core]\n" + "".join(words))


def _is_word(value: bytes | None) -> bool:
    return value is not None and re.fullmatch(rb"[a-z0-9]{1,8}", value) is not None


def _unfiltered(repository: Repository, checkout: View) -> int:
    found = (_FILTER.match(key) for key, value in repository.settings.items() if value)
    drivers = {os.fsencode(match.group(1)) for match in found if match is not None}
    if not drivers:
        return 0
    with tempfile.TemporaryFile() as names:
        names.write(checkout.read("ls-files", "-z", most=_MOST_NAMES))
        names.seek(0)
        answer = checkout.run("check-attr", "-z", "--stdin", "filter", most=2 * _MOST_NAMES, content=names)
    if answer.status:
        raise GitError("git refused: %s" % answer.complaint)
    values = answer.output.split(b"\0")[2::3]
    return sum(value in drivers and value not in _NO_FILTER for value in values)


def _follow(repository: Repository, branch: str, upstream: str, until: float) -> None:
    """What `--track` writes down, where the remote's branches are kept as every clone keeps them."""
    remote = upstream[len("refs/remotes/") : -len("/" + branch)]
    fetch = repository.settings.get("remote.%s.fetch" % remote) or b""
    if fetch.lstrip(b"+") != os.fsencode("refs/heads/*:refs/remotes/%s/*" % remote):
        return
    _config(repository, until, "branch.%s.remote" % branch, remote)
    _config(repository, until, "branch.%s.merge" % branch, "refs/heads/" + branch)


def _config(repository: Repository, until: float, *words: str) -> None:
    """`git config` on one file reads that file and runs nothing."""
    git = OwnSettings(repository.common, until)
    answer = git.run("config", "--file", os.path.join(repository.common, "config"), *words)
    if answer.status:
        raise GitError("git refused: %s" % answer.complaint)


def _write(path: str, content: str) -> None:
    with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write(content)
