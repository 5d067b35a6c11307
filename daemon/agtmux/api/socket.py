"""`/v1/ws`: what lasts in both directions. Today that is a bridge's JSON-RPC, subprotocol `mcp`."""

from __future__ import annotations

import asyncio
import logging
from types import ModuleType

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agtmux.api.protocol import PEER
from agtmux.bridge.caller import find_caller
from agtmux.bridge.wire import SUBPROTOCOL
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.service import Service

_log = logging.getLogger(__name__)
_FAILED = 1011


class BridgeSocket:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        if SUBPROTOCOL not in scope.get("subprotocols", []):
            raise AgtmuxError(ErrorCode.USAGE, f"this WebSocket speaks the subprotocol {SUBPROTOCOL}; ask for it")
        pid = scope.get(PEER, lambda: None)()
        # Before its server is there: loading that takes longer than everything else, and happens once.
        await websocket.accept(SUBPROTOCOL)
        world, registry = self._service.world, self._service.registry
        try:
            server = await asyncio.to_thread(_load)
            await server.serve(
                lambda: _text(websocket),
                websocket.send_text,
                self._service.tools,
                lambda: find_caller(world, registry, pid),
            )
        except (Exception, ExceptionGroup) as error:
            if not _is_gone(error):
                _log.error("a bridge's session failed", exc_info=error)
                await websocket.close(_FAILED)


def _load() -> ModuleType:
    from agtmux.bridge import server

    return server


async def _text(websocket: WebSocket) -> str | None:
    try:
        return await websocket.receive_text()
    except (WebSocketDisconnect, KeyError):
        # Gone, or it sent something that is no text.
        return None


def _is_gone(error: BaseException) -> bool:
    """Whether all that went wrong is that nobody is there any more to be told."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_gone, error.exceptions))
    return isinstance(error, WebSocketDisconnect | OSError)
