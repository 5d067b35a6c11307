"""`/v1/live`, on the Unix socket and over TCP: lists, screens and messages on one line, and no wait for who is slow."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agtmux.api.live import SUBPROTOCOL
from agtmux.api.screens import legible
from support.door import Door
from support.home import PATIENCE, Home, event, shared_home, wait_until
from support.parrots import git
from support.schemas import check, check_line
from support.talking import Talker, stamp, turns


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with shared_home() as made:
        made.pane(command="printf '\\033[31mred\\033[0m <b>\\n'; exec cat")
        made.start()
        wait_until(lambda: len(made.panes()) == 1, "the pane")
        yield made


@pytest.fixture(scope="module")
def door(home: Home) -> Door:
    return Door(home, "--port", "0")


@contextlib.asynccontextmanager
async def live(home: Home) -> AsyncIterator[ClientConnection]:
    async with unix_connect(
        str(home.socket), "ws://agtmux/v1/live", subprotocols=[SUBPROTOCOL], compression=None
    ) as line:
        yield line


async def say(line: ClientConnection, **content: Any) -> None:
    await line.send(json.dumps(content))


async def hear(line: ClientConnection, kind: str) -> dict[str, Any]:
    """The next of that kind."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told = json.loads(await line.recv())
            if told["type"] == "line":
                check_line(told["line"])
            elif told["type"] == "error":
                check({"error": told["error"]}, ("error",))
            if told["type"] == kind:
                return dict(told)


async def test_a_list_is_followed_and_gone_on_with(home: Home) -> None:
    pane = next(iter(home.panes()))
    async with live(home) as line:
        await say(line, type="subscribe", id="x", scope="panes")
        first = await hear(line, "line")
        assert (first["id"], first["line"]["type"]) == ("x", "snapshot")
    home.ask("POST", "/v1/events", event(pane, "state.running"))
    async with live(home) as line:
        await say(line, type="subscribe", id="x", scope="panes", cursor=first["line"]["cursor"])
        told = (await hear(line, "line"))["line"]
        assert (told["type"], told["sequence"]) == ("delta", first["line"]["sequence"] + 1)
        await say(line, type="unsubscribe", id="x")
        await say(line, type="subscribe", id="y", scope="sessions")
        home.ask("POST", "/v1/events", event(pane, "state.idle"))
        assert (await hear(line, "line"))["id"] == "y"


async def test_a_screen_is_told_with_its_colours_and_when_it_changes(home: Home) -> None:
    item = next(iter(home.panes().values()))
    async with live(home) as line:
        await say(line, type="subscribe", id="y", pane=item["ref"])
        screen = await hear(line, "screen")
        assert (screen["id"], screen["runtime_id"]) == ("y", item["runtime_id"])
        assert screen["output"].startswith("\x1b[31mred\x1b[") and "<b>" in screen["output"]
        home.tmux("send-keys", "-t", item["identity"]["pane_id"], "more", "Enter")
        assert "more" in (await hear(line, "screen"))["output"]


async def test_one_who_ends_is_told_of_once(home: Home) -> None:
    pane = home.pane(command="exec cat")
    item = wait_until(lambda: home.panes().get(pane), "the pane")
    async with live(home) as line:
        await say(line, type="subscribe", id="y", pane=f"runtime:{item['runtime_id']}")
        await hear(line, "screen")
        home.tmux("kill-pane", "-t", pane)
        assert (await hear(line, "error"))["error"]["code"] == "E_RUNTIME_STALE"


async def test_what_makes_no_sense_is_refused_and_the_line_goes_on(home: Home) -> None:
    async with live(home) as line:
        for content, code in (
            ({"type": "subscribe", "id": "x"}, "E_USAGE"),
            ({"type": "subscribe", "id": "x", "scope": "floors"}, "E_USAGE"),
            ({"type": "subscribe", "id": "x", "scope": "panes", "pane": "%0"}, "E_USAGE"),
            ({"type": "subscribe", "id": "x", "pane": "nonsense"}, "E_REF_INVALID"),
            ({"type": "subscribe", "id": "x", "pane": "pane:host/a/@9/%9"}, "E_REF_NOT_FOUND"),
            ({"type": "subscribe", "id": "x", "scope": "panes", "cursor": "nonsense"}, "E_CURSOR_INVALID"),
            ({"type": "dance", "id": "x"}, "E_USAGE"),
            ({"type": "subscribe", "id": "", "scope": "panes"}, "E_USAGE"),
            ([[[]]], "E_USAGE"),
        ):
            await line.send(json.dumps(content))
            assert (await hear(line, "error"))["error"]["code"] == code, content
        for number in range(40):
            await say(line, type="subscribe", id=f"n{number}", worktree="/nowhere")
        assert (await hear(line, "error"))["error"]["code"] == "E_LIMIT_RATE"
        await say(line, type="unsubscribe", id="n0")
        await say(line, type="subscribe", id="x", scope="panes")
        await hear(line, "line")


