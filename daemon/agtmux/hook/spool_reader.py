"""The daemon's side of the spool: take the events hooks could not deliver, delete them once they are stored.

A crash between `drain` and `finish` brings the same records again; they carry their `event_id`, so ingesting
them twice does no harm. How the two sides keep out of each other's way is told in `spool`.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A hook holds the lock for the time of one write. Longer means that it was stopped, or its disk: try later.
LOCK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Drained:
    """What hooks left since the last `finish`."""

    records: list[dict[str, Any]]
    # Events that the hooks gave up: the spool was full, or locked for too long.
    dropped: int
    # Lines that are no record: a hook was killed while writing, or the disk lied.
    damaged: int


def drain(state_dir: Path) -> Drained:
    """Take the spool away from the hooks and read it. The same again until `finish` is called.

    Blocks for reading up to 8 MiB, so call it from a thread. What hooks add meanwhile is for the next call.
    """
    spool = state_dir / "spool"
    moved, dropped = _moved(spool)
    if not moved.exists():
        _move_aside(spool)
    records: list[dict[str, Any]] = []
    damaged = 0
    try:
        with moved.open("rb") as lines:
            for line in lines:
                record = _parsed(line)
                if record is not None:
                    records.append(record)
                elif line.strip():
                    damaged += 1
    except FileNotFoundError:
        pass
    return Drained(records, _size(dropped), damaged)


def finish(state_dir: Path) -> None:
    """Forget what `drain` returned: it is stored."""
    moved, dropped = _moved(state_dir / "spool")
    # In this order: the count alone is never read again, records without it are.
    dropped.unlink(missing_ok=True)
    moved.unlink(missing_ok=True)


def _moved(spool: Path) -> tuple[Path, Path]:
    return spool / "hook.jsonl.draining", spool / "dropped.draining"


def _move_aside(spool: Path) -> None:
    path = spool / "hook.jsonl"
    moved, dropped = _moved(spool)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        opened = os.fstat(fd)
        if not stat.S_ISREG(opened.st_mode):
            raise OSError(f"{path} is not a regular file. Remove it; hooks cannot spool until then.")
        # The second question: another drain may have had the lock first, and the name is a new file's by now.
        if not _locked(fd) or not path.exists() or not os.path.samestat(path.stat(), opened):
            return
        path.rename(moved)
        if (spool / "dropped").exists():
            (spool / "dropped").rename(dropped)
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("event_id"), str) else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
