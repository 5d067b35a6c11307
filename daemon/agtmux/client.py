"""The small client: one request on the daemon's Unix socket, starting the daemon when it is not there.

Every front end comes through here. It imports as little as it can, because a command's start-up time is part of
its interface.
"""

from __future__ import annotations

import _socket
import json
import os
import sys
import time

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

TIME_LIMIT: Final = 10.0
_START_LIMIT: Final = 15.0
_REPLACE_IT: Final = "if it stays so, end it with `agtmux down`, and the next command starts another"
_LONGEST_LINE: Final = 65_536
# How long another daemon may take to answer before it is tried again.
_TURN: Final = 1.0
# What a py2app stub leaves in the environment; a daemon, and the tmux it asks, must not inherit it.
_BUNDLE_VARIABLES: Final = (
    "PYTHONHOME",
    "PYTHONPATH",
    "RESOURCEPATH",
    "EXECUTABLEPATH",
    "ARGVZERO",
    "__PYVENV_LAUNCHER__",
)


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
        except OSError as error:
            if not self._start:
                raise self._unavailable(f"it is not running ({error.strerror})") from None
        start_daemon(self._path)
        try:
            return self._open()
        except OSError as error:
            raise self._unavailable(f"it was started and is gone again ({error.strerror})") from None

    def _open(self) -> _socket.socket:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(self._time_limit)
        try:
            connection.connect(self._path)
        except OSError:
            connection.close()
            raise
        return connection

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
    # Python prints to standard output what is meant for a standard error that is closed.
    if sys.stderr is not None:
        print("agtmux: starting agtmuxd", file=sys.stderr)
    client = Client(socket_path, start=False)
    deadline = time.monotonic() + _START_LIMIT
    while (complaint := _started(client, deadline)) is not None:
        # Another one won the race to start. Should it fail, it is this one's turn to find out why.
        if ErrorCode.ALREADY_RUNNING not in complaint or time.monotonic() > deadline:
            raise AgtmuxError(
                ErrorCode.DAEMON_UNAVAILABLE,
                f"agtmuxd could not be started: {complaint.splitlines()[-1] if complaint else 'it said nothing'}",
            )
        if _wait_for(client, min(deadline, time.monotonic() + _TURN)):
            return


def _started(client: Client, deadline: float) -> str | None:
    try:
        return _start_once(client, deadline)
    except OSError as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"agtmuxd cannot be started: {error}") from None


def _start_once(client: Client, deadline: float) -> str | None:
    """None as soon as a daemon answers, or the last words of the one that was started."""
    import subprocess

    # From before the log is open. A pipe would be closed under it as soon as this command ends, and a file that
    # others share, who start it at the same moment, would mix up who said what.
    said = os.path.join(paths.state_directory(), "logs", "agtmuxd.stderr")
    said_to_us = f"{said}.{os.getpid()}"
    paths.private_directory(paths.state_directory())
    paths.private_directory(os.path.dirname(said))
    environment = {key: value for key, value in os.environ.items() if key not in _BUNDLE_VARIABLES}
    # It runs in another folder, where a relative path would lead elsewhere.
    environment |= {
        "AGTMUX_STATE_DIR": paths.state_directory(),
        "AGTMUX_CONFIG_DIR": paths.config_directory(),
        "AGTMUX_SOCKET": paths.socket_path(),
    }
    with open(said_to_us, "w+b", opener=_privately) as stderr:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "agtmux.daemon"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
            while (answering := _answering_pid(client)) is None:
                if process.poll() is not None:
                    stderr.seek(0)
                    return stderr.read().decode("utf-8", "replace").strip()
                if time.monotonic() > deadline:
                    raise AgtmuxError(
                        ErrorCode.DAEMON_UNAVAILABLE,
                        f"agtmuxd (process {process.pid}) does not answer after {_START_LIMIT:.0f} seconds; "
                        f"see {os.path.join(paths.state_directory(), 'logs', 'agtmuxd.log')}",
                    )
                time.sleep(0.02)
            if answering == process.pid:
                os.replace(said_to_us, said)
        finally:
            if os.path.exists(said_to_us):
                os.unlink(said_to_us)
    # It lives on by itself; this process does not wait for it.
    process.returncode = 0
    return None


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _wait_for(client: Client, deadline: float) -> bool:
    while time.monotonic() < deadline:
        if _answering_pid(client) is not None:
            return True
        time.sleep(0.02)
    return False


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
