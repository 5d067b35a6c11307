"""Connections to the board that send much and read nothing: who has the token is answered all the same."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chance import any_seed
from support.door import Door
from support.home import Home, home_in, wait_until
from support.targets import resident_bytes

MEGABYTE = 1 << 20
CONNECTIONS = 200
SECONDS = 8.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        yield made


def test_unread_requests_take_no_memory_and_keep_nobody_out(home: Home) -> None:
    chance = random.Random(any_seed())
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    door = Door(home, "--port", "0")
    memory = resident_bytes(daemon.pid)
    paths = ("/", "/v1/panes", "/v1/nothing", "/board.css", "/v1/board/login")
    head = f"Host: {door.host}:{door.port}\r\n\r\n"
    block = "".join(f"GET {chance.choice(paths)} HTTP/1.1\r\n{head}" for _ in range(2_000)).encode()
    crowd: list[socket.socket | None] = [None] * CONNECTIONS
    with contextlib.ExitStack() as closing:
        closing.callback(lambda: [each.close() for each in crowd if each is not None])
        until, answers = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            for number, each in enumerate(crowd):
                if each is None:
                    each = crowd[number] = socket.socket()
                    each.setblocking(False)
                    each.connect_ex((door.host, door.port))
                try:
                    each.send(block[chance.randrange(100) :] if chance.random() < 0.1 else block)
                except BlockingIOError:
                    pass
                except OSError:
                    each.close()
                    crowd[number] = None
            assert door.ask("GET", "/v1/panes", headers=door.bearer).status == 200
            assert pane in home.panes()
            answers += 1
        assert answers > 1
        assert resident_bytes(daemon.pid) - memory < 40 * MEGABYTE
        assert home.log.stat().st_size < 200_000
