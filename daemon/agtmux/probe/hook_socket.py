"""The door for agents' hooks and bridges on a machine without a daemon: they find it where they look for the daemon.

What comes in is handed on as it is, and taken for what this machine says about itself, nothing more. The socket and
the folders made for it go when the probe goes.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import threading
import time
from typing import Callable, Iterator

from agtmux.probe.owners import check_path
from agtmux.probe.peer import peer_pid
from agtmux.probe.processes import lineage
from agtmux.probe.websocket import accepted

SOCKET = "agtmuxd.sock"
MAX_BODY = 1024 * 1024
_MAX_HEAD = 16 * 1024
# sockaddr_un on macOS; Linux has four bytes more.
_LONGEST_PATH = 103
_AT_ONCE = 16
_TIME_LIMIT = 2.0
# For the `agtmux` of this machine, if it has one: it finds this door where it looks for its own daemon.
_ELSEWHERE = (
    '{"error":{"code":"E_UNSUPPORTED","message":"this account is watched by the agtmux of another machine,'
    ' which has the place of the daemon here; ask there, or remove the target there","details":{}}}'
)


def places(environ: dict[str, str]) -> list[str]:
    """Where hooks look: which of these depends on the environment of the pane they run in."""
    if environ.get("AGTMUX_SOCKET"):
        return [environ["AGTMUX_SOCKET"]]
    found = []
    if os.path.isdir(environ.get("XDG_RUNTIME_DIR") or ""):
        found.append(os.path.join(environ["XDG_RUNTIME_DIR"], "agtmux", SOCKET))
    state = environ.get("AGTMUX_STATE_DIR")
    if not state:
        home = environ.get("HOME") or os.path.expanduser("~")
        base = environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
        state = os.path.join(base, "agtmux")
    return [*found, os.path.join(state, SOCKET)]


class HookSocket:
    """Listens at one path until closed. Raises OSError if it cannot, FileExistsError if somebody else does."""

    def __init__(
        self,
        path: str,
        hand_on: Callable[[str, str, list[int] | None], bool],
        take_bridge: Callable[[socket.socket, bytes, bytes], bool] = lambda *_: False,
    ) -> None:
        """`take_bridge` is given a bridge's connection, the answer to its greeting and what it said after it."""
        self.path = path
        self._hand_on = hand_on
        self._take_bridge = take_bridge
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        # The folders made for it, outermost first.
        self.made: list[str] = []
        self._identity: object = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind()
            threading.Thread(target=self._accept, name="hooks", daemon=True).start()
        except RuntimeError as error:
            self.close()
            raise OSError("hooks cannot be listened for: %s" % error) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            # Another probe may have taken the place when this one seemed dead.
            if self._identity is not None and _identity(self.path) == self._identity:
                os.unlink(self.path)
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _bind(self) -> None:
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise OSError("the path of the hook socket is too long: %s" % self.path)
        if _is_answered(self.path):
            raise FileExistsError("another agtmux listens at %s" % self.path)
        self._make_folder(os.path.dirname(self.path))
        # Hooks would not come to a door that others can move.
        check_path(os.fsencode(os.path.dirname(os.path.abspath(self.path))))
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(self.path).st_mode):
                raise FileExistsError("%s is there and is no socket; move it away" % self.path)
            os.unlink(self.path)
        before = os.umask(0o177)
        try:
            self._listener.bind(self.path)
        finally:
            os.umask(before)
        self._identity = _identity(self.path)
        self._listener.listen(64)

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        self._make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
            # Whatever the umask, which another door may be changing.
            os.chmod(folder, 0o700)
            self.made.append(folder)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                if self._listener.fileno() < 0:
                    return
                # No descriptor left, which passes.
                time.sleep(0.1)
                continue
            self._turns.acquire()
            try:
                threading.Thread(target=self._serve, args=(connection,), name="hook", daemon=True).start()
            except RuntimeError:
                # No thread left, which passes. The hook keeps what it has.
                connection.close()
                self._turns.release()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_TIME_LIMIT)
            status = self._take(connection)
            if not status:
                # It is somebody else's now.
                return
            head = "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            body = _ELSEWHERE if status.startswith("404") else ""
            with connection:
                connection.sendall((head % (status, len(body)) + body).encode())
        except OSError:
            # It went without waiting for the answer, as hooks in a hurry do.
            connection.close()
        finally:
            self._turns.release()

    def _take(self, connection: socket.socket) -> str:
        """What it is told; empty if it is a bridge that was taken."""
        data = b""
        for chunk in _chunks(connection):
            data += chunk
            if b"\r\n\r\n" in data or len(data) > _MAX_HEAD:
                break
        head, found, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        answer = accepted(lines[0], fields) if found else None
        if answer is not None:
            return "" if self._take_bridge(connection, answer, body) else "503 Service Unavailable"
        length = fields.get("content-length", "")
        if not found or not re.fullmatch(r"[0-9]{1,9}", length):
            return "400 Bad Request"
        if not lines[0].startswith("POST /v1/events "):
            return "404 Not Found"
        if int(length) > MAX_BODY:
            return "413 Content Too Large"
        for chunk in _chunks(connection) if len(body) < int(length) else ():
            body += chunk
            if len(body) >= int(length):
                break
        if len(body) != int(length):
            return "400 Bad Request"
        pid = peer_pid(connection)
        whose = None if pid is None else lineage(pid)
        is_taken = self._hand_on(fields.get("content-type", ""), body.decode("utf-8", "replace"), whose)
        return "202 Accepted" if is_taken else "503 Service Unavailable"


def _chunks(connection: socket.socket) -> Iterator[bytes]:
    while True:
        chunk = connection.recv(65_536)
        if not chunk:
            return
        yield chunk


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1.0)
        try:
            caller.connect(path)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except socket.timeout:
            return True
    return True


def _identity(path: str) -> object:
    found = os.lstat(path)
    return (found.st_dev, found.st_ino, found.st_mtime_ns)
