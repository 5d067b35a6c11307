"""`/v1/chat`: where chat sessions of this machine tell of themselves, and are told."""

from __future__ import annotations

import json

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agtmux.api.protocol import peer_of
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.service import Service

SUBPROTOCOL = "agtmux.chat.v1"


class ChatSocket:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        if SUBPROTOCOL not in scope.get("subprotocols", []):
            raise AgtmuxError(ErrorCode.USAGE, f"this WebSocket speaks the subprotocol {SUBPROTOCOL}; ask for it")
        await websocket.accept(SUBPROTOCOL)
        try:
            await self._service.chats.serve(
                peer_of(scope).pid, lambda: _text(websocket), lambda text: _send(websocket, text)
            )
        except AgtmuxError as error:
            self._service.refusals[error.code] += 1
            await _tell(websocket, error)
        except OSError:
            # Gone while it was told something.
            return


async def _text(websocket: WebSocket) -> str | None:
    try:
        return await websocket.receive_text()
    except (WebSocketDisconnect, KeyError, RuntimeError):
        # Gone, or it sent something that is no text.
        return None


async def _send(websocket: WebSocket, text: str) -> None:
    """Raises OSError if it is gone: nobody else has to know what starlette raises."""
    try:
        await websocket.send_text(text)
    except (WebSocketDisconnect, RuntimeError):
        raise ConnectionResetError("the session has closed its connection") from None


async def _tell(websocket: WebSocket, error: AgtmuxError) -> None:
    try:
        await websocket.send_text(json.dumps({"type": "refused", **error.as_json()}))
        await websocket.close()
    except (WebSocketDisconnect, OSError, RuntimeError):
        return
