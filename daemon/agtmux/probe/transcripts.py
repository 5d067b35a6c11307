"""Which file an agent writes its conversation to, by what proves it: a file that names its process, or one that its
process has open. Without proof it is none, as two agents of a kind may work in one folder.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import re
import stat
from typing import Any, Iterator

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,127}")
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LONGEST_NOTE = 256 * 1024
# A file may bear a time from a little before its process, as clocks of file systems tick seldom.
_BEFORE = 2.0


def find(processes: list[list[float]], rule: dict[str, Any], claimed: str) -> dict[str, Any]:
    """`processes` are pids with their starts; `claimed` is the file that a hook of the agent's has named, if any."""
    roots = list(_roots([int(pid) for pid, _ in processes], rule["folders"]))
    by = _WAYS[rule["by"]] if rule["by"] else _nobody
    proven = [each for pid, started in processes for root in roots for each in by(root, int(pid), started, rule)]
    # The file that is claimed may be reached over another path.
    same = [each for each in proven if claimed and os.path.realpath(each[0]) == os.path.realpath(claimed)]
    chosen = dict.fromkeys(same or proven)
    if len(chosen) == 1:
        path, session = next(iter(chosen))
        return {"path": path, "session_id": session, "is_proven": True}
    if chosen or (claimed and rule["by"] and _is_told(roots, processes, rule)):
        # Several, or its process says that it is at another one.
        return {"path": "", "session_id": "", "is_proven": False}
    session = next((found for root in roots for found in [_session(root, claimed, rule)] if found), "")
    return {"path": claimed if session else "", "session_id": session, "is_proven": False}


def _by_registry(root: str, pid: int, started: float, rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A file that is named by the process says which session it is at."""
    session = _registered(root, pid, started, rule)
    if session:
        found = glob.glob(os.path.join(glob.escape(root), rule["file"].replace("{session}", session)))
        with contextlib.suppress(OSError, ValueError):
            yield max(found, key=os.path.getmtime), session


def _by_lock(root: str, pid: int, started: float, rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A file beside it is named by the process."""
    pattern = rule["owner"].replace("{session}", "*").replace("{pid}", str(pid))
    for lock in glob.glob(os.path.join(glob.escape(root), pattern)):
        if _is_since(lock, started):
            beside = os.path.join(os.path.dirname(lock), os.path.basename(rule["file"]))
            session = _session(root, beside, rule)
            if session and os.path.isfile(beside):
                yield beside, session


def _by_holding(root: str, pid: int, started: float, rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The process has it open."""
    folder = "/proc/%d/fd" % pid
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                path = os.readlink(folder + "/" + name)
                session = _session(os.path.realpath(root), path, rule)
                if session:
                    yield path, session


def _nobody(root: str, pid: int, started: float, rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Nothing of this agent's names its process."""
    return iter(())


_WAYS = {"registry": _by_registry, "lock": _by_lock, "holding": _by_holding}


def _is_told(roots: list[str], processes: list[list[float]], rule: dict[str, Any]) -> bool:
    """Whether its process names a session at all, so that a claim of another is somebody else's."""
    if rule["by"] != "registry":
        return False
    return any(_registered(root, int(pid), started, rule) for root in roots for pid, started in processes)


def _registered(root: str, pid: int, started: float, rule: dict[str, Any]) -> str:
    path = os.path.join(root, rule["owner"].replace("{pid}", str(pid)))
    with contextlib.suppress(OSError, ValueError, RecursionError):
        # One of an earlier process with this number says nothing of this one.
        if _is_since(path, started):
            note = json.loads(_note(path).decode("utf-8", "replace"))
            session = note.get(rule["key"]) if isinstance(note, dict) else None
            if isinstance(session, str) and _SESSION.fullmatch(session):
                return session
    return ""


def _note(path: str) -> bytes:
    """Raises OSError if it is no file: of anything else, reading may take forever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no file", path)
        return file.read(_LONGEST_NOTE)


def _is_since(path: str, started: float) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime >= started - _BEFORE
    return False


def _session(root: str, path: str, rule: dict[str, Any]) -> str:
    """The session that a file of this agent's is of, by its name; empty if it is no such file."""
    within = path[len(root) + 1 :]
    # A name in the rule may be any, but not one that leads out of the folder.
    if not path.startswith(root + "/") or not {"", ".", ".."}.isdisjoint(within.split("/")):
        return ""
    parts = re.split(r"(\{session\}|\*)", rule["file"])
    # Most are UUIDs, which what stands before one must not take a piece of.
    for session in (_UUID, _SESSION.pattern):
        words = {"{session}": "(?P<session>%s)" % session, "*": "[^/]*"}
        pattern = "".join(words.get(part, re.escape(part)) for part in parts)
        found = re.fullmatch(pattern, within)
        if found is not None:
            return str(found["session"])
    return ""


def _roots(pids: list[int], folders: list[str]) -> Iterator[str]:
    """Where the agent keeps its files, as its own environment says. The first that is set counts."""
    environ = next((found for pid in reversed(pids) for found in [_environ(pid)] if found), dict(os.environ))
    for folder in folders:
        if folder.startswith("$"):
            name, _, rest = folder[1:].partition("/")
            if not environ.get(name):
                continue
            folder = os.path.join(environ[name], rest).rstrip("/")
        elif folder.startswith("~/"):
            folder = os.path.join(environ.get("HOME") or os.path.expanduser("~"), folder[2:])
        # One that is meant from where the agent was started may be anybody's here.
        if os.path.isabs(folder):
            yield folder
        return


def _environ(pid: int) -> dict[str, str]:
    """Of that process; empty where the system does not tell."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            words = file.read(1024 * 1024).split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(word).partition("=") for word in words)
    return {name: value for name, equals, value in pairs if equals}
