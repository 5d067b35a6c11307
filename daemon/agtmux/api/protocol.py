"""What uvicorn leaves open of HTTP: requests that are none, never end, come all at once, or come when the daemon goes.

Each is answered in the one error shape and counted like any other refusal. A connection has one request at a time: what
is sent behind it stays with the kernel until the request is answered, and who reads no answers is sent none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from agtmux.api.connections import MOST_UNREAD, Connection, Connections
from agtmux.bridge.caller import Peer
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.peer import peer_pid

# A request is small and comes over a local socket: what takes longer than this will not come.
TIME_LIMIT: Final = 5.0
# In a request's scope: who sent it. See `peer_of`.
PEER: Final = "agtmux.peer"
# In a request's scope: who acts, where that is not for the request to say.
ACTOR: Final = "agtmux.actor"
# In a request's scope: the connection it came on.
CONNECTION: Final = "agtmux.connection"
HEAD_BYTES_LIMIT: Final = 65_536
# Seconds before the next request of somebody who sends several at once and is not known. No browser does.
_PAUSE: Final = 0.1
# What ends a head, and the longest beginning of it that the piece before may have ended with.
_BLANK_LINE: Final = b"\r\n\r\n"
_TAIL: Final = len(_BLANK_LINE) - 1


def peer_of(scope: Scope) -> Peer:
    """Who is at the other end; nobody who is known, if it came by another way than our own socket."""
    peer: Peer = scope[PEER] if PEER in scope else Peer(None)
    return peer


class _Flow(FlowControl):
    """Reading that stays paused while a request is held back, whoever asks for more of the one before it."""

    is_held = False

    def hold(self) -> None:
        self.is_held = True
        self.pause_reading()

    def release(self) -> None:
        self.is_held = False
        self.resume_reading()

    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class _SecondRequest(Exception):
    """A request began before the one in front of it was answered."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    flow: _Flow

    def __init__(
        self, *arguments: Any, on_refused: Callable[[AgtmuxError], None], connections: Connections, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._on_refused = on_refused
        self._open = connections
        self._in_head = False
        self._in_request = False
        self._refused = False
        self._head_bytes = 0
        # Of a body whose length was said; and the last bytes of a head that is not whole.
        self._body_left = 0
        self._tail = b""
        # What came behind a request that is not answered yet, and the place in it up to which it was read.
        self._held: tuple[bytes, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_upgraded = False
        self._peer = Peer(None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        connection = Connection(transport, self._open)
        # It is used as the transport that it stands for.
        super().connection_made(connection)  # type: ignore[arg-type]
        self.flow = _Flow(self.transport)
        self._peer = Peer(peer_pid(transport.get_extra_info("socket")))
        connection.is_busy = lambda: self._is_upgraded or self._in_request or self._is_answering()
        if not self._open.opened(connection):
            self._refuse(AgtmuxError(ErrorCode.LIMIT_RATE, "too many connections are open; close some and try again"))
            return
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self._held = None
        self.transport.ended()  # type: ignore[attr-defined]
        if self._in_request and not self._refused and not self._is_answered():
            # Nobody is there to be told, but it counts.
            self._on_refused(AgtmuxError(ErrorCode.USAGE, "the request ended too early"))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._held is not None:
            # Read before reading was paused.
            held, start = self._held
            data = held[start:] + data
        self._read(data, 0)

    def _read(self, data: bytes, start: int) -> None:
        """Up to the end of the data or of the first request that is not answered at once; the rest is held back."""
        self._held = None
        while start < len(data) and not self._is_upgraded and not self.transport.is_closing():
            if self._is_answering() and not self._in_request:
                if self.cycle.chunked_encoding:
                    # A stream, which has no end to wait for; and whoever leaves it must be noticed.
                    self.transport.close()
                    return
                self._held = (data, start)
                self.flow.hold()
                return
            end = self._end_of_piece(data, start)
            if not self._has_room(end - start):
                self._refuse(
                    AgtmuxError(ErrorCode.TOO_LARGE, f"the request's head is longer than {HEAD_BYTES_LIMIT} bytes")
                )
                return
            piece = data[start:end]
            self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
            super().data_received(piece)
            start = end
        # A request that came whole, as ours do, needs no timer.
        is_open = not self._is_upgraded and not self.transport.is_closing()
        if is_open and self._timer is None and (self._in_request or not self._is_answering()):
            self._set_timer()

    def _end_of_piece(self, data: bytes, start: int) -> int:
        """So that no piece holds the end of one request and the whole head of the next."""
        if self._body_left:
            return min(len(data), start + self._body_left)
        if self._in_request and not self._in_head:
            # In pieces that say their length themselves. Nobody sends the next request behind those.
            return len(data)
        across = (self._tail + data[start : start + _TAIL]).find(_BLANK_LINE)
        if across >= 0:
            return start + across + len(_BLANK_LINE) - len(self._tail)
        found = data.find(_BLANK_LINE, start)
        return len(data) if found < 0 else found + len(_BLANK_LINE)

    def _has_room(self, size: int) -> bool:
        if self._in_request and not self._in_head:
            return True
        self._head_bytes += size
        return self._head_bytes <= HEAD_BYTES_LIMIT

    def _go_on(self) -> None:
        """With what was held back behind a request that is answered by now."""
        if self._held is not None and not self.transport.is_closing():
            data, start = self._held
            self.flow.release()
            self._read(data, start)

    def handle_websocket_upgrade(self) -> None:
        # From now on the connection is another protocol's, and lasts.
        self._is_upgraded = True
        self._in_request = False
        self._cancel_timer()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        if self._is_answering():
            raise _SecondRequest
        self._in_head = self._in_request = True
        super().on_message_begin()
        # uvicorn's type knows only what the specification has.
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[PEER] = self._peer
        scope[CONNECTION] = self.transport

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False
        self._head_bytes = 0
        lengths = [value for name, value in self.headers if name == b"content-length"]
        self._body_left = int(lengths[0]) if lengths and lengths[0].isdigit() else 0

    def on_body(self, body: bytes) -> None:
        self._body_left = max(self._body_left - len(body), 0)
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._held is not None:
            # Not at once: others have their turn before the next request of this one.
            is_known: bool = self.transport.is_known  # type: ignore[attr-defined]
            self.loop.call_later(0 if is_known else _PAUSE, self._go_on)

    def on_message_complete(self) -> None:
        self._in_request = False
        self._body_left = 0
        self._tail = b""
        self._cancel_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        in_body = self._in_request and not self._in_head and not self._is_answered()
        if self._is_answering() and not in_body:
            # The answer to the request before this one cannot be interrupted by another.
            self.transport.close()
            return
        self._refuse(AgtmuxError(ErrorCode.USAGE, "this is not an HTTP/1.1 request; the socket speaks nothing else"))

    def shutdown(self) -> None:
        if self._is_answering() and self.cycle.more_body and not self.cycle.response_started:
            # What has not come by now would only hold the end up.
            self._refuse(AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "the daemon is stopping; try again in a moment"))
            return
        super().shutdown()

    def _is_answering(self) -> bool:
        # uvicorn's annotation leaves out that there is none before the first request.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _is_answered(self) -> bool:
        """Whether the request that is coming in has an answer already: it was refused by its head."""
        return not self._in_head and self.cycle.response_started

    def _set_timer(self) -> None:
        self._timer = self.loop.call_later(TIME_LIMIT, self._is_late)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_request and not self._is_answered():
            what = "the request's head" if self._in_head else "the request"
            self._refuse(AgtmuxError(ErrorCode.TIMEOUT, f"{what} did not arrive within {TIME_LIMIT:.0f} seconds"))
        elif self._is_answering():
            self._set_timer()
        else:
            self.transport.close()

    def _refuse(self, error: AgtmuxError) -> None:
        self._refused = True
        self._on_refused(error)
        content = json.dumps(error.as_json()).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[error.http_status] + head + content)
        self.transport.close()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection that has become a WebSocket; who is at its end is known as for any other."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.ended()  # type: ignore[attr-defined]
        super().connection_lost(exc)

    def handle_ping(self) -> None:
        if self.transport.get_write_buffer_size() > MOST_UNREAD:
            # Who reads no answers is sent none: an answer to a later ping answers this one as well.
            self.conn.data_to_send()
            return
        super().handle_ping()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            # Before the application's task, which was made just now, has its turn.
            scope: dict[str, Any] = self.scope  # type: ignore[assignment]
            scope[PEER] = Peer(peer_pid(self.transport.get_extra_info("socket")))
            scope[CONNECTION] = self.transport
