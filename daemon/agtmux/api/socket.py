"""`/v1/ws`: what lasts in both directions. Today that is a bridge's JSON-RPC, subprotocol `mcp`."""

from __future__ import annotations

import contextlib

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agtmux.api.protocol import peer_of
from agtmux.bridge.caller import find_caller
from agtmux.bridge.sessions import serve
from agtmux.bridge.wire import SUBPROTOCOL
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.service import Service

_FAILED = 1011


class BridgeSocket:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        if SUBPROTOCOL not in scope.get("subprotocols", []):
            raise AgtmuxError(ErrorCode.USAGE, f"this WebSocket speaks the subprotocol {SUBPROTOCOL}; ask for it")
        peer = peer_of(scope)
        # Before its server is there: loading that takes longer than everything else, and happens once.
        await websocket.accept(SUBPROTOCOL)
        world, registry = self._service.world, self._service.registry
        has_ended_well = await serve(
            lambda: _text(websocket),
            websocket.send_text,
            self._service.tools,
            lambda: find_caller(world, registry, peer),
            lambda error: isinstance(error, WebSocketDisconnect | OSError),
        )
        if not has_ended_well:
            # It may have gone by then, and there is nobody to be told.
            with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
                await websocket.close(_FAILED)


async def _text(websocket: WebSocket) -> str | None:
    try:
        return await websocket.receive_text()
    except (WebSocketDisconnect, KeyError, RuntimeError):
        # Gone, or it sent something that is no text.
        return None
