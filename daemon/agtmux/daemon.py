"""The daemon process: one per user, found by its lock, ended by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from agtmux import __version__, paths
from agtmux.clock import Clock
from agtmux.config import load_config
from agtmux.domain.errors import AgtmuxError, ErrorCode

_log = logging.getLogger(__name__)

LOCK_FILE: Final = "agtmuxd.lock"
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# The database thread waits this long for its turn at the interpreter when the loop is busy, at every step of every
# transaction. Python's own 5 ms would be most of what a commit takes.
_SWITCH_INTERVAL: Final = 0.0005
# `agtmux down` takes the lock for a moment to see whether anyone has it. Who keeps it for longer is a daemon, and
# has by then written its pid over that of one that was killed.
_A_LOOK: Final = 0.25
# The holder writes its pid right after it has the lock; until then there is nobody to name.
_NAMELESS: Final = 2.0


@contextlib.contextmanager
def single_instance(lock_path: Path) -> Generator[None, None, None]:
    """Hold the lock that makes this the only daemon here, or say whose it is."""
    # Never unlinked: a lock on a file that is no longer there protects nothing.
    descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(descriptor):
            holder = _holder(lock_path)
            raise AgtmuxError(
                ErrorCode.ALREADY_RUNNING,
                f"agtmuxd is already running as process {holder or 'unknown'}; stop it with `agtmux down`",
                {"pid": holder},
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    deadline = time.monotonic() + _A_LOOK
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
        time.sleep(0.01)


def _holder(lock_path: Path) -> int | None:
    deadline = time.monotonic() + _NAMELESS
    while True:
        text = lock_path.read_text("ascii", "replace").strip()
        if text.isdigit():
            return int(text)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)


def main() -> int:
    try:
        state_directory = Path(paths.state_directory())
        paths.private_directory(str(state_directory))
        with contextlib.ExitStack() as held:
            held.enter_context(single_instance(state_directory / LOCK_FILE))
            # A KeyboardInterrupt while asyncio makes its event loop leaves half a loop, which prints a traceback.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
            asyncio.run(_serve(state_directory))
    except AgtmuxError as error:
        print(f"agtmux: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print(f"agtmux: {ErrorCode.CONFIG}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        # Before it was ready to be asked.
        return 130
    return 0


async def _serve(state_directory: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    # One that came in the meantime is handled now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    # Imported here, so that a second daemon is told off before it has loaded everything.
    from agtmux.api.app import build_app
    from agtmux.api.server import HttpServer, bind_socket
    from agtmux.logs import open_log
    from agtmux.service import Service

    sys.setswitchinterval(_SWITCH_INTERVAL)
    config = load_config(Path(paths.config_file()))
    socket_path = paths.socket_path()
    open_log(state_directory, config.log.level, config.log.max_bytes, config.log.files)
    listener = bind_socket(socket_path)
    bound = _mark(socket_path)
    try:
        service = await Service.open(state_directory, config, Clock())
        if service.database.notice:
            print(f"agtmux: {service.database.notice}", file=sys.stderr)
        app = build_app(service)
        server = HttpServer(app, listener, lambda error: service.refusals.update([error.code]))
        server.start()
        await app.board.start()
        # What start-up made stays for good: the collector need not look at it again.
        gc.freeze()
        _log.info("agtmuxd %s listens on %s", __version__, socket_path)
        await stop.wait()
        _log.info("agtmuxd stops")
        _remove_socket(socket_path, bound)
        service.end_waits()
        await app.board.close()
        await server.stop()
        await service.close()
    finally:
        _remove_socket(socket_path, bound)
        listener.close()


def _mark(path: str) -> tuple[int, ...] | None:
    """Tells one file from the next of that name; inode numbers are soon used again."""
    try:
        found = Path(path).lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _remove_socket(path: str, bound: tuple[int, ...] | None) -> None:
    """Ours, and not the one that another daemon may have put there when ours had gone."""
    if _mark(path) == bound:
        Path(path).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