async def test_over_tcp_a_socket_is_for_who_is_signed_in_and_for_our_own_page(door: Door) -> None:
    session = door.signed_in()
    place = f"ws://{door.host}:{door.port}/v1/live"
    key = f"agtmux.key.{session['Agtmux-Key']}"
    cookie = {"Cookie": session["Cookie"]}
    ways: list[tuple[dict[str, str], list[str], str | None, int]] = [
        (cookie, [SUBPROTOCOL, key], door.origin, 101),
        (door.bearer, [SUBPROTOCOL], None, 101),
        (cookie, [SUBPROTOCOL, key], "http://evil.example", 403),
        (cookie, [SUBPROTOCOL, key], None, 403),
        (door.bearer, [SUBPROTOCOL], "http://evil.example", 403),
        (cookie, [SUBPROTOCOL], door.origin, 401),
        (cookie, [SUBPROTOCOL, key + "0"], door.origin, 401),
        ({}, [SUBPROTOCOL, key], door.origin, 401),
        ({"Authorization": "Bearer nonsense"}, [SUBPROTOCOL], None, 401),
        (door.bearer | {"Host": "evil.example"}, [SUBPROTOCOL], None, 403),
    ]
    for headers, protocols, origin, status in ways:
        try:
            async with connect(
                place, subprotocols=protocols, origin=origin, additional_headers=headers, compression=None
            ) as line:
                assert status == 101, (headers, protocols, origin)
                assert line.subprotocol == SUBPROTOCOL
                await say(line, type="subscribe", id="x", scope="panes")
                await hear(line, "line")
        except InvalidStatus as refused:
            assert refused.response.status_code == status, (headers, protocols, origin)
    with pytest.raises(InvalidStatus) as other:
        async with connect(place.replace("live", "ws"), subprotocols=["mcp"], additional_headers=door.bearer):
            pass
    assert other.value.response.status_code == 403


OVER = {"attention": {"kind": "error", "summary": "over"}}


def flood(home: Home, pane: str) -> None:
    """More than any connection holds."""
    with home.connect() as hook:
        for number in range(200):
            attention = {"kind": "question", "summary": f"{number}", "detail": "x" * 4_000}
            told = event(pane, "state.waiting_input", raw_payload={"attention": attention})
            assert hook.ask("POST", "/v1/events", told).status == 200


async def test_who_takes_nothing_is_cut_off_and_costs_the_others_nothing(home: Home) -> None:
    pane = next(iter(home.panes()))
    head = "GET /v1/live HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
    head += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    wish = json.dumps({"type": "subscribe", "id": "x", "scope": "panes"}).encode()
    before = home.health()["streams"]
    with socket.socket(socket.AF_UNIX) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(str(home.socket))
        slow.sendall(head.encode())
        assert slow.recv(12) == b"HTTP/1.1 101"
        # A frame of a client's: masked, with a mask of zeros.
        slow.sendall(bytes((0x81, 0x80 | len(wish), 0, 0, 0, 0)) + wish)
        wait_until(lambda: home.health()["streams"] == before + 1, "its stream")
        async with live(home) as line:
            await say(line, type="subscribe", id="x", scope="panes")
            # This one takes what it is told, all the while.
            reading = asyncio.create_task(until_over(line))
            await asyncio.to_thread(flood, home, pane)

            def is_cut_off() -> bool:
                return bool(home.health()["streams"] == before + 1)

            await asyncio.to_thread(wait_until, is_cut_off, "the end of the slow one's stream", 30)
            await asyncio.to_thread(home.ask, "POST", "/v1/events", event(pane, "state.error", raw_payload=OVER))
            await reading
        # And its connection is closed, once it has taken what was on its way.
        slow.settimeout(PATIENCE)
        while slow.recv(1 << 20):
            pass


