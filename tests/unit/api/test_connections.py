"""One request at a time, room for who is known, and no memory for who does not read. Over real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from agtmux.api.board.listener import Listener
from agtmux.api.connections import ConnectionLimits
from agtmux.api.protocol import CONNECTION
from agtmux.api.server import HttpServer
from support.chance import any_seed

PATIENCE = 20.0
ROOM = ConnectionLimits(most=100, unknown=50, unknown_per_address=50)
LARGE = 4_000_000


class App:
    """Answers with the path and the size of the body; counts how many requests of one connection are under way."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.under_way: dict[int, int] = {}
        self.most_under_way = 0
        self.ended: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(receive, send)
            return
        connection, path = scope[CONNECTION], scope["path"]
        self.under_way[id(connection)] = self.under_way.get(id(connection), 0) + 1
        self.most_under_way = max(self.most_under_way, self.under_way[id(connection)])
        self.paths.append(path)
        try:
            if path.startswith("/known"):
                assert connection.know()
            size, more = 0, True
            while more:
                message = await receive()
                size, more = size + len(message.get("body", b"")), message.get("more_body", False)
            await self.go_on.wait()
            body = b"x" * LARGE if path.endswith("large") else f"{path} {size}".encode()
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"content-length", str(len(body)).encode())],
                }
            )
            self.under_way[id(connection)] -= 1
            await send({"type": "http.response.body", "body": body})
        finally:
            self.ended.append(path)

    async def _socket(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass


class Served:
    def __init__(self, app: App, server: HttpServer, port: int) -> None:
        self.app, self.server, self.port = app, server, port
        self.clients: list[socket.socket] = []

    @property
    def counts(self) -> dict[str, int]:
        return self.server.connections.counts

    async def connect(self, address: str = "127.0.0.1", buffer: int | None = None) -> socket.socket:
        connection = socket.socket()
        self.clients.append(connection)
        if buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.bind((address, 0))
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        return connection


@contextlib.asynccontextmanager
async def served(limits: ConnectionLimits = ROOM) -> AsyncIterator[Served]:
    listener = Listener(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    listener.setblocking(False)
    app = App()
    server = HttpServer(app, listener, limits=limits)
    server.start()
    its = Served(app, server, listener.getsockname()[1])
    try:
        yield its
    finally:
        app.go_on.set()
        for each in its.clients:
            each.close()
        await server.stop()
        listener.close()


async def until(condition: Callable[[], Any], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            # What is waited for is on the other side of a socket, which tells nobody.
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {PATIENCE:.0f} seconds") from None


async def send(connection: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, data)


async def is_ended(connection: socket.socket) -> bool:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(PATIENCE):
            while await loop.sock_recv(connection, 1 << 20):
                pass
    except ConnectionResetError:
        pass
    return True


def request(path: str, body: bytes = b"") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"POST {path} HTTP/1.1\r\nHost: a\r\n{length}\r\n".encode() + body


def test_requests_sent_at_once_are_taken_one_after_the_other() -> None:
    chance = random.Random(any_seed())

    async def run() -> None:
        async with served(ConnectionLimits(100)) as its:
            for turn in range(30):
                texts = [b"", b"x" * chance.randrange(200), b"\r\n\r\n" * chance.randrange(1, 30), b"GET / HTTP/1.1"]
                bodies = [chance.choice(texts) for _ in range(chance.randrange(2, 40))]
                raw = b"".join(request(f"/{turn}/{number}", body) for number, body in enumerate(bodies))
                cuts = sorted(chance.sample(range(1, len(raw)), min(chance.randrange(20), len(raw) - 1)))
                pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
                connection = await its.connect()
                reader, writer = await asyncio.open_connection(sock=connection)
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0)
                for number, body in enumerate(bodies):
                    async with asyncio.timeout(PATIENCE):
                        head = await reader.readuntil(b"\r\n\r\n")
                    size = int(head.lower().partition(b"content-length:")[2].split()[0])
                    assert await reader.readexactly(size) == f"/{turn}/{number} {len(body)}".encode()
                writer.close()
            assert its.app.most_under_way == 1

    asyncio.run(run())


def test_what_is_sent_behind_a_request_stays_with_the_kernel() -> None:
    async def run() -> None:
        async with served() as its:
            its.app.go_on.clear()
            connection = await its.connect()
            block, sent = request("/first") * 2_000, 0
            with contextlib.suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(1):
                        await asyncio.get_running_loop().sock_sendall(connection, block)
                    sent += len(block)
                    assert sent < 64_000_000, "all is taken"
            assert its.app.paths == ["/first"]

    asyncio.run(run())


def test_a_second_request_in_a_chunked_one_ends_the_connection() -> None:
    """A body that says its length in pieces is not searched for its end."""

    async def run() -> None:
        async with served() as its:
            its.app.go_on.clear()
            connection = await its.connect()
            head = b"POST /first HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            await send(connection, head)
            await until(lambda: its.app.paths, "the first")
            await send(connection, b"0\r\n\r\n" + request("/second") * 100)
            assert await is_ended(connection)
            assert its.app.paths == ["/first"]

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/large", "/known/large"])
def test_who_does_not_read_is_dropped(path: str) -> None:
    async def run() -> None:
        limits = ConnectionLimits(100, 50, 50, patience=0.3, unknown_patience=0.3)
        async with served(limits) as its:
            connection = await its.connect(buffer=4_096)
            await send(connection, request(path) * 10)
            await until(lambda: its.counts["not read"] == 1, "the end of who does not read")
            await until(lambda: its.server.connections.is_empty, "nothing to be left of it")

    asyncio.run(run())


def test_who_reads_slowly_is_not_dropped() -> None:
    """Each step is well within the patience, and all of them together are far beyond it."""

    async def run() -> None:
        limits = ConnectionLimits(100, 50, 50, patience=1.0, unknown_patience=1.0)
        async with served(limits) as its:
            connection = await its.connect(buffer=16_384)
            await send(connection, request("/large"))
            taken, loop = 0, asyncio.get_running_loop()
            while taken < LARGE:
                chunk = await loop.sock_recv(connection, LARGE // 30)
                assert chunk, taken
                taken += len(chunk)
                if taken < LARGE * 9 // 10:
                    await asyncio.sleep(0.05)
            assert its.counts["not read"] == 0

    asyncio.run(run())


def test_the_oldest_unknown_connection_gives_way_and_a_known_one_stays() -> None:
    async def run() -> None:
        async with served(ConnectionLimits(most=20, unknown=8, unknown_per_address=4)) as its:
            known = await its.connect()
            await send(known, request("/known"))
            await until(lambda: its.app.ended == ["/known"], "who is known")
            other = await its.connect("127.0.0.2")
            crowd = [await its.connect() for _ in range(30)]
            await until(lambda: its.counts["evicted"] == 26, "the others to give way")
            ended = [await is_ended(each) for each in crowd[:26]]
            assert all(ended)
            for number, each in enumerate([crowd[-1], other, known]):
                await send(each, request(f"/later/{number}"))
                await until(lambda n=number: f"/later/{n}" in its.app.ended, f"an answer to {number}")

    asyncio.run(run())


def test_one_address_does_not_push_out_another() -> None:
    async def run() -> None:
        async with served(ConnectionLimits(most=20, unknown=6, unknown_per_address=4)) as its:
            first = await its.connect("127.0.0.2")
            crowd = [await its.connect("127.0.0.3") for _ in range(30)]
            crowd += [await its.connect("127.0.0.4") for _ in range(3)]
            await until(lambda: its.counts["evicted"] >= 27, "the others to give way")
            await send(first, request("/first"))
            await until(lambda: its.app.ended == ["/first"], "an answer")

    asyncio.run(run())


def test_where_all_are_busy_one_more_is_refused_and_an_idle_one_gives_way() -> None:
    async def run() -> None:
        async with served(ConnectionLimits(most=3)) as its:
            its.app.go_on.clear()
            busy = [await its.connect() for _ in range(3)]
            for each in busy:
                await send(each, request("/busy"))
            await until(lambda: len(its.app.paths) == 3, "three requests")
            late = await its.connect()
            reader, writer = await asyncio.open_connection(sock=late)
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).split()[1] == b"429"
            writer.close()
            its.app.go_on.set()
            await until(lambda: len(its.app.ended) == 3, "their answers")
            again = await its.connect()
            await send(again, request("/again"))
            await until(lambda: "/again" in its.app.ended, "the next")
            assert its.counts["evicted"] == 1

    asyncio.run(run())


def test_pings_whose_answers_are_not_read_take_no_memory() -> None:
    async def run() -> None:
        async with served() as its:
            connection = await its.connect(buffer=4_096)
            key = base64.b64encode(os.urandom(16)).decode()
            words = (
                f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}"
            )
            await send(connection, f"GET / HTTP/1.1\r\nHost: a\r\n{words}\r\n\r\n".encode())
            async with asyncio.timeout(PATIENCE):
                assert (await asyncio.get_running_loop().sock_recv(connection, 12)) == b"HTTP/1.1 101"
            [kept] = its.server.connections.all
            ping = bytes((0x89, 0x80 | 125, 0, 0, 0, 0)) + b"p" * 125
            for _ in range(200):
                await send(connection, ping * 500)
            assert kept.unread < 1_000_000

    asyncio.run(run())
