"""A WebSocket's client side, as far as two ends of one program need it: bytes in, messages out, no I/O.

A library would take as long to import as all the rest of the bridge, and as much memory, once for every agent.
"""

from __future__ import annotations

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PATH: Final = "/v1/ws"
SUBPROTOCOL: Final = "mcp"
# The key proves to a server that no cache has answered, and there is none on a Unix socket.
GREETING: Final = (
    f"GET {PATH} HTTP/1.1\r\nHost: agtmux\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YWd0bXV4IG1jcCByZWxheQ==\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
).encode()
MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_HEAD: Final = 65_536
_FIN, _MASKED = 0x80, 0x80
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x8, 0x9, 0xA


class WireError(Exception):
    """What came is not what a daemon of this version says."""


class Wire:
    """One connection, from the answer to the greeting on."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._message = bytearray()
        self.is_open = False
        self.is_closed = False
        # What has to be sent back, without anybody's doing.
        self.replies = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        self._data += data
        if not self.is_open and not self._read_head():
            return []
        found = []
        while not self.is_closed and (frame := self._next_frame()) is not None:
            is_last, kind, payload = frame
            if kind == _PING:
                self.replies += framed(payload, _PONG)
            elif kind == _CLOSE:
                self.is_closed = True
                self.replies += framed(payload, _CLOSE)
            elif kind in (_TEXT, _CONTINUED):
                self._message += payload
                if len(self._message) > MOST_BYTES:
                    raise WireError("a message is too long")
                if is_last:
                    found.append(bytes(self._message))
                    self._message.clear()
            elif kind != _PONG:
                raise WireError(f"a frame of kind {kind}")
        return found

    def _read_head(self) -> bool:
        head, end, rest = bytes(self._data).partition(b"\r\n\r\n")
        if not end:
            if len(self._data) > _MOST_HEAD:
                raise WireError("the answer has no end")
            return False
        status = head.split(b" ", 2)
        if len(status) < 2 or not status[0].startswith(b"HTTP/1.1") or status[1] != b"101":
            raise WireError(f"the answer is {head[:80].decode('latin-1')!r}")
        self._data = bytearray(rest)
        self.is_open = True
        return True

    def _next_frame(self) -> tuple[bool, int, bytes] | None:
        data = self._data
        if len(data) < 2:
            return None
        size, start = data[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(data) < start:
                return None
            size = int.from_bytes(data[2:start], "big")
        if data[1] & _MASKED or size > MOST_BYTES:
            raise WireError("a frame that no server sends")
        if len(data) < start + size:
            return None
        first, payload = data[0], bytes(data[start : start + size])
        del data[: start + size]
        return bool(first & _FIN), first & 0x0F, payload


def framed(payload: bytes, kind: int = _TEXT) -> bytes:
    """One message as a client sends it. The mask, which keeps proxies from misreading it, is that of no change."""
    size = len(payload)
    if size < 126:
        head = bytes((_FIN | kind, _MASKED | size))
    elif size < 65_536:
        head = bytes((_FIN | kind, _MASKED | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FIN | kind, _MASKED | 127)) + size.to_bytes(8, "big")
    return head + b"\0\0\0\0" + payload
