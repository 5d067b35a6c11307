"""Bridges beside a tmux server: their lines go on in pieces, no more ahead than is wanted, and back."""

import base64
import os
import queue
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agtmux.bridge.wire import GREETING, Wire, WireError, framed
from agtmux.probe.bridges import LONGEST_LINE, MOST_BRIDGES, PIECE, WINDOW, Bridges
from agtmux.probe.hook_socket import HookSocket
from support.home import wait_until

LIMIT = 10.0


class End:
    """The probe's end of its line, where it is heard what bridges say."""

    def __init__(self) -> None:
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self.bridges = Bridges(self.heard.put)

    def next(self) -> dict[str, Any]:
        return self.heard.get(timeout=LIMIT)

    def order(self, what: str, bridge: int, **more: Any) -> None:
        self.bridges.obey({"do": what, "bridge": bridge, **more})

    def tell(self, bridge: int, data: bytes, is_last: bool = True) -> None:
        self.order("tell", bridge, data=base64.b64encode(data).decode(), is_last=is_last)


class Caller:
    """A bridge at the door."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.socket.sendall(GREETING)
        self.wire = Wire()
        self._messages: list[bytes] = []
        try:
            while not self.wire.is_open:
                self._messages += self.wire.receive(self._chunk())
        except WireError:
            self.socket.close()
            raise

    def _chunk(self) -> bytes:
        chunk = self.socket.recv(65_536)
        if not chunk:
            raise ConnectionResetError
        return chunk

    def say(self, line: bytes) -> None:
        self.socket.sendall(framed(line))

    def hear(self) -> bytes:
        while not self._messages:
            self._messages += self.wire.receive(self._chunk())
        return self._messages.pop(0)


@pytest.fixture
def end() -> Iterator[End]:
    made = End()
    yield made
    made.bridges.close()


@pytest.fixture
def knock(short_tmp: Any, end: End) -> Iterator[Callable[[], Caller]]:
    door = HookSocket(str(short_tmp / "agtmuxd.sock"), lambda *_: False, end.bridges.take)
    callers: list[Caller] = []

    def knocked() -> Caller:
        callers.append(Caller(door.path))
        return callers[-1]

    yield knocked
    for caller in callers:
        caller.socket.close()
    door.close()


def data_of(said: dict[str, Any]) -> bytes:
    return base64.b64decode(said["data"])


def test_a_line_goes_on_with_the_processes_that_say_it(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    assert end.next() == {"notice": "bridge", "bridge": 1}
    caller.say(b'{"a": 1}')
    said = end.next()
    assert (said["notice"], said["bridge"], data_of(said), said["is_last"]) == ("said", 1, b'{"a": 1}', True)
    assert said["lineage"][0] == os.getpid()
    end.tell(1, b'{"b": ', is_last=False)
    end.tell(1, b"2}")
    assert caller.hear() == b'{"b": 2}'
    assert [end.next(), end.next()] == [{"notice": "took", "bridge": 1}] * 2
    caller.socket.close()
    assert end.next() == {"notice": "left", "bridge": 1}


def test_no_more_is_said_than_is_wanted(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    end.next()
    for number in range(WINDOW + 3):
        caller.say(b"%d" % number)
    assert [data_of(end.next()) for _ in range(WINDOW)] == [b"%d" % number for number in range(WINDOW)]
    with pytest.raises(queue.Empty):
        end.heard.get(timeout=0.2)
    for number in range(WINDOW, WINDOW + 3):
        end.order("more", 1)
        assert data_of(end.next()) == b"%d" % number


def test_a_long_line_comes_in_pieces(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    end.next()
    line = os.urandom(PIECE * 6 + 5).hex().encode()[: PIECE * 6 + 5]
    caller.say(line)
    pieces = []
    while not pieces or not pieces[-1]["is_last"]:
        pieces.append(end.next())
        end.order("more", 1)
    assert b"".join(map(data_of, pieces)) == line
    # Who says it is asked once a line.
    assert [piece.get("lineage") is None for piece in pieces] == [True] * 6 + [False]


def test_who_does_not_listen_holds_up_nobody_else(end: End, knock: Callable[[], Caller]) -> None:
    deaf, other = knock(), knock()
    assert {end.next()["bridge"], end.next()["bridge"]} == {1, 2}
    for _ in range(60):
        end.tell(1, b"x" * PIECE)
    end.tell(2, b"hello")
    assert other.hear() == b"hello"
    heard = [end.next()]
    while heard[-1]["bridge"] != 2:
        heard.append(end.next())
    assert len(heard) < 60
    deaf.socket.close()
    while end.next() != {"notice": "left", "bridge": 1}:
        pass


def test_who_asks_for_signs_of_life_and_never_listens_has_to_wait(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    end.next()
    caller.socket.settimeout(0.5)
    pings = framed(b"?" * 100, 0x9) * 1_000
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 64_000_000:
            caller.socket.sendall(pings)
            sent += len(pings)


def test_who_breaks_the_rules_is_let_go(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    end.next()
    caller.socket.sendall(b"\x81\xff" + (LONGEST_LINE + 1).to_bytes(8, "big"))
    assert end.next() == {"notice": "left", "bridge": 1}
    with pytest.raises(ConnectionResetError):
        caller.hear()
    # What is still said to it goes nowhere.
    end.tell(1, b"late")
    second = knock()
    assert end.next() == {"notice": "bridge", "bridge": 2}
    end.order("drop", 2)
    assert end.next() == {"notice": "left", "bridge": 2}
    with pytest.raises(ConnectionResetError):
        second.hear()


def test_a_bridge_that_ends_when_it_has_said_all_is_still_heard(end: End, knock: Callable[[], Caller]) -> None:
    caller = knock()
    end.next()
    for number in range(WINDOW + 1):
        caller.say(b"%d" % number)
    caller.socket.close()
    for _ in range(WINDOW):
        end.next()
    end.order("more", 1)
    assert data_of(end.next()) == b"%d" % WINDOW
    assert end.next() == {"notice": "left", "bridge": 1}


def test_only_so_many_are_taken(end: End, knock: Callable[[], Caller]) -> None:
    def is_full() -> bool:
        try:
            knock()
        except WireError:
            return end.heard.qsize() == MOST_BRIDGES
        return False

    wait_until(is_full, "as many as there may be", 30)
    # None after its end.
    end.bridges.close()
    with pytest.raises(WireError):
        knock()