async def until_over(line: ClientConnection) -> None:
    while "over" not in json.dumps((await hear(line, "line"))["line"].get("changes")):
        pass


def test_a_screen_is_text_and_colours_whatever_a_machine_says() -> None:
    assert legible("\x1b[1;38:2::1:2:3mx\x1b[0m") == "\x1b[1;38:2::1:2:3mx\x1b[0m"
    assert legible("\x0elqqk\x0f a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "┌──┐ alink"
    assert legible("a\x1b[2Jb\x1bcc\x07\x00\x9b31md\x1b") == "abc31md"
    assert legible("a\tb\n\n \n") == "a\tb"


async def test_what_is_said_comes_to_who_looks_at_that_agent_or_its_work_tree() -> None:
    with shared_home() as home:
        project = home.folder / "labels"
        project.mkdir()
        git(project, "init", "-q")
        talker, other = Talker(home, cwd=project), Talker(home)
        for each in (talker, other):
            each.turn(1)
        home.start()
        wait_until(lambda: {talker.pane, other.pane} <= set(home.panes()), "the panes")
        for each in (talker, other):
            each.stir()
            await asyncio.to_thread(each.hears, *turns(1, 1))
        async with live(home) as line:
            await say(line, type="subscribe", id="y", pane=talker.ref)
            await hear(line, "screen")
            await say(line, type="subscribe", id="z", worktree=str(project))
            # What it is answered with comes in order, so that both are there before anything is said.
            await say(line, type="subscribe", id="?")
            await hear(line, "error")
            other.turn(2)
            talker.prompt("<b>of ours</b>")
            came = {told["id"]: told["message"] for told in [await hear(line, "message"), await hear(line, "message")]}
        assert came["y"] == came["z"]
        assert came["y"]["content"] == "<b>of ours</b>"
        listed = home.ask("GET", f"/v1/conversations/messages?ref={talker.ref}").json["items"]
        assert listed[-1] == came["y"]


async def test_at_the_end_everybody_is_told(home: Home) -> None:
    with shared_home() as other:
        daemon = other.start()
        door = Door(other, "--port", "0")
        place = f"ws://{door.host}:{door.port}/v1/live"
        async with (
            live(other) as line,
            connect(place, subprotocols=[SUBPROTOCOL], additional_headers=door.bearer, compression=None) as far,
        ):
            ending = asyncio.to_thread(other.end, daemon)
            ended = asyncio.create_task(ending)
            for each in (line, far):
                assert await hear(each, "end") == {"type": "end"}
                with pytest.raises(ConnectionClosed):
                    await each.recv()
            await ended


def transcript(first: int, last: int) -> bytes:
    """Turns as one piece."""
    roles = ("user", "assistant") * (last - first + 1)
    lines = [
        {"type": role, "message": {"role": role, "content": text}, "uuid": str(uuid.uuid4()), "timestamp": stamp()}
        for role, text in zip(roles, turns(first, last), strict=True)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def test_a_transcript_that_comes_at_once_cuts_nobody_off() -> None:
    """An agent goes on with a conversation of days: more than is kept for anyone, whose reader is not slow at all."""
    with shared_home() as home:
        talker = Talker(home)
        talker.turn(1)
        home.start()
        wait_until(lambda: talker.pane in home.panes(), "the pane")
        talker.stir()
        await asyncio.to_thread(talker.hears, *turns(1, 1))
        async with live(home) as line:
            await say(line, type="subscribe", id="y", pane=talker.ref)
            # What was wished for before it is listened for by now.
            await say(line, type="ping", id="y")
            assert await hear(line, "pong") == {"type": "pong", "id": "y"}
            talker.append(transcript(2, 150))
            assert await hear(line, "missed") == {"type": "missed", "id": "y"}
            # The last ones come all the same, and whoever asks has the others.
            while (await hear(line, "message"))["message"]["content"] != "answer 150":
                pass
            await say(line, type="ping", id="still there?")
            assert await hear(line, "pong") == {"type": "pong", "id": "still there?"}
            talker.turn(151)
            assert (await hear(line, "message"))["message"]["content"] == "prompt 151"
