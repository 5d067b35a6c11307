"""Texts with secrets in them, until their messages are delivered: one file each, and nothing of them in the database.

The database holds the redacted form of every message (NFR-9). Where that is not what was sent, the text itself is in
`messages/ID` of the state directory, mode 0600, from before the message is accepted until it has ended. So the next
daemon finds it after a crash, and the database, its log and copies of them never have it.

Every function here is called in the writer's thread, between transactions' statements: a file that is there without its
row is one whose row was never committed, or has ended.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from agtmux.domain.durations import SECOND

# A text that was fetched can be read again for so long: a daemon killed over the answer has handed over nothing.
READ_AGAIN: Final = 10 * 60 * SECOND
# No text with a secret waits longer than this, whatever its TTL says (seed 003 §7.3.1).
LONGEST_KEPT: Final = 24 * 3_600 * SECOND
_FOLDER: Final = "messages"


class ClearTexts:
    def __init__(self, state_directory: Path) -> None:
        self._folder = state_directory / _FOLDER

    def write(self, message_id: str, text: str) -> None:
        """On the disk when this returns."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        file = os.open(self._folder / message_id, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(text.encode("utf-8", "surrogatepass"))
            out.flush()
            os.fsync(out.fileno())
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, message_id: str) -> str | None:
        """None if it is gone."""
        try:
            return (self._folder / message_id).read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            return None

    def remove(self, message_id: str) -> None:
        """With its bytes: what is only unlinked may be found on the disk for long."""
        path = self._folder / message_id
        with contextlib.suppress(FileNotFoundError):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as out:
                out.write(bytes(os.fstat(out.fileno()).st_size))
                out.flush()
                os.fsync(out.fileno())
            path.unlink()
        with contextlib.suppress(OSError):
            # Only if it was the last.
            self._folder.rmdir()

    def ids(self) -> list[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir())
        except FileNotFoundError:
            return []
