"""A WebSocket's server side, as far as a bridge needs it: bytes in, messages out, no I/O."""

from __future__ import annotations

import base64
import hashlib

SUBPROTOCOL = "mcp"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FIN, _MASKED = 0x80, 0x80
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x8, 0x9, 0xA


class SocketError(Exception):
    """What came is not what a bridge says."""


def accepted(first: str, fields: dict[str, str]) -> bytes | None:
    """The answer to a bridge's greeting, by the request's first line and its header; None if it is none."""
    asked = [each.strip() for each in fields.get("sec-websocket-protocol", "").split(",")]
    is_upgrade = fields.get("upgrade", "").lower() == "websocket" and fields.get("sec-websocket-version") == "13"
    if not first.startswith("GET /v1/ws ") or not is_upgrade or SUBPROTOCOL not in asked:
        return None
    key = base64.b64encode(hashlib.sha1(fields.get("sec-websocket-key", "").encode() + _GUID).digest()).decode()
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n" % (key, SUBPROTOCOL)
    ).encode()


class Incoming:
    """What a client sends, once it is accepted."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._data = bytearray()
        self._message = bytearray()
        self.is_closed = False
        # What has to be sent back, without anybody's doing.
        self.replies = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        self._data += data
        found = []
        while not self.is_closed:
            frame = self._next_frame()
            if frame is None:
                break
            is_last, kind, payload = frame
            if kind == _PING:
                self.replies += framed(payload, kind=_PONG)
            elif kind == _CLOSE:
                self.is_closed = True
                self.replies += framed(payload, kind=_CLOSE)
            elif kind in (_TEXT, _CONTINUED):
                self._message += payload
                if len(self._message) > self._most_bytes:
                    raise SocketError("a message is too long")
                if is_last:
                    found.append(bytes(self._message))
                    self._message.clear()
            elif kind != _PONG:
                raise SocketError("a frame of kind %d" % kind)
        return found

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
        if not data[1] & _MASKED or size > self._most_bytes:
            raise SocketError("a frame that no bridge sends")
        if len(data) < start + 4 + size:
            return None
        first, mask = data[0], bytes(data[start : start + 4])
        payload = _unmasked(bytes(data[start + 4 : start + 4 + size]), mask)
        del data[: start + 4 + size]
        return bool(first & _FIN), first & 0x0F, payload


def framed(payload: bytes, is_first: bool = True, is_last: bool = True, kind: int = _TEXT) -> bytes:
    """A message or a part of one, as a server sends it."""
    head = bytes(((_FIN if is_last else 0) | (kind if is_first else _CONTINUED),))
    size = len(payload)
    if size < 126:
        return head + bytes((size,)) + payload
    if size < 65_536:
        return head + b"\x7e" + size.to_bytes(2, "big") + payload
    return head + b"\x7f" + size.to_bytes(8, "big") + payload


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    # Our own bridges use the mask of no change.
    if not any(mask):
        return payload
    whole = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(payload), "big")
