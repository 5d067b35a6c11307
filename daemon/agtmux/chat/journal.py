"""What has happened in a session, numbered, as far back as memory allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from agtmux.chat.protocol import Told, encoded

MOST_LINES: Final = 10_000
MOST_BYTES: Final = 8 * 1024 * 1024


class Kept(NamedTuple):
    seq: int
    line: bytes


class Journal:
    """Readers have their own place in it, so nothing is queued for anyone."""

    def __init__(self, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES) -> None:
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._kept: deque[Kept] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self.last_seq = 0

    @property
    def first_seq(self) -> int:
        """Of the oldest that is kept, or the one that comes next."""
        return self._kept[0].seq if self._kept else self.last_seq + 1

    def add(self, told: Told) -> None:
        self.last_seq += 1
        kept = Kept(self.last_seq, encoded({"type": told["type"], "seq": self.last_seq, **told}))
        self._kept.append(kept)
        self._bytes += len(kept.line)
        while len(self._kept) > 1 and (len(self._kept) > self._most_lines or self._bytes > self._most_bytes):
            self._bytes -= len(self._kept.popleft().line)
        self.stir()

    def stir(self) -> None:
        """Whoever waits looks again."""
        self._news.set()
        self._news = asyncio.Event()

    def after(self, seq: int, most: int) -> list[Kept]:
        """Those that follow a number, or the oldest there are if some are missing: see `first_seq`."""
        start = max(0, seq + 1 - self.first_seq)
        return [self._kept[index] for index in range(start, min(start + most, len(self._kept)))]

    async def wait(self, place: Callable[[], int]) -> None:
        """Until there is something after a reader's place, which may be moved meanwhile: see `stir`."""
        while self.last_seq <= place():
            await self._news.wait()
