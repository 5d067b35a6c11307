"""The socket of a session: who comes back misses nothing, and who floods or sleeps harms nobody."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.chat.door import _Client, bind, is_answered, sweep
from agtmux.chat.journal import Journal
from agtmux.domain.errors import AgtmuxError, ErrorCode
from support.chat import ChatClient, Sitting, sitting
from support.home import wait_until

LISTENS = """
import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print(flush=True)
time.sleep(60)
"""


async def joined(here: Sitting) -> ChatClient:
    return await asyncio.to_thread(ChatClient, here.path)


async def until(client: ChatClient, *kinds: str) -> dict[str, Any]:
    return await asyncio.to_thread(client.until, *kinds)


async def test_a_client_speaks_and_hears(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as client:
            assert client.init["session_id"] == here.session.session_id and client.init["protocol"] == 1
            client.send("message", text="say hello")
            assert (await until(client, "done"))["usage"] == {"input_tokens": 3, "output_tokens": 4}
            assert client.text() == "hello "


async def test_the_socket_is_its_owners_alone_and_goes_with_the_session(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        assert stat.S_IMODE(here.path.stat().st_mode) == 0o600
    assert not here.path.exists()


async def test_who_comes_back_misses_nothing(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as first:
            first.send("message", text="say one two three")
            seen = (await until(first, "text_delta"))["seq"]
        await asyncio.to_thread(wait_until, lambda: here.session.outcome is not None, "the end of the turn")
        with await joined(here) as second:
            assert second.init["last_seq"] > seen
            second.send("replay", after=seen)
            await until(second, "done")
            assert [line["seq"] for line in second.lines[1:]] == list(range(seen + 1, second.init["last_seq"] + 1))


async def test_what_is_no_longer_kept_is_an_honest_gap(short_tmp: Path) -> None:
    async with sitting(short_tmp, journal=Journal(most_lines=5)) as here:
        with await joined(here) as client:
            client.send("message", text="say " + " ".join(map(str, range(40))))
            await until(client, "done")
        with await joined(here) as late:
            late.send("replay", after=0)
            gap = await until(late, "gap")
            assert (gap["from"], gap["to"]) == (1, late.init["last_seq"] - 5)
            assert (await until(late, "done"))["seq"] == late.init["last_seq"]
            assert late.kinds().count("gap") == 1
            late.send("replay", after=10_000)
            assert (await until(late, "error"))["code"] == "E_CURSOR_INVALID"


class SlowWriter:
    """The end of a connection that takes what it is told when the test says so."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.takes = asyncio.Event()
        self._news = asyncio.Event()
        self.transport = SimpleNamespace(set_write_buffer_limits=lambda high: None)

    def write(self, data: bytes) -> None:
        self.lines += map(json.loads, data.splitlines())
        self._news.set()

    async def drain(self) -> None:
        await self.takes.wait()

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...

    async def until(self, seq: int) -> None:
        """That it was told of everything up to there."""
        async with asyncio.timeout(10):
            while max(self.numbers(), default=0) < seq:
                self._news.clear()
                await self._news.wait()

    def numbers(self) -> list[int]:
        """Of all that it was told of, be it that they are missing."""
        found: list[int] = []
        for line in self.lines:
            found += range(line["from"], line["to"] + 1) if line["type"] == "gap" else [line["seq"]]
        return found


def slow_client(journal: Journal) -> tuple[_Client, SlowWriter]:
    writer = SlowWriter()
    session = SimpleNamespace(journal=journal)
    return _Client(session, None, writer, 10.0), writer  # type: ignore[arg-type]


def happens(journal: Journal, count: int) -> None:
    for _ in range(count):
        journal.add({"type": "text_delta", "text": "x"})


async def test_what_is_forgotten_while_a_gap_is_told_is_a_gap_too() -> None:
    journal = Journal(most_lines=10)
    client, writer = slow_client(journal)
    happens(journal, 30)
    telling = asyncio.create_task(client._tell())
    await writer.until(20)
    happens(journal, 15)
    writer.takes.set()
    await writer.until(45)
    telling.cancel()
    assert writer.lines[0] == {"type": "gap", "from": 1, "to": 20}
    assert writer.numbers() == list(range(1, 46))


async def test_what_is_forgotten_when_the_session_ends_is_told_before_its_end() -> None:
    journal = Journal(most_lines=10)
    client, writer = slow_client(journal)
    happens(journal, 30)
    writer.takes.set()
    await client.end("it is over")
    assert writer.lines.pop() == {"type": "end", "reason": "it is over"}
    assert writer.numbers() == list(range(1, 31))


async def test_of_two_who_answer_the_first_wins_and_both_hear_of_it(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as one, await joined(here) as two:
            # Two requests, so that the turn is not over before the second answer.
            one.send("message", text="twice touch")
            for client in (one, two):
                await until(client, "approval_request")
                await until(client, "approval_request")
            one.send("approve", request_id="r1")
            assert (await until(two, "answered"))["decision"] == "approved"
            two.send("deny", request_id="r1")
            refused = await until(two, "error")
            assert refused["code"] == "E_PRECONDITION_FAILED" and "approved" in refused["message"]
            two.send("approve", request_id="r2")
            for client in (one, two):
                assert (await until(client, "done"))["outcome"] == "completed"


async def test_who_comes_while_it_asks_is_told_what(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as one:
            one.send("message", text="ask touch a")
            await until(one, "approval_request")
        with await joined(here) as two:
            assert [each["request_id"] for each in two.init["pending"]] == ["r1"]
            two.send("approve", request_id="r1")
            await until(two, "done")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"garbage\n", "E_USAGE"),
        (b'{"type":"nope"}\n', "E_USAGE"),
        (b'{"type":"approve","request_id":"x"}\n', "E_NOT_FOUND"),
        (b'{"type":"abort"}\n', "E_PRECONDITION_FAILED"),
        (b'{"type":"replay","after":-1}\n', "E_CURSOR_INVALID"),
        (b'{"type":"message","text":"' + b"x" * 1_100_000 + b'"}\n', "E_TOO_LARGE"),
    ],
)
async def test_what_is_wrong_is_an_error_line_and_no_more(short_tmp: Path, said: bytes, code: str) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as client:
            await asyncio.to_thread(client.raw, said)
            error = await until(client, "error")
            assert error["code"] == code and "seq" not in error
            client.send("message", text="say still here")
            await until(client, "done")


