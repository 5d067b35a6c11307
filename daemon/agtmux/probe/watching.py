"""Tells which files in some folders changed: by inotify on Linux, by kqueue on macOS and BSD, else by looking.

The system only says where to look. What is new and what is gone is found the same way everywhere, by comparing with
the last look, and what cannot be watched is looked at in a call now and then.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import stat
import struct
import sys
import time
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Tuple

# Bytes of a file that are told of it.
LONGEST_TEXT = 16 * 1024

_MOST = 500
_MOST_READS = 32
_MOST_BESIDE = 64
_MOST_ROUNDS = 3
# How often everything is looked at while something is not watched: files that are may wake us much more often.
_SCAN_EVERY = 1.0

# Time of change, size, device, inode: the newest is the greatest.
_Sign = Tuple[int, int, int, int]
_Signs = Dict[str, _Sign]
# Path, device, inode: what takes the place of a watched file has to be watched anew.
_Place = Tuple[str, int, int]


class Scanner:
    """Where the system tells nothing, it may be anything. The ways to be told more build on this."""

    most = 0
    watches_files = False

    def __init__(self) -> None:
        self._handles: dict[_Place, int] = {}
        self._places: dict[int, _Place] = {}

    def fileno(self) -> int | None:
        return None

    def dirty(self) -> set[str] | None:
        """The paths that something happened to since the last call; None if it may be anything."""
        return None

    def watch(self, folders: _Signs, files: _Signs) -> tuple[bool, bool]:
        """Watch these and no others, the newest if not all. Tells whether some are new, and whether it is all."""
        signs = {**files, **folders} if self.watches_files else folders
        wanted = [(path, *signs[path][2:]) for path in sorted(signs, key=signs.__getitem__, reverse=True)]
        chosen = dict.fromkeys(wanted[: self.most])
        for place in [place for place in self._handles if place not in chosen]:
            self._end(self._forget(self._handles[place]))
        before = len(self._handles)
        for place in [place for place in chosen if place not in self._handles]:
            handle = self._begin(place[0])
            if handle is not None:
                self._handles[place] = handle
                self._places[handle] = place
        return len(self._handles) > before, len(self._handles) == len(wanted)

    def close(self) -> None:
        self.watch({}, {})

    def _forget(self, handle: int) -> int:
        del self._handles[self._places.pop(handle)]
        return handle

    def _begin(self, path: str) -> int | None:
        raise NotImplementedError

    def _end(self, handle: int) -> None:
        raise NotImplementedError


class _Inotify(Scanner):
    most = sys.maxsize
    # MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF, ONLYDIR
    _EVENTS = 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x01000000
    _OVERFLOW, _IGNORED = 0x4000, 0x8000
    _HEADER = struct.Struct("iIII")

    def __init__(self) -> None:
        # Not every Python has it.
        import ctypes

        super().__init__()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def fileno(self) -> int | None:
        return self._descriptor

    def dirty(self) -> set[str] | None:
        found: set[str] = set()
        has_overflowed = False
        for _ in range(_MOST_READS):
            try:
                block = os.read(self._descriptor, 65_536)
            except BlockingIOError:
                break
            at = 0
            while at < len(block):
                handle, mask, _cookie, length = self._HEADER.unpack_from(block, at)
                at += self._HEADER.size + length
                has_overflowed = has_overflowed or bool(mask & self._OVERFLOW)
                if handle in self._places:
                    folder, name = self._places[handle][0], block[at - length : at].rstrip(b"\0")
                    found.add(folder + "/" + os.fsdecode(name) if name else folder)
                    if mask & self._IGNORED:
                        self._forget(handle)
        if has_overflowed:
            # That a watched folder was removed may be among what was lost.
            self.watch({}, {})
            return None
        return found

    def close(self) -> None:
        os.close(self._descriptor)

    def _begin(self, path: str) -> int | None:
        handle = int(self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), self._EVENTS))
        # A folder reached on two paths is one to inotify, which would tell of one of them only.
        return handle if handle >= 0 and handle not in self._places else None

    def _end(self, handle: int) -> None:
        self._libc.inotify_rm_watch(self._descriptor, handle)


if sys.platform != "linux":

    class _Kqueue(Scanner):
        # Each takes a descriptor, and launchd gives a process 256.
        most = 64
        # Of a folder it tells when entries come and go, not when what is in them changes.
        watches_files = True
        # O_EVTONLY, which Python names since 3.10.
        _FLAGS = 0x8000 if sys.platform == "darwin" else os.O_NONBLOCK

        def __init__(self) -> None:
            super().__init__()
            self._queue = select.kqueue()

        def fileno(self) -> int | None:
            return self._queue.fileno()

        def dirty(self) -> set[str] | None:
            found: set[str] = set()
            for event in self._queue.control(None, self.most, 0):
                if event.ident in self._places:
                    found.add(self._places[event.ident][0])
                    if event.fflags & (select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME):
                        self._end(self._forget(event.ident))
            return found

        def close(self) -> None:
            super().close()
            self._queue.close()

        def _begin(self, path: str) -> int | None:
            notes = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND | select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME
            try:
                handle = os.open(path, self._FLAGS)
            except OSError:
                return None
            once = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            try:
                self._queue.control([select.kevent(handle, select.KQ_FILTER_VNODE, once, notes)], 0)
            except OSError:
                os.close(handle)
                return None
            return handle

        def _end(self, handle: int) -> None:
            os.close(handle)


def best() -> Scanner:
    try:
        if sys.platform == "linux":
            return _Inotify()
        else:
            return _Kqueue() if hasattr(select, "kqueue") else Scanner()
    except (ImportError, AttributeError, OSError):
        # A user has 128 instances of inotify, and editors like them too.
        return Scanner()


class _Rule:
    def __init__(self, rule: dict[str, Any]) -> None:
        self.name = str(rule["name"])
        self._root = os.path.expanduser(str(rule["folder"])).rstrip("/")
        self._patterns = str(rule["pattern"]).split("/")
        if rule["depth"] not in (0, 1) or len(self._patterns) != rule["depth"] + 1:
            raise ValueError("rule %s: a pattern is like *.json at depth 0, like */*.json at depth 1" % self.name)
        # The root, empty as long as it is not there; the folders that hold files; the files.
        self.root: _Signs = {}
        self.folders: _Signs = {}
        self.files: _Signs = {}

    def is_due(self, dirty: set[str]) -> bool:
        """Whether a folder came, went or, where only folders are told of, has other files in it."""
        if _root_sign(self._root) != self.root or self._root in dirty or not dirty.isdisjoint(self.folders):
            return True
        return any(os.path.dirname(path) == self._root and os.path.isdir(path) for path in dirty)

    def check(self, path: str, changed: dict[str, bool]) -> None:
        """One file that something happened to: told of even if it looks the same, as clocks tick seldom."""
        folder, name = os.path.split(path)
        if folder not in self.folders or not fnmatchcase(name, self._patterns[-1]):
            return
        try:
            status = os.lstat(path)
        except OSError:
            status = None
        if status is not None and stat.S_ISREG(status.st_mode):
            self.files[path] = sign(status)
            changed[path] = False
            if len(self.files) > _MOST:
                del self.files[min(self.files, key=self.files.__getitem__)]
        elif self.files.pop(path, None) is not None:
            changed[path] = True

    def scan(self, changed: dict[str, bool]) -> None:
        """All of it, compared with the last time."""
        root = _root_sign(self._root)
        try:
            found = self._look(root)
        except OSError:
            # No descriptor left, or a failing disk: that nothing can be seen does not mean that it is gone.
            self.root = {}
            return
        kept = sorted(found, reverse=True)[: _MOST - 1]
        newest = sorted(((sign, path) for each in kept for path, sign in each[2]), reverse=True)[:_MOST]
        seen = {path for each in found for path, _ in each[2]}
        before, self.files = self.files, {path: sign for sign, path in newest}
        self.root, self.folders = root, {folder: sign for sign, folder, _ in kept}
        changed.update((path, False) for path, sign in self.files.items() if before.get(path) != sign)
        changed.update((path, True) for path in before if path not in seen)

    def _look(self, root: _Signs) -> list[tuple[_Sign, str, list[tuple[str, _Sign]]]]:
        """The folders that may hold files, with these; each as new as the newest of its files."""
        folders = list(root.items())
        for pattern in self._patterns[:-1]:
            folders = [each for folder, _ in folders for each in _entries(folder, pattern, stat.S_ISDIR)]
        found = []
        for folder, sign in folders:
            files = _entries(folder, self._patterns[-1], stat.S_ISREG)
            found.append((max([sign, *((each[0], *sign[1:]) for _, each in files)]), folder, files))
        return found


class Watcher:
    """Not for several threads at once. The first call of `changes` tells of every file there is."""

    def __init__(
        self,
        rules: list[dict[str, Any]],
        scanner: Scanner | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = [_Rule(rule) for rule in rules]
        self._scanner = scanner or best()
        self._clock = clock
        self._scan_due = -math.inf

    def fileno(self) -> int | None:
        """Readable when there are changes; None where nobody tells."""
        return self._scanner.fileno()

    def is_told_all(self) -> bool:
        """False while a folder is missing or unwatched: then `changes` has to be called now and then as well."""
        return self._scan_due == math.inf and all(rule.root for rule in self._rules)

    def changes(self) -> list[dict[str, object]]:
        """The files that are new, changed or gone since the last call, each once a rule."""
        told: list[tuple[_Rule, dict[str, bool]]] = [(rule, {}) for rule in self._rules]
        dirty = self._scanner.dirty()
        now = self._clock()
        is_due = dirty is None or now >= self._scan_due
        is_new = False
        for rule, changed in told:
            if is_due or rule.is_due(dirty or set()):
                rule.scan(changed)
                is_new = True
            for path in dirty or ():
                rule.check(path, changed)
        is_complete = not is_due and self._scan_due == math.inf
        for _ in range(_MOST_ROUNDS):
            if not is_new:
                break
            is_new, is_complete = self._watch()
            # What happened between looking and watching, nobody tells.
            for rule, changed in told if is_new else ():
                rule.scan(changed)
        if is_complete and not is_new:
            self._scan_due = math.inf
        elif is_due or self._scan_due == math.inf:
            self._scan_due = now + _SCAN_EVERY
        return [
            {"name": rule.name, "path": path, "gone": gone} for rule, changed in told for path, gone in changed.items()
        ]

    def close(self) -> None:
        self._scanner.close()

    def _watch(self) -> tuple[bool, bool]:
        folders: _Signs = {}
        files: _Signs = {}
        for rule in self._rules:
            folders.update({**rule.folders, **rule.root})
            files.update(rule.files)
        return self._scanner.watch(folders, files)


class Untold:
    """Changes that are told a few at a time: many come at once where a home is restored, or cleared."""

    def __init__(self) -> None:
        # In the order in which they came, with when the file was written.
        self._waiting: dict[tuple[object, object], tuple[float, dict[str, object]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, changes: list[dict[str, object]]) -> None:
        """What changes again while it waits keeps its place, and is told of once, as it is then."""
        for change in changes:
            written = math.inf if change["gone"] else _written(str(change["path"]))
            self._waiting[change["name"], change["path"]] = written, change

    def take(self, most: int) -> list[dict[str, object]]:
        """Half of them the newest, as somebody is at those, and half those that wait longest, so that all are told."""
        newest = sorted(self._waiting, key=lambda key: self._waiting[key][0], reverse=True)[: (most + 1) // 2]
        chosen = set(newest)
        oldest = [key for key in self._waiting if key not in chosen][: most - len(newest)]
        return [self._waiting.pop(key)[1] for key in (*newest, *oldest)]


def read_tail(path: str, limit: int = LONGEST_TEXT) -> str:
    """A regular file's text, or as many of its last lines as fit; empty if it is gone or something else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        # With the byte before: it tells whether a line starts here.
        start = max(0, status.st_size - limit - 1)
        text = os.pread(descriptor, limit + 1, start)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return (text.partition(b"\n")[2] if status.st_size > limit else text[:limit]).decode("utf-8", "replace")


def names_beside(path: str) -> list[str]:
    """What is in the same folder: some agents say there whose a file is. Nothing where that is too much."""
    try:
        names = sorted(os.listdir(os.path.dirname(path)))
    except OSError:
        return []
    # A name that is no text is nobody's that we know.
    legible = [name for name in names if len(name) <= 200 and name.isprintable()]
    return legible if len(legible) <= _MOST_BESIDE else []


def _written(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return math.inf


def sign(status: os.stat_result) -> _Sign:
    return status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino


def _root_sign(path: str) -> _Signs:
    """A root may be a link, what is in it may not. It counts as newer than anything in it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return {}
    return {path: (sys.maxsize, 0, status.st_dev, status.st_ino)} if stat.S_ISDIR(status.st_mode) else {}


def _entries(folder: str, pattern: str, is_kind: Callable[[int], bool]) -> list[tuple[str, _Sign]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if fnmatchcase(entry.name, pattern):
                    # Gone meanwhile, or never to be seen: not a reason to miss the others.
                    with contextlib.suppress(FileNotFoundError, PermissionError):
                        status = entry.stat(follow_symlinks=False)
                        if is_kind(status.st_mode):
                            found.append((entry.path, sign(status)))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    return found
