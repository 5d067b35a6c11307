"""The daemon's end of bridges on another machine: whole lines, at a pace, and nobody is let say more than it may."""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.bridges import PIECE, WINDOW
from agtmux.targets.bridges import Bridges, Channel, Way
from agtmux.targets.messages import BridgeNotice, read


def notice(what: str, number: int = 1, **more: Any) -> BridgeNotice:
    said = read(msgspec.json.encode({"notice": what, "bridge": number, **more}))
    assert isinstance(said, BridgeNotice)
    return said


def said(data: bytes, number: int = 1, is_last: bool = True, **more: Any) -> BridgeNotice:
    return notice("said", number, data=base64.b64encode(data).decode(), is_last=is_last, **more)


class Stage:
    def __init__(self, serve: Callable[[Channel], Any]) -> None:
        self.orders: list[dict[str, Any]] = []
        self.bridges = Bridges(self.orders.append, serve)

    def ordered(self, what: str) -> list[dict[str, Any]]:
        return [order for order in self.orders if order["do"] == what]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def listen(channel: Channel, heard: list[Any]) -> None:
    while (line := await channel.receive()) is not None:
        heard.append((line, channel.way))


async def test_lines_come_whole_with_who_said_them() -> None:
    heard: list[Any] = []
    stage = Stage(lambda channel: listen(channel, heard))
    stage.bridges.hear(notice("bridge"))
    stage.bridges.hear(said(b"one ", is_last=False))
    stage.bridges.hear(said(b"line", lineage=[5, 4], on_terminal=[5]))
    stage.bridges.hear(said(b"another"))
    await settle()
    assert heard == [(b"one line", Way((5, 4), (5,))), (b"another", None)]
    assert len(stage.ordered("more")) == 3
    stage.bridges.hear(notice("left"))
    await settle()
    assert stage.ordered("drop") == []


async def test_an_answer_goes_in_pieces_and_waits_until_they_are_taken() -> None:
    sent = b"x" * (PIECE * (WINDOW + 2) + 1)
    stage = Stage(lambda channel: channel.send(sent))
    stage.bridges.hear(notice("bridge"))
    await settle()
    assert len(stage.ordered("tell")) == WINDOW
    for _ in range(3):
        stage.bridges.hear(notice("took"))
    await settle()
    told = stage.ordered("tell")
    assert b"".join(base64.b64decode(each["data"]) for each in told) == sent
    assert [each["is_last"] for each in told] == [False] * (WINDOW + 2) + [True]
    # Its session has ended, and so has it.
    assert stage.ordered("drop") == [{"do": "drop", "bridge": 1}]


async def test_who_waits_for_room_is_told_that_nobody_is_there() -> None:
    failed: list[type] = []

    async def serve(channel: Channel) -> None:
        try:
            await channel.send(b"x" * PIECE * 9)
        except OSError as error:
            failed.append(type(error))

    stage = Stage(serve)
    stage.bridges.hear(notice("bridge"))
    await settle()
    stage.bridges.end()
    await settle()
    assert failed == [ConnectionResetError]


async def test_nobody_may_say_more_than_was_asked_for() -> None:
    # A session that reads nothing.
    stage = Stage(lambda channel: asyncio.sleep(60))
    stage.bridges.hear(notice("bridge"))
    for _ in range(WINDOW):
        stage.bridges.hear(said(b"{}"))
    with pytest.raises(AgtmuxError, match="more than it may") as caught:
        stage.bridges.hear(said(b"{}"))
    assert caught.value.code is ErrorCode.FORBIDDEN
    stage.bridges.end()


async def test_more_is_asked_for_at_a_pace() -> None:
    heard: list[Any] = []
    stage = Stage(lambda channel: listen(channel, heard))
    stage.bridges.hear(notice("bridge"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    while len(heard) < 300:
        if len(stage.ordered("more")) + WINDOW > len(heard):
            stage.bridges.hear(said(b"{}"))
        await asyncio.sleep(0)
    # Two hundred at once, a hundred a second from then on.
    assert loop.time() - began > 0.8
    stage.bridges.end()


async def test_one_that_was_let_go_may_still_be_on_its_way() -> None:
    stage = Stage(lambda channel: asyncio.sleep(0))
    stage.bridges.hear(notice("bridge"))
    await settle()
    assert stage.ordered("drop")
    for _ in range(WINDOW):
        stage.bridges.hear(said(b"{}"))
    with pytest.raises(AgtmuxError, match="more than it may"):
        stage.bridges.hear(said(b"{}"))
    stage.bridges.hear(notice("left"))
    with pytest.raises(AgtmuxError, match="not there"):
        stage.bridges.hear(notice("left"))


async def test_too_many_lines_without_an_end_cost_one_its_place() -> None:
    """The last that made it too much, and not the machine."""
    stage = Stage(lambda channel: asyncio.sleep(60))
    piece = b"x" * PIECE
    for number in range(1, 7):
        stage.bridges.hear(notice("bridge", number))
    sent = dict.fromkeys(range(1, 6), 0)
    while not stage.ordered("drop"):
        for number in sent:
            more = sum(order["bridge"] == number for order in stage.ordered("more"))
            if sent[number] < min(more + WINDOW, 80) and not stage.ordered("drop"):
                sent[number] += 1
                stage.bridges.hear(said(piece, number, is_last=False))
        await asyncio.sleep(0.001)
    assert len(stage.ordered("drop")) == 1
    assert sum(sent.values()) > 300
    stage.bridges.end()
