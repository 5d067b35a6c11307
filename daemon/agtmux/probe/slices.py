"""A file of lines that grows, read on from where somebody stopped: whole lines only, none of them twice.

A place in the file is an offset with a digest of the bytes before it. Where those have changed, or the file is shorter,
it is another file by now, and is read anew.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

# Bytes before a place that must still be there.
_BEFORE = 256
# Of a line that is too long to be told, what is passed over in one go.
_PASSED_OVER = 16 * 1024 * 1024
_CHUNK = 1024 * 1024


def read(path: str, offset: int, mark: str, is_within: bool, most: int, tail: int) -> dict[str, Any]:
    """What comes after that place, up to so many bytes; a longer line is passed over. Of a file that is new to whoever
    asks, only the last `tail` bytes are told."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {"is_there": False}
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return {"is_there": False}
        is_anew = offset == 0 or offset > status.st_size or _mark(descriptor, offset) != mark
        skipped = 0
        if is_anew:
            # With the byte before: it tells whether a line starts there.
            offset = skipped = max(0, status.st_size - tail - 1)
            is_within = offset > 0
        return {"is_there": True, "is_anew": is_anew, "skipped": skipped, **_on(descriptor, offset, is_within, most)}
    except OSError:
        return {"is_there": False}
    finally:
        os.close(descriptor)


def _on(descriptor: int, offset: int, is_within: bool, most: int) -> dict[str, Any]:
    passed, begin = 0, offset
    while True:
        chunk = os.pread(descriptor, most, offset)
        size = os.fstat(descriptor).st_size
        if is_within or (b"\n" not in chunk and len(chunk) == most):
            # In the middle of a line that is not told.
            offset, is_within = _past(descriptor, offset)
            passed += 1
            if is_within or passed > 1:
                return _told(descriptor, b"", offset, is_within, offset > begin and offset < size)
            continue
        # What has no end yet is still being written.
        whole = chunk[: chunk.rfind(b"\n") + 1]
        offset += len(whole)
        return _told(descriptor, whole, offset, False, offset > begin and offset < size)


def _told(descriptor: int, lines: bytes, offset: int, is_within: bool, has_more: bool) -> dict[str, Any]:
    return {
        "lines": lines,
        "offset": offset,
        "mark": _mark(descriptor, offset),
        "is_within": is_within,
        # Whether it makes sense to ask again at once.
        "has_more": has_more,
    }


def _past(descriptor: int, offset: int) -> tuple[int, bool]:
    """The place after the end of the line that goes on here, or as far as was looked, and whether it still goes on."""
    until = offset + _PASSED_OVER
    while offset < until:
        chunk = os.pread(descriptor, _CHUNK, offset)
        end = chunk.find(b"\n")
        if end >= 0:
            return offset + end + 1, False
        offset += len(chunk)
        if len(chunk) < _CHUNK:
            break
    return offset, True


def _mark(descriptor: int, offset: int) -> str:
    before = min(offset, _BEFORE)
    return hashlib.sha256(os.pread(descriptor, before, offset - before)).hexdigest()[:32]
