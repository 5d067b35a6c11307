"""The Unix socket and the HTTP server on it, or on another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import socket
import stat
from collections.abc import Callable, Generator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from agtmux import paths
from agtmux.api.connections import ConnectionLimits, Connections, most_files
from agtmux.api.protocol import Protocol, WebSocketProtocol
from agtmux.domain.errors import AgtmuxError, ErrorCode

_BACKLOG = 512
# On the Unix socket: every waiting hook, bridge and front end has one.
_MOST_CONNECTIONS = 1_024
_SPARE_FILES = 16
_SHARE_OF_FILES = 0.75
# Seconds: a front end of the user's own may be stopped, by Ctrl-Z or a pager, and goes on where it was.
_PATIENCE = 600.0
# Bytes of one WebSocket message: of a bridge, and of the board, which only says what it wants to be told.
_MOST_BRIDGE_BYTES = 16 * 1024 * 1024
_MOST_LIVE_BYTES = 262_144
# Long enough for a request under way, short enough for a logout.
_GRACE = 3


def bind_socket(path: str) -> socket.socket:
    """A listening socket of mode 0600. A socket nobody answers on any more is replaced, anything else is kept."""
    _prepare_directory(Path(path).parent)
    if _is_answered(path):
        raise AgtmuxError(
            ErrorCode.ALREADY_RUNNING,
            f"another agtmuxd already answers on {path}; stop it with `agtmux down`, or set AGTMUX_SOCKET",
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with contextlib.suppress(FileNotFoundError):
            # Nobody's file is removed because AGTMUX_SOCKET happens to name it: bind will say that it is there.
            if stat.S_ISSOCK(Path(path).lstat().st_mode):
                Path(path).unlink()
        listener.bind(path)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        why = "something else is there" if error.errno == errno.EADDRINUSE else error.strerror
        raise AgtmuxError(
            ErrorCode.CONFIG, f"cannot listen on {path}: {why}; move it away or set AGTMUX_SOCKET"
        ) from None
    finally:
        os.umask(mask)
    listener.setblocking(False)
    return listener


def _prepare_directory(folder: Path) -> None:
    """Ours is made private. One that the user named is never changed: others may need it as it is."""
    is_ours = folder == Path(paths.state_directory()) or folder.name == "agtmux"
    if not is_ours and folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"others may enter {folder}, where AGTMUX_SOCKET puts the socket; choose a directory of mode 0700",
        )
    paths.private_directory(str(folder))


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as error:
            # Something that is not a socket is nobody's to answer on; bind will say so.
            return error.errno not in (errno.ENOTSOCK, errno.EPROTOTYPE)
        return True


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling, and without its ten wake-ups a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self.stopping.wait()


class HttpServer:
    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        on_refused: Callable[[AgtmuxError], None] = lambda _: None,
        ping_every: float | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        own = ConnectionLimits(most_files(_MOST_CONNECTIONS, _SPARE_FILES, _SHARE_OF_FILES), patience=_PATIENCE)
        self.connections = Connections(limits or own)
        config = uvicorn.Config(
            app,
            http=functools.partial(  # type: ignore[arg-type]
                Protocol, on_refused=on_refused, connections=self.connections
            ),
            ws=WebSocketProtocol,
            # The kernel says when the other end of a Unix socket is gone; nobody need be woken to ask.
            ws_ping_interval=ping_every,
            ws_per_message_deflate=False,
            ws_max_size=_MOST_LIVE_BYTES if self.connections.limits.unknown else _MOST_BRIDGE_BYTES,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACE,
        )
        self._server = _Server(config)
        self._listener = listener
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]), name="http")

    async def wait(self) -> None:
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        """No new connections; what is under way gets its answer."""
        self._server.stopping.set()
        await self.wait()
