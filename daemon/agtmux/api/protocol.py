"""What uvicorn leaves open of HTTP: requests that are none, never end, or come when the daemon goes.

Each is answered in the one error shape and counted like any other refusal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from agtmux.bridge.caller import Peer
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.peer import peer_pid

# A request is small and comes over a local socket: what takes longer than this will not come.
TIME_LIMIT: Final = 5.0
# In a request's scope: who sent it. See `peer_of`.
PEER: Final = "agtmux.peer"
# In a request's scope: who acts, where that is not for the request to say.
ACTOR: Final = "agtmux.actor"
HEAD_BYTES_LIMIT: Final = 65_536


def peer_of(scope: Scope) -> Peer:
    """Who is at the other end; nobody who is known, if it came by another way than our own socket."""
    peer: Peer = scope[PEER] if PEER in scope else Peer(None)
    return peer


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, on_refused: Callable[[AgtmuxError], None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._on_refused = on_refused
        self._in_head = False
        self._in_request = False
        self._refused = False
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_upgraded = False
        self._peer = Peer(None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = Peer(peer_pid(transport.get_extra_info("socket")))
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if self._in_request and not self._refused and not self._is_answered():
            # Nobody is there to be told, but it counts.
            self._on_refused(AgtmuxError(ErrorCode.USAGE, "the request ended too early"))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_upgraded or self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_LIMIT and not self._is_answering():
                self._refuse(
                    AgtmuxError(ErrorCode.TOO_LARGE, f"the request's head is longer than {HEAD_BYTES_LIMIT} bytes")
                )
                return
        # A request that came whole, as ours do, needs no timer.
        if self._timer is None and (self._in_request or not self._is_answering()):
            self._set_timer()

    def handle_websocket_upgrade(self) -> None:
        # From now on the connection is another protocol's, and lasts.
        self._is_upgraded = True
        self._in_request = False
        self._cancel_timer()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        self._in_head = self._in_request = True
        self._head_bytes = 0
        super().on_message_begin()
        # uvicorn's type knows only what the specification has.
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[PEER] = self._peer

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False

    def on_message_complete(self) -> None:
        self._in_request = False
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

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            # Before the application's task, which was made just now, has its turn.
            scope: dict[str, Any] = self.scope  # type: ignore[assignment]
            scope[PEER] = Peer(peer_pid(self.transport.get_extra_info("socket")))
