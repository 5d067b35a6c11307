"""HTTP on a Unix socket by hand, so that a test can also send what no client would."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.schemas import check_answer, check_line

_TIME_LIMIT = 20.0
_ASKED = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.1\r\nHost:")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers.get("content-type") == "application/json", self
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error, after checking that it has the one shape."""
        content = self.json
        assert set(content) == {"error"}, self
        error = content["error"]
        assert set(error) == {"code", "message", "details"}, self
        assert error["code"].startswith("E_"), self
        assert error["message"] and "Traceback" not in error["message"], self
        assert isinstance(error["details"], dict), self
        assert self.status >= 400, self
        return dict(error)


def request(method: str, path: str, content: object = None, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of a request; `content` is sent as it is if it is bytes, and as JSON otherwise."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: agtmux"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    def __init__(self, path: Path, holds_to_schemas: bool = True) -> None:
        """A benchmark holds nothing to its schema: for 500 panes that takes many times as long as the daemon does."""
        self._holds_to_schemas = holds_to_schemas
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIME_LIMIT)
        self._rest = b""
        # What was asked for and not answered yet.
        self._asked: list[tuple[str, str]] = []
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def settimeout(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def shutdown(self) -> None:
        """Ends the reading of whoever reads."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def send(self, raw: bytes) -> None:
        self._asked += [(found[1].decode(), found[2].decode("latin-1")) for found in _ASKED.finditer(raw)]
        self._socket.sendall(raw)

    def ask(self, method: str, path: str, content: object = None, headers: dict[str, str] | None = None) -> Answer:
        self.send(request(method, path, content, headers))
        return self.answer(method)

    def answer(self, method: str = "GET") -> Answer:
        """The next answer on this connection, as its schema wants it; ConnectionError if it ends before."""
        status, headers = self.head()
        asked = self._asked.pop(0) if self._asked else (method, None)
        if method == "HEAD" or status == 204:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        else:
            body = self._take(int(headers.get("content-length", "0")))
        if self._holds_to_schemas:
            check_answer(*asked, status, headers.get("content-type", ""), body)
        return Answer(status, headers, body)

    def head(self) -> tuple[int, dict[str, str]]:
        status_line, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        assert status_line.startswith("HTTP/1.1 "), status_line
        pairs = (line.split(":", 1) for line in lines)
        return int(status_line.split()[1]), {name.lower(): value.strip() for name, value in pairs}

    def chunk(self) -> bytes:
        size = int(self._until(b"\r\n"), 16)
        content = self._take(size)
        self._until(b"\r\n")
        return content

    def json_line(self) -> Any:
        """The next line of a stream that sends a chunk a line, or None at its end."""
        content = self.chunk()
        assert content.count(b"\n") <= 1, content
        if not content:
            return None
        line = json.loads(content)
        if self._holds_to_schemas:
            check_line(line)
        return line

    def is_ended(self) -> bool:
        """Waits until the other side says something or goes; true if it goes."""
        if self._rest:
            return False
        try:
            self._rest = self._socket.recv(65_536)
        except ConnectionResetError:
            return True
        return not self._rest

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._more()
        before, _, self._rest = self._rest.partition(mark)
        return before

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._more()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _more(self) -> None:
        part = self._socket.recv(1 << 20)
        if not part:
            raise ConnectionError(f"the connection ended after {self._rest!r}")
        self._rest += part