async def test_a_flood_of_garbage_is_answered_line_by_line_and_holds_up_nobody(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        with await joined(here) as flood, await joined(here) as other:
            count = 10_000
            sending = asyncio.create_task(asyncio.to_thread(flood.raw, b"garbage\n" * count))
            other.send("message", text="say hello")
            await until(other, "done")
            answers = await asyncio.to_thread(lambda: [flood.until("error") for _ in range(count)])
            assert len(answers) == count
            await sending


async def test_who_takes_nothing_is_cut_off_and_nothing_is_kept_for_it(short_tmp: Path) -> None:
    async with sitting(short_tmp, stall_limit=0.3) as here:
        with await joined(here) as sleeper:
            here.session.say("flood 500")
            await asyncio.to_thread(wait_until, lambda: here.door.client_count == 0, "the sleeper's end")
            await asyncio.to_thread(wait_until, lambda: here.session.outcome == "completed", "the end of the turn")
            # Who is told no more than the system takes at once never has to hurry.
            with await joined(here) as other:
                other.send("message", text="say hello")
                await until(other, "done")
            # It takes what the system had taken for it, and finds the end.
            with pytest.raises((EOFError, ConnectionError)):
                await until(sleeper, "done")


async def test_a_session_that_ends_says_so_with_all_that_came_before(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        client = await joined(here)
        client.send("message", text="say hello")
        await until(client, "done")
    with client:
        assert (await until(client, "end"))["reason"] == "the test is over"


async def test_many_clients_are_served_and_too_many_are_told(short_tmp: Path) -> None:
    async with sitting(short_tmp) as here:
        clients = [await joined(here) for _ in range(64)]
        with socket.socket(socket.AF_UNIX) as extra:
            extra.settimeout(10)
            await asyncio.to_thread(extra.connect, str(here.path))
            assert b"E_LIMIT_RATE" in await asyncio.to_thread(extra.recv, 4096)
        clients[0].send("message", text="say hello")
        for client in clients:
            await until(client, "done")
            client.close()


def test_a_socket_that_was_left_behind_is_replaced_and_nothing_else_is(short_tmp: Path) -> None:
    path = short_tmp / "chat.sock"
    killed = subprocess.Popen([sys.executable, "-c", LISTENS, str(path)], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    killed.stdout.readline()
    with pytest.raises(AgtmuxError) as caught:
        bind(str(path))
    assert caught.value.code is ErrorCode.ALREADY_RUNNING
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert path.exists() and not is_answered(str(path))
    bind(str(path)).close()
    path.unlink()
    path.write_text("somebody's file")
    with pytest.raises(AgtmuxError, match="something else is there"):
        bind(str(path))
    assert path.read_text() == "somebody's file"


def test_our_own_folder_is_swept_of_the_dead(short_tmp: Path) -> None:
    dead, alive = short_tmp / "dead.sock", short_tmp / "alive.sock"
    bind(str(dead)).close()
    listener = bind(str(alive))
    sweep(short_tmp)
    assert not dead.exists() and alive.exists()
    listener.close()


def test_a_path_that_is_too_long_is_told_before_anything_else(tmp_path: Path) -> None:
    with pytest.raises(AgtmuxError, match="--socket"):
        bind(str(tmp_path / ("x" * 120)))


def test_a_session_that_is_too_busy_to_let_anybody_in_is_not_dead(short_tmp: Path):
    """As one that was stopped by Ctrl-Z, with clients before its door."""
    path = short_tmp / "chat.sock"
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        for _ in range(8):
            waiting = opened.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(str(path))
        assert is_answered(str(path))
        with pytest.raises(AgtmuxError) as caught:
            bind(str(path))
        assert caught.value.code is ErrorCode.ALREADY_RUNNING
        sweep(short_tmp)
        assert path.exists()


def test_a_socket_that_is_about_to_listen_is_not_swept_away(short_tmp: Path, monkeypatch: pytest.MonkeyPatch):
    """Between its bind and its listen nobody answers on it."""
    path = short_tmp / "chat.sock"
    sweeping = threading.Event()

    class Slow(socket.socket):
        def listen(self, *given: int) -> None:  # type: ignore[override]
            child = threading.Thread(target=lambda: (sweeping.set(), sweep(short_tmp)))
            child.start()
            children.append(child)
            sweeping.wait(10)
            # Long enough for one that does not wait its turn.
            child.join(1)
            super().listen(*given)

    children: list[threading.Thread] = []
    with monkeypatch.context() as patched:
        patched.setattr("agtmux.chat.door.socket.socket", Slow)
        listener = bind(str(path))
    with listener:
        children[0].join(10)
        assert not children[0].is_alive() and path.exists()


def test_who_locks_the_folder_for_good_is_told_of(short_tmp: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agtmux.chat.door.LOCK_LIMIT", 0.1)
    descriptor = os.open(short_tmp, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(AgtmuxError, match="another process has locked"):
            bind(str(short_tmp / "chat.sock"))
        sweep(short_tmp)
    finally:
        os.close(descriptor)
    bind(str(short_tmp / "chat.sock")).close()
