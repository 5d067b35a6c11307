"""A terminal for tests: a program at the end of a pty, what it has written there, and keys for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

from support.home import PATIENCE, Home


class Terminal:
    def __init__(
        self, home: Home, *command: str | Path, env: dict[str, str] | None = None, size: str = "100x30"
    ) -> None:
        self._keys, program = pty.openpty()
        self.tty = os.ttyname(program)
        self.resize(size)
        self._written = bytearray()
        self.process = home.spawn(
            *command,
            env=env,
            stdin=program,
            stdout=program,
            stderr=program,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(program)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        return self._written.decode("utf-8", "replace")

    @property
    def mode(self) -> list[object]:
        """How it treats keys."""
        return list(termios.tcgetattr(self._keys))

    def resize(self, size: str) -> None:
        columns, rows = map(int, size.split("x"))
        fcntl.ioctl(self._keys, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def ended(self) -> int:
        """Its exit status, once it has ended and all it said is read."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        os.close(self._keys)

    def _read(self) -> None:
        # It ends with an error when nobody has the other end any more.
        with contextlib.suppress(OSError):
            while chunk := os.read(self._keys, 65_536):
                self._written += chunk


def _own_terminal() -> None:
    """For /dev/tty and the signals of its keys, also if the tests were started in the background, without SIGINT."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def terminals(home: Home) -> Iterator[list[Terminal]]:
    """Those that are put into it are closed at the end."""
    opened: list[Terminal] = []
    try:
        yield opened
    finally:
        for terminal in opened:
            terminal.close()
