"""A chat session as the daemon hears it and speaks to it: what one thing waits for holds up nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from agtmux.api.chat import _send
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.observe.chats import ChatSession, Register

ABOUT = Register(session_id="s", agent_type="claude", cwd="/", socket="/s")
LIMIT = 10.0


def a_session(send: Callable[[str], Awaitable[None]], reply_limit: float = LIMIT) -> ChatSession:
    return ChatSession(4711, ABOUT, None, send, reply_limit=reply_limit)


async def refusal(asked: Awaitable[Any]) -> ErrorCode:
    with pytest.raises(AgtmuxError) as caught:
        async with asyncio.timeout(LIMIT):
            await asked
    return caught.value.code


@pytest.mark.parametrize("error", [WebSocketDisconnect(1006), RuntimeError("once a close message has been sent")])
async def test_of_one_that_goes_while_it_is_asked_nobody_knows_what_came_of_it(error: Exception):
    async def gone(_: Any) -> None:
        raise error

    websocket = WebSocket({"type": "websocket"}, gone, gone)  # type: ignore[arg-type]
    websocket.application_state = WebSocketState.CONNECTED
    session = a_session(lambda text: _send(websocket, text))
    assert await refusal(session.ask("approve", request_id="r1")) is ErrorCode.DELIVERY_UNCERTAIN


async def test_one_that_takes_nothing_is_not_waited_for_longer_than_for_an_answer():
    async def full(_: str) -> None:
        await asyncio.Event().wait()

    session = a_session(full, reply_limit=0.1)
    assert await refusal(session.ask("recent")) is ErrorCode.DELIVERY_UNCERTAIN
