"""The Unix socket of a session: clients come and go, each with a place of its own in what has happened."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.chat.protocol import (
    LINE_LIMIT,
    VERSION,
    Abort,
    Answer,
    Approve,
    Command,
    Deny,
    Lines,
    Message,
    Replay,
    Told,
    decoded,
    encoded,
    error_told,
)
from agtmux.chat.session import Session
from agtmux.domain.errors import AgtmuxError, ErrorCode

_log = logging.getLogger(__name__)

MOST_CLIENTS: Final = 64
# Who takes nothing for so long is cut off; it may come back and ask for what it has missed.
STALL_LIMIT: Final = 10.0
LOCK_LIMIT: Final = 5.0
_AT_ONCE: Final = 64
_WRITE_BUFFER: Final = 65_536


class Door:
    def __init__(self, session: Session, path: str, stall_limit: float = STALL_LIMIT) -> None:
        self._session = session
        self._path = path
        self._stall_limit = stall_limit
        self._listener = bind(path)
        self._bound = _mark(path)
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()

    @property
    def client_count(self) -> int:
        return len(self._clients)

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._come_in, sock=self._listener)

    async def close(self, reason: str) -> None:
        """Nobody comes in any more; who is there is told why, and what has happened up to now."""
        _remove(self._path, self._bound)
        if self._server is not None:
            self._server.close()
        else:
            self._listener.close()
        await asyncio.gather(*(client.end(reason) for client in list(self._clients)))

    async def _come_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(self._session, reader, writer, self._stall_limit)
        if len(self._clients) >= MOST_CLIENTS:
            writer.write(encoded(error_told(AgtmuxError(ErrorCode.LIMIT_RATE, f"{MOST_CLIENTS} clients are here"))))
            writer.close()
            return
        self._clients.add(client)
        try:
            await client.serve()
        finally:
            self._clients.discard(client)


class _Client:
    def __init__(
        self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_limit: float
    ) -> None:
        self._session = session
        self._reader = reader
        self._writer = writer
        self._stall_limit = stall_limit
        self._place = session.journal.last_seq
        self._writing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_ending = False
        writer.transport.set_write_buffer_limits(high=_WRITE_BUFFER)

    async def serve(self) -> None:
        self._writer.write(encoded({**self._session.init(), "protocol": VERSION}))
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._hear())]
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._stop()
            if not self._is_ending:
                # At once: whoever is slow would hold up everything that waits for its end.
                self._writer.transport.abort()

    async def end(self, reason: str) -> None:
        self._is_ending = True
        await self._stop()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                while self._place < self._session.journal.last_seq:
                    self._go_on()
                    await self._writer.drain()
                self._writer.write(encoded({"type": "end", "reason": reason}))
                await self._writer.drain()
                self._writer.close()
                await self._writer.wait_closed()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            # That it has gone, or takes nothing, is no failure of ours.
            if isinstance(ended, Exception) and not isinstance(ended, OSError):
                _log.error("a client's connection failed", exc_info=ended)

    async def _tell(self) -> None:
        """What has happened since its place, as fast as it takes it."""
        journal = self._session.journal
        while True:
            await journal.wait(lambda: self._place)
            async with self._writing:
                self._go_on()
                await self._drained()

    def _go_on(self) -> None:
        """The next of what has happened since its place, with what is no longer kept of it as a gap. Nothing is waited
        for in between: more would be forgotten meanwhile, of which the gap does not tell."""
        journal = self._session.journal
        if (gone := journal.first_seq - 1) > self._place:
            self._writer.write(encoded({"type": "gap", "from": self._place + 1, "to": gone}))
            self._place = gone
        for kept in journal.after(self._place, _AT_ONCE):
            self._writer.write(kept.line)
            self._place = kept.seq

    async def _hear(self) -> None:
        lines = Lines()
        while part := await self._reader.read(65_536):
            for line in lines.feed(part):
                try:
                    if line is None:
                        raise AgtmuxError(ErrorCode.TOO_LARGE, f"a line may have {LINE_LIMIT} bytes")
                    if line.strip():
                        await self._do(decoded(line))
                except AgtmuxError as error:
                    # Waits until it is taken, so who floods is not read from either.
                    await self._write(error_told(error))
            # Others have their turn, however much this one says.
            await asyncio.sleep(0)

    async def _do(self, command: Command) -> None:
        session = self._session
        match command:
            case Message(text=text):
                session.say(text)
            case Approve(request_id=request_id):
                session.approve(request_id)
            case Deny(request_id=request_id, reason=reason):
                session.deny(request_id, reason)
            case Answer(request_id=request_id, answers=answers):
                session.answer(request_id, answers)
            case Abort():
                await session.abort()
            case Replay(after=after):
                if not 0 <= after <= session.journal.last_seq:
                    raise AgtmuxError(
                        ErrorCode.CURSOR_INVALID, f"there is no event {after}; the last is {session.journal.last_seq}"
                    )
                self._place = after
                session.journal.stir()

    async def _write(self, told: Told) -> None:
        async with self._writing:
            self._writer.write(encoded(told))
            await self._drained()

    async def _drained(self) -> None:
        async with asyncio.timeout(self._stall_limit):
            await self._writer.drain()


def bind(path: str) -> socket.socket:
    """A listening socket of mode 0600. One that nobody answers on any more is replaced, anything else is kept."""
    if len(os.fsencode(path)) > paths.SOCKET_PATH_LIMIT:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"the socket path {path} is longer than the {paths.SOCKET_PATH_LIMIT} bytes this system allows; "
            "choose a shorter one with --socket",
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with _alone(Path(path).parent):
            if is_answered(path):
                raise AgtmuxError(ErrorCode.ALREADY_RUNNING, f"a session already answers on {path}")
            _remove_dead(Path(path))
            listener.bind(path)
            listener.listen(MOST_CLIENTS)
    except (OSError, AgtmuxError) as error:
        listener.close()
        if isinstance(error, AgtmuxError):
            raise
        why = "something else is there" if error.errno == errno.EADDRINUSE else error.strerror
        raise AgtmuxError(ErrorCode.CONFIG, f"cannot listen on {path}: {why}; choose another with --socket") from None
    finally:
        os.umask(mask)
    listener.setblocking(False)
    return listener


def is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(2.0)
        try:
            caller.connect(path)
        except (TimeoutError, BlockingIOError):
            # Somebody listens and is too busy to let anyone in.
            return True
        except OSError:
            return False
    return True


def sweep(folder: Path) -> None:
    """What sessions that were killed have left in our own folder."""
    with contextlib.suppress(OSError), _alone(folder):
        for path in folder.glob("*.sock"):
            if not is_answered(str(path)):
                _remove_dead(path)


@contextlib.contextmanager
def _alone(folder: Path) -> Generator[None, None, None]:
    """Between the look and the bind, no other session may do the same. Raises OSError if that takes too long: in a
    folder like /tmp the lock is anybody's."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    until = time.monotonic() + LOCK_LIMIT
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise OSError(errno.EBUSY, f"another process has locked {folder}") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _mark(path: str) -> tuple[int, ...] | None:
    """Tells one file from the next of that name; inode numbers are soon used again."""
    try:
        found = Path(path).lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _remove(path: str, bound: tuple[int, ...] | None) -> None:
    """Ours, and not the one that another session may have put there when ours had gone."""
    if bound is not None and _mark(path) == bound:
        Path(path).unlink(missing_ok=True)


def _remove_dead(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid():
            path.unlink()
