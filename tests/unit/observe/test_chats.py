"""A chat session as the daemon hears it and speaks to it: what one thing waits for holds up nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from agtmux.agents.registry import Registry
from agtmux.api.chat import _send
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Attention
from agtmux.domain.panes import CHAT
from agtmux.domain.runtimes import PaneId
from agtmux.domain.states import State
from agtmux.observe.chats import Chats, ChatSession, Register, Turn
from unit.builders import Core, a_core, end

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


class Line:
    """A session's end of its connection, and what is kept of what it says."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._says: asyncio.Queue[str | None] = asyncio.Queue()
        self._news = asyncio.Event()
        self.told: list[dict[str, Any]] = []
        self.chats = Chats(core.world, core.ingest, Registry.load(), core.clock)
        self.serving = asyncio.create_task(self.chats.serve(os.getpid(), self._says.get, self._hear))
        core.ingest.on_change.append(lambda *_: self._news.set())
        self.says("register", session_id="s", agent_type="claude", cwd="/", socket="/s")

    async def _hear(self, text: str) -> None:
        self.told.append(json.loads(text))
        self._news.set()

    def says(self, kind: str, **words: Any) -> None:
        self._says.put_nowait(json.dumps({"type": kind, **words}))

    def says_turns(self, *texts: str) -> None:
        for text in texts:
            self.says("said", id=text, role="user", content=text)

    def leaves(self) -> None:
        self._says.put_nowait(None)

    @property
    def state(self) -> State | None:
        record = self._core.world.records.get((CHAT, PaneId(f"%{os.getpid()}")))
        return None if record is None else record.row.state

    @property
    def attention(self) -> Attention:
        attention = self._core.world.records[CHAT, PaneId(f"%{os.getpid()}")].row.attention
        assert attention is not None
        return attention

    @property
    def kept(self) -> list[str]:
        return [told["said"] for told in self.told if told["type"] == "kept"]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT):
            while not holds():
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def a_line(directory: Path) -> AsyncIterator[Line]:
    async with a_core(directory) as core:
        line = Line(core)
        try:
            await line.until(lambda: {"type": "registered"} in line.told)
            yield line
        finally:
            await end(line.serving)


async def test_a_turn_that_takes_long_to_be_kept_holds_up_no_state(tmp_path: Path):
    async with a_line(tmp_path) as line:
        may_go = asyncio.Event()

        async def keep(_: Turn) -> None:
            await may_go.wait()

        line.chats.on_said.append(keep)
        line.says_turns("one")
        line.says("state", state="waiting_approval", reason_code="approval", request_id="r1")
        await line.until(lambda: line.state is State.WAITING_APPROVAL)
        assert line.kept == []
        may_go.set()
        await line.until(lambda: line.kept == ["one"])


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_request_that_was_cut_on_its_way_is_not_whole(tmp_path: Path, is_cut: bool):
    payload = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    asks = {"reason_code": "approval", "event": "PermissionRequest", "payload": payload, "request_id": "r1"}
    async with a_line(tmp_path) as line:
        line.says("state", state="waiting_approval", is_cut=is_cut, **asks)
        await line.until(lambda: line.state is State.WAITING_APPROVAL)
        shown = line.attention
        assert (shown.is_whole, shown.is_brief) == (not is_cut, not is_cut)


async def test_what_cannot_be_kept_now_is_kept_later_in_its_order_and_the_connection_stays(tmp_path: Path):
    async with a_line(tmp_path) as line:
        tried: list[str] = []

        async def keep(turn: Turn) -> None:
            tried.append(turn.entry_id)
            if len(tried) < 3:
                raise AgtmuxError(ErrorCode.STORE, "the disk is full")

        line.chats.on_said.append(keep)
        line.chats._sleep = lambda _: asyncio.sleep(0)
        line.says_turns("one", "two")
        await line.until(lambda: line.kept == ["one", "two"])
        assert tried == ["one", "one", "one", "two"]
        assert not line.serving.done()


async def test_what_can_never_be_kept_is_left_to_the_session_and_stops_nothing(tmp_path: Path):
    async with a_line(tmp_path) as line:

        async def keep(turn: Turn) -> None:
            if turn.entry_id == "one":
                raise ValueError("a mistake of ours")

        line.chats.on_said.append(keep)
        line.says_turns("one", "two")
        await line.until(lambda: line.kept == ["two"])
        assert not line.serving.done()


async def test_the_last_words_of_one_that_is_gone_are_kept(tmp_path: Path):
    async with a_line(tmp_path) as line:
        may_go = asyncio.Event()
        heard: list[str] = []

        async def keep(turn: Turn) -> None:
            await may_go.wait()
            heard.append(turn.entry_id)

        line.chats.on_said.append(keep)
        line.says_turns("one", "two")
        line.leaves()
        # It is not shown any longer, whatever that takes.
        await line.until(lambda: line.state is None)
        may_go.set()
        async with asyncio.timeout(LIMIT):
            await line.serving
        assert heard == ["one", "two"]
