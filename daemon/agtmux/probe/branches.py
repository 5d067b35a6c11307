"""Which git branch a folder is on, read from the repository's own files. git is never run.

Where a folder's repository is, is searched for again every few seconds, so that `git init`, a removed or a moved
repository are noticed. In between only the HEAD file is looked at, and read when it is another than before.
"""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from typing import Callable, Iterable

_SEARCH_AGAIN = 3.0
_HIGHEST_CLIMB = 100
# A path of 4096 bytes after `gitdir: `, or a ref: whoever has more to say is neither.
_LARGEST_FILE = 4_200
_LONGEST_NAME = 200
# What an escape sequence, a right-to-left override or a line break is made of.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Branches:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Folder → when to search again, its HEAD file and the top of its work tree.
        self._places: dict[str, tuple[float, str, str]] = {}
        # HEAD file → what it looked like, and the branch it named.
        self._heads: dict[str, tuple[object, str]] = {}

    def look(self, folders: Iterable[str]) -> dict[str, str]:
        """The branch of each folder; empty outside a repository, on a detached HEAD and where it cannot be read."""
        return {folder: branch for folder, (branch, _) in self.look_at(folders).items()}

    def look_at(self, folders: Iterable[str]) -> dict[str, tuple[str, str]]:
        """The branch of each folder and the top of the work tree that it is in, each empty where there is none."""
        now = self._clock()
        climbed: dict[str, tuple[int | None, str, str]] = {}
        places: dict[str, tuple[float, str, str]] = {}
        heads: dict[str, tuple[object, str]] = {"": (None, "")}
        for folder in folders:
            if folder in places:
                continue
            place = self._places.get(folder)
            if place is None or now >= place[0]:
                place = (now + _SEARCH_AGAIN, *_find_head(folder, climbed))
            places[folder] = place
            if place[1] not in heads:
                heads[place[1]] = self._branch_in(place[1])
        self._places, self._heads = places, heads
        return {folder: (heads[head][1], top) for folder, (_, head, top) in places.items()}

    def _branch_in(self, head: str) -> tuple[object, str]:
        known = self._heads.get(head)
        try:
            sign: object = _sign(os.stat(head))
            if known is not None and known[0] == sign:
                return known
            content, sign = _read(head)
        except (OSError, ValueError):
            return None, ""
        return sign, _branch_name(content)


def _find_head(folder: str, climbed: dict[str, tuple[int | None, str, str]]) -> tuple[str, str]:
    """The HEAD file of the repository around a folder, and the top of its files. `climbed` spares folders of one look
    their common way up."""
    if not os.path.isabs(folder):
        return "", ""
    try:
        path = os.path.realpath(folder) if "/../" in folder + "/" else folder
    except ValueError:
        return "", ""
    trail: list[str] = []
    device: int | None = None
    head = top = ""
    for _ in range(_HIGHEST_CLIMB):
        if path in climbed:
            known_device, known, known_top = climbed[path]
            if device in (None, known_device):
                device, head, top = known_device, known, known_top
            break
        try:
            here = os.lstat(path)
        except (OSError, ValueError):
            break
        if stat.S_ISLNK(here.st_mode):
            # What is above a link is above what it points to.
            trail.append(path)
            path = os.path.realpath(path)
            continue
        if device not in (None, here.st_dev):
            # git stops where a file system ends, too: above may be an automounter, which would look for a host `.git`.
            break
        device = here.st_dev
        trail.append(path)
        found = _head_in(path)
        above = os.path.dirname(path)
        if found is not None or above == path:
            head = found or ""
            top = path if head else ""
            break
        path = above
    else:
        return "", ""
    for path in trail:
        climbed[path] = (device, head, top)
    return head, top


def _head_in(folder: str) -> str | None:
    """The HEAD file that a folder's `.git` leads to; empty where it leads nowhere, None without a repository."""
    git = folder + "/.git"
    try:
        mode = os.stat(git).st_mode
        if stat.S_ISDIR(mode):
            # git passes by a `.git` that is only a folder of that name.
            os.stat(git + "/HEAD")
            return git + "/HEAD"
        if not stat.S_ISREG(mode):
            return None
    except (OSError, ValueError):
        return None
    try:
        # A worktree's or a submodule's.
        word, _, path = _read(git)[0].rstrip(b"\r\n").partition(b" ")
    except OSError:
        return ""
    return os.path.join(folder, os.fsdecode(path), "HEAD") if word == b"gitdir:" and path else ""


def _branch_name(content: bytes) -> str:
    """What a HEAD file's content names, fit to be shown."""
    kind, _, ref = content.partition(b":")
    ref = ref.strip()
    # Repositories with reftables keep their HEAD elsewhere and leave this one for older programs to stumble over.
    if kind != b"ref" or not ref.startswith(b"refs/heads/") or ref == b"refs/heads/.invalid":
        return ""
    name = ref[len(b"refs/heads/") :].decode("utf-8", "replace")
    if any(char <= " " or char == "\x7f" for char in name):
        # git makes no such branch.
        return ""
    return "".join(char for char in name if unicodedata.category(char) not in _UNSEEN)[:_LONGEST_NAME]


def _sign(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: str) -> tuple[bytes, tuple[int, int, int]]:
    """A small regular file and its sign; nothing of one that is neither."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        is_small = stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_FILE
        return os.read(descriptor, _LARGEST_FILE) if is_small else b"", _sign(status)
    finally:
        os.close(descriptor)
