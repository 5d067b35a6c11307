"""The small client: one request on the daemon's Unix socket, starting the daemon when it is not there.

Every front end comes through here. It imports as little as it can, because a command's start-up time is part of
its interface.
"""

from __future__ import annotations

import json
import os

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.owners import NotOurs, connected

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterator
    from typing import Any, Final

TIME_LIMIT: Final = 10.0
_REPLACE_IT: Final = "if it stays so, end it with `agtmux down`, and the next command starts another"
_LONGEST_LINE: Final = 65_536


class Client:
    def __init__(self, socket_path: str | None = None, *, start: bool = True, time_limit: float = TIME_LIMIT) -> None:
        self._path = socket_path or paths.socket_path()
        self._start = start
        self._time_limit = time_limit

    def get(self, path: str) -> Any:
        return self._call("GET", path)

    def post(self, path: str, content: object) -> Any:
        return self._call("POST", path, json.dumps(content).encode())

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path)

    def stream(self, path: str) -> Iterator[Any]:
        """The JSON lines of a response that goes on. Ends when the daemon ends it."""
        return map(json.loads, self.lines(path))

    def lines(self, path: str, wait: Callable[[int], object] | None = None) -> Iterator[bytes]:
        """The same as they come, without their ends. `wait` is given the connection's descriptor whenever there is
        nothing to read yet, and returns when there may be; what it raises ends the reading."""
        answer = self._ask("GET", path, b"", time_limit=None)
        try:
            if answer.status >= 400:
                raise _error(answer.status, b"".join(answer.parts()))
            answer.wait = wait
            rest = b""
            for part in answer.parts():
                *lines, rest = (rest + part).split(b"\n")
                yield from lines
        finally:
            answer.close()

    def is_answered(self) -> bool:
        try:
            self._open().close()
        except OSError:
            return False
        return True

    def _call(self, method: str, path: str, body: bytes = b"") -> Any:
        answer = self._ask(method, path, body, self._time_limit)
        try:
            content = b"".join(answer.parts())
        except OSError as error:
            raise self._unavailable(f"it did not answer ({error})", _REPLACE_IT) from None
        finally:
            answer.close()
        if answer.status >= 400:
            raise _error(answer.status, content)
        try:
            return json.loads(content)
        except ValueError:
            raise _not_agtmuxd() from None

    def _ask(self, method: str, path: str, body: bytes, time_limit: float | None) -> _Answer:
        connection = self._connect()
        try:
            connection.sendall(_request(method, path, body))
            answer = _Answer(connection)
            connection.settimeout(time_limit)
        except OSError as error:
            connection.close()
            raise self._unavailable(f"it did not answer ({error})", _REPLACE_IT) from None
        except AgtmuxError:
            connection.close()
            raise
        return answer

    def _connect(self) -> _socket.socket:
        try:
            return self._open()
        except NotOurs as error:
            raise AgtmuxError(
                ErrorCode.CONFIG,
                f"nothing is sent to {self._path}: {error.strerror}; take that right away (`chmod go-w`), or set"
                " AGTMUX_STATE_DIR and AGTMUX_SOCKET to a folder of your own",
            ) from None
        except OSError as error:
            if not self._start:
                raise self._unavailable(f"it is not running ({error.strerror})") from None
        start_daemon(self._path)
        try:
            return self._open()
        except OSError as error:
            raise self._unavailable(f"it was started and is gone again ({error.strerror})") from None

    def _open(self) -> _socket.socket:
        return connected(os.fsencode(self._path), self._time_limit)

    def _unavailable(self, why: str, remedy: str = "start it with `agtmux up`") -> AgtmuxError:
        return AgtmuxError(
            ErrorCode.DAEMON_UNAVAILABLE,
            f"no answer from agtmuxd on {self._path}: {why}; {remedy}",
            {"socket": self._path},
        )


class _Answer:
    """A response whose head has been read and whose body comes in parts."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self.wait: Callable[[int], object] | None = None
        words = self._line().split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise _not_agtmuxd()
        self.status = int(words[1])
        self._headers: dict[bytes, bytes] = {}
        while line := self._line():
            name, _, value = line.partition(b":")
            self._headers[name.strip().lower()] = value.strip().lower()

    def parts(self) -> Iterator[bytes]:
        if self._headers.get(b"transfer-encoding") == b"chunked":
            while size := int(self._line() or b"0", 16):
                yield self._exactly(size)
                self._line()
        else:
            yield self._exactly(int(self._headers.get(b"content-length", b"0")))

    def close(self) -> None:
        self._connection.close()

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_LINE:
                return b""
            if not self._more():
                raise ConnectionResetError("the connection ended within the answer")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.strip()

    def _exactly(self, size: int) -> bytes:
        parts = [self._buffer]
        missing = size - len(self._buffer)
        while missing > 0:
            part = self._received()
            if not part:
                raise ConnectionResetError("the connection ended within the answer")
            parts.append(part)
            missing -= len(part)
        whole = b"".join(parts)
        self._buffer = whole[size:]
        return whole[:size]

    def _more(self) -> bool:
        part = self._received()
        self._buffer += part
        return bool(part)

    def _received(self) -> bytes:
        if self.wait is not None:
            self.wait(self._connection.fileno())
        return self._connection.recv(65_536)


def with_query(path: str, filters: dict[str, str | None]) -> str:
    """The path with every filter that has a value. `urllib` would take as long to import as the request takes."""
    pairs = [f"{name}={_quoted(value)}" for name, value in filters.items() if value is not None]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def _quoted(text: str) -> str:
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"%{byte:02X}" for byte in text.encode())


def start_daemon(socket_path: str) -> None:
    """Start agtmuxd in the background and wait until it answers."""
    from agtmux import starting

    client = Client(socket_path, start=False)
    starting.start(lambda: _answering_pid(client))


def _answering_pid(client: Client) -> int | None:
    """A socket that can be connected to is not enough: its daemon may yet give up, and has then more to say."""
    try:
        return int(client.get("/v1/health")["pid"])
    except (AgtmuxError, LookupError, TypeError, ValueError):
        return None


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: agtmux\r\nConnection: close\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def _not_agtmuxd() -> AgtmuxError:
    return AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "what answers on the socket is not agtmuxd; see AGTMUX_SOCKET")


def _error(status: int, content: bytes) -> AgtmuxError:
    try:
        error = AgtmuxError.from_json(json.loads(content))
    except ValueError:
        error = None
    return error or AgtmuxError(ErrorCode.INTERNAL, f"agtmuxd answered with HTTP status {status}")
