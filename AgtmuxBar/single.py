"""One app a user: a lock in the state directory, with the pid of who holds it, as the daemon has one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agtmux import paths

LOCK: Final = "agtmux-bar.lock"
_TRIES: Final = 10
_PAUSE: Final = 0.02


@contextlib.contextmanager
def only_one() -> Iterator[bool]:
    """Whether this is the one. It stays so until the end of the block, or of the process."""
    descriptor = os.open(Path(paths.state_directory(), LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _taken(descriptor):
            yield False
            return
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield True
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Whoever only looks holds it for a moment too."""
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE)
    return False


def is_running() -> bool:
    try:
        descriptor = os.open(Path(paths.state_directory(), LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
