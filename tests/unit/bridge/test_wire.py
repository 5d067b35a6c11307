"""The bridge's side of a WebSocket, against the other side of a library's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from agtmux.bridge.wire import GREETING, Wire, WireError, framed
from support.cutting import CUTS, parts


def greeted() -> tuple[Wire, ServerProtocol]:
    server = ServerProtocol(subprotocols=["mcp"])  # type: ignore[list-item]
    server.receive_data(GREETING)
    (request,) = server.events_received()
    assert isinstance(request, Request)
    server.send_response(server.accept(request))
    wire = Wire()
    assert wire.receive(b"".join(server.data_to_send())) == []
    assert wire.is_open
    return wire, server


@given(
    st.lists(st.text(max_size=300) | st.sampled_from(["x" * 125, "x" * 126, "é" * 40_000]), max_size=5),
    CUTS,
)
def test_messages_arrive_whole_however_they_are_cut(texts: list[str], cuts: list[float]) -> None:
    wire, server = greeted()
    for text in texts:
        server.send_text(text.encode())
    stream = b"".join(server.data_to_send())
    got: list[bytes] = []
    for part in parts(stream, cuts):
        got += wire.receive(part)
    assert got == [text.encode() for text in texts]
    for text in texts:
        server.receive_data(framed(text.encode()))
    assert [frame.data for frame in server.events_received()] == [text.encode() for text in texts]


def test_parts_of_a_message_are_put_together_and_pings_answered() -> None:
    wire, server = greeted()
    server.send_text(b"one ", fin=False)
    server.send_ping(b"there?")
    server.send_continuation(b"two", fin=True)
    assert wire.receive(b"".join(server.data_to_send())) == [b"one two"]
    server.receive_data(bytes(wire.replies))
    (pong,) = server.events_received()
    assert (pong.opcode, pong.data) == (Opcode.PONG, b"there?")


def test_a_close_is_answered_and_ends_it() -> None:
    wire, server = greeted()
    server.send_close(1012)
    assert wire.receive(b"".join(server.data_to_send())) == []
    assert wire.is_closed
    server.receive_data(bytes(wire.replies))
    (answer,) = server.events_received()
    assert answer.opcode == Opcode.CLOSE


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_who_is_no_daemon_is_not_taken_for_one(answer: bytes) -> None:
    with pytest.raises(WireError):
        Wire().receive(answer)


@pytest.mark.parametrize("frame", [b"\x81\x80\0\0\0\0", b"\x82\x01x", b"\x81\x7f" + b"\xff" * 8])
def test_what_no_daemon_sends_is_refused(frame: bytes) -> None:
    wire, _ = greeted()
    with pytest.raises(WireError):
        wire.receive(frame)
