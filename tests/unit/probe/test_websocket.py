"""A WebSocket's server side: however its bytes come, the messages are the same, and what no bridge says is refused."""

import asyncio
import itertools
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import unix_connect

from agtmux.bridge.wire import GREETING, Wire
from agtmux.bridge.wire import framed as framed_by_client
from agtmux.probe.websocket import Incoming, SocketError, accepted, framed

FIELDS = {"upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-protocol": "x, mcp"}
LIMIT = 1_000


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(at)]


@given(st.lists(st.binary(max_size=300), max_size=5), st.lists(st.integers(0, 5_000), max_size=9))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], places: list[int]) -> None:
    incoming = Incoming(LIMIT)
    heard = [each for part in cut(b"".join(map(framed_by_client, messages)), places) for each in incoming.receive(part)]
    assert heard == messages


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_a_mask_is_taken_off(message: bytes, mask: bytes) -> None:
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(message))
    head = bytes((0x81, 0x80 | min(len(message), 126))) + (
        len(message).to_bytes(2, "big") if len(message) > 125 else b""
    )
    assert Incoming(LIMIT).receive(head + mask + masked) == [message]


@given(st.binary(max_size=70_000), st.integers(1, 30_000))
def test_a_bridge_understands_what_it_is_told_in_pieces(message: bytes, size: int) -> None:
    answer = accepted("GET /v1/ws HTTP/1.1", FIELDS)
    assert answer is not None
    starts = list(range(0, max(len(message), 1), size))
    pieces = [framed(message[at : at + size], at == 0, at == starts[-1]) for at in starts]
    assert Wire().receive(answer + b"".join(pieces)) == [message]


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\x05hello",
        b"\x81\xfe" + (LIMIT + 1).to_bytes(2, "big"),
        b"\x81\xff" + (1 << 62).to_bytes(8, "big"),
        b"\x83\x80\0\0\0\0",
        b"\x01\xfe" + (900).to_bytes(2, "big") + bytes(904) + b"\x80\xfe" + (900).to_bytes(2, "big") + bytes(904),
    ],
    ids=["not masked", "too long", "far too long", "of no known kind", "too long in parts"],
)
def test_what_no_bridge_says_is_refused(data: bytes) -> None:
    with pytest.raises(SocketError):
        Incoming(LIMIT).receive(data)


def test_a_ping_is_answered_and_an_end_is_an_end() -> None:
    incoming = Incoming(LIMIT)
    assert incoming.receive(framed_by_client(b"?", 0x9) + framed_by_client(b"", 0x8) + framed_by_client(b"late")) == []
    assert bytes(incoming.replies) == framed(b"?", kind=0xA) + framed(b"", kind=0x8)
    assert incoming.is_closed


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        ("GET /v1/watch HTTP/1.1", {}),
        ("POST /v1/ws HTTP/1.1", {}),
        ("GET /v1/ws HTTP/1.1", {"upgrade": "h2c"}),
        ("GET /v1/ws HTTP/1.1", {"sec-websocket-version": "8"}),
        ("GET /v1/ws HTTP/1.1", {"sec-websocket-protocol": "chat"}),
    ],
)
def test_only_a_bridge_is_accepted(first: str, changed: dict[str, Any]) -> None:
    assert accepted(first, {**FIELDS, **changed}) is None


def test_our_own_bridge_is_accepted() -> None:
    first, *lines = GREETING.decode().rstrip().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines)
    assert accepted(first, fields) is not None


async def test_a_client_of_somebody_elses_is_understood(short_tmp: Any) -> None:
    """Whoever wrote it: the library checks what it is answered."""
    path = str(short_tmp / "x.sock")

    def serve(listener: socket.socket) -> list[bytes]:
        connection = listener.accept()[0]
        with connection:
            head, _, rest = connection.recv(4096).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            answer = accepted(lines[0], {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])})
            assert answer is not None
            connection.sendall(answer)
            incoming = Incoming(1 << 20)
            heard = incoming.receive(rest)
            while not heard:
                heard += incoming.receive(connection.recv(4096))
            connection.sendall(framed(b"half ", True, False) + framed(b"and half", False, True))
            connection.recv(4096)
            return heard

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        serving = asyncio.create_task(asyncio.to_thread(serve, listener))
        async with unix_connect(path, "ws://x/v1/ws", subprotocols=["mcp"], compression=None) as client:  # type: ignore[list-item]
            await client.send("größe" * 10_000)
            assert await client.recv() == "half and half"
        assert await serving == [("größe" * 10_000).encode()]
