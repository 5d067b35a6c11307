"""How the two ends of a probe's line tell messages apart: four bytes of length, then that much JSON.

No I/O here: bytes in, messages out. Both ends use it, and neither trusts the other's lengths.
"""

from __future__ import annotations

import json
import struct

# What one end may make the other keep in memory.
MAX_FRAME = 8 * 1024 * 1024

_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """The other end does not speak this language; the line is of no more use."""


def encode(message: dict[str, object]) -> bytes:
    # Names of files need not be text; what is none of it becomes a question mark.
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    if len(body) > MAX_FRAME:
        raise FrameError("a message of %d bytes; %d is the limit" % (len(body), MAX_FRAME))
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Gathers bytes as they come and gives back the frames that are whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        self._bytes += chunk
        found = []
        start = 0
        while len(self._bytes) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, start)
            if length > MAX_FRAME:
                raise FrameError("a frame of %d bytes; %d is the limit" % (length, MAX_FRAME))
            end = start + _LENGTH.size + length
            if len(self._bytes) < end:
                break
            found.append(bytes(self._bytes[start + _LENGTH.size : end]))
            start = end
        del self._bytes[:start]
        return found


def decode(frame: bytes) -> dict[str, object]:
    try:
        message = json.loads(frame.decode())
    except (ValueError, RecursionError):
        raise FrameError("a frame that is not JSON") from None
    if not isinstance(message, dict):
        raise FrameError("a frame that is not an object")
    return message
