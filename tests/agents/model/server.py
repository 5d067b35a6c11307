"""A model server on loopback for real agents: it takes HTTP, hands each request to a protocol, and remembers both.

A protocol is a module with `ROUTES`: pairs of a pattern for the path and a function that takes an `Exchange` and
answers it. What the model does is in script.py; here is only transport, and what the bench asks to be sure of a state.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self

from agents.model.script import Step


class Stopped(Exception):
    """The server stops while an answer is under way."""


class Exchange:
    """One request and the answer to it."""

    def __init__(self, handler: _Handler, server: ModelServer, body: bytes) -> None:
        self.method = handler.command
        self.path, _, self.query = handler.path.partition("?")
        self.headers: Mapping[str, str] = dict(handler.headers.items())
        self.started = time.monotonic()
        self.step: Step | None = None
        # Whether this is the conversation itself, not a title or a count of tokens beside it.
        self.main = False
        self.open = True
        self.ended = 0.0
        self.aborted = False
        self._handler = handler
        self._server = server
        try:
            self.body: Any = json.loads(body or b"{}")
        except ValueError:
            self.body = {}

    def pause(self, seconds: float) -> None:
        """As sleep, but ends with the server, and when the client has gone."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._server.stopping.wait(min(left, 0.2)):
                raise Stopped
            if self._client_left():
                raise ConnectionResetError

    def json(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self._handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(len(body)))
        self._handler.end_headers()
        self._handler.wfile.write(body)

    @contextlib.contextmanager
    def events(self) -> Iterator[EventStream]:
        """An answer in server-sent events."""
        self._handler.send_response(200)
        for name, value in (
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
            ("Transfer-Encoding", "chunked"),
        ):
            self._handler.send_header(name, value)
        self._handler.end_headers()
        stream = EventStream(self._handler.wfile.write)
        yield stream
        self._handler.wfile.write(b"0\r\n\r\n")

    def _client_left(self) -> bool:
        connection = self._handler.connection
        connection.setblocking(False)
        try:
            return connection.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        finally:
            connection.setblocking(True)


@dataclass
class EventStream:
    _write: Callable[[bytes], object]

    def send(self, content: object, event: str | None = None) -> None:
        """One event; a string is sent as it is."""
        text = content if isinstance(content, str) else json.dumps(content)
        self.raw((f"event: {event}\n" if event else "") + f"data: {text}\n\n")

    def raw(self, text: str) -> None:
        body = text.encode()
        self._write(b"%x\r\n%s\r\n" % (len(body), body))


Handler = Callable[[Exchange], None]


class ModelProtocol(Protocol):
    """A module that speaks one vendor's language."""

    ROUTES: Sequence[tuple[str, Handler]]


class ModelServer:
    """`with ModelServer(anthropic) as server: … server.url …`"""

    def __init__(self, *protocols: ModelProtocol) -> None:
        self.exchanges: list[Exchange] = []
        self.failures: list[Exception] = []
        self.stopping = threading.Event()
        self._routes = [(re.compile(pattern), handler) for module in protocols for pattern, handler in module.ROUTES]
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"model": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # What the bench asks

    @property
    def main(self) -> list[Exchange]:
        """The conversation itself, oldest first: without titles, counts of tokens and suggestions."""
        return [exchange for exchange in self.exchanges if exchange.main]

    @property
    def busy(self) -> bool:
        """Whether the model is answering in the conversation right now."""
        return any(exchange.open for exchange in self.main)

    @property
    def steps(self) -> list[Step]:
        """What the model has done in the conversation, oldest first."""
        return [exchange.step for exchange in self.main if exchange.step is not None]

    # What a request leads to

    def route(self, path: str) -> Handler | None:
        return next((handler for pattern, handler in self._routes if pattern.search(path)), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        try:
            exchange = Exchange(self, self.model, self._read_body())
        except (ValueError, OSError):
            self.close_connection = True
            return
        self.model.exchanges.append(exchange)
        try:
            if (handler := self.model.route(exchange.path)) is None:
                exchange.json({"error": {"type": "not_found_error", "message": "no such path"}}, 404)
            else:
                handler(exchange)
        except (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, Stopped):
            # The user pressed Esc, the agent was killed, or the test is over.
            exchange.aborted = True
            self.close_connection = True
        except Exception as error:
            # A protocol module's mistake: the test looks here, the agent sees a broken connection.
            self.model.failures.append(error)
            self.close_connection = True
        finally:
            exchange.ended = time.monotonic()
            exchange.open = False

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
