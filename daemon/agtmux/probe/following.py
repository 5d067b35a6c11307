"""Tells when files grow that somebody reads: by the system's own word where it gives one, else by looking at them."""

from __future__ import annotations

import os
import time
from typing import Callable

from agtmux.probe.watching import Scanner, best, sign

MOST = 500
# Of files that are written to all the time, a few times a second.
_PAUSE = 0.4
# Where the system tells nothing, or not of all.
_LOOK_EVERY = 2.0


class Following:
    """Not for several threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # A user has few watches of the system's kind, and most probes have nothing to follow.
        self._scanner: Scanner | None = None
        self._signs: dict[str, object] = {}
        self._is_told_all = False
        self._not_before = 0.0
        self._due = 0.0

    def follow(self, paths: list[str]) -> None:
        """These, and no others. What they are now is known to whoever asks."""
        self._signs = {path: self._signs.get(path) or _sign(path) for path in paths[:MOST]}
        if self._signs and self._scanner is None:
            self._scanner = best()
        self._watch()
        self._due = self._clock() + _LOOK_EVERY

    def fileno(self) -> int | None:
        """Readable when one has changed; None for a moment after each time, and where nobody tells."""
        if self._scanner is None or self._clock() < self._not_before:
            return None
        return self._scanner.fileno()

    @property
    def rest(self) -> float:
        """In how many seconds `grown` has to be called even if nothing is told."""
        if not self._signs:
            return 3600.0
        now = self._clock()
        return max(min(self._not_before if now < self._not_before else self._due, self._due) - now, 0.0)

    def is_due(self) -> bool:
        return bool(self._signs) and self._clock() >= self._due

    def grown(self) -> list[str]:
        """Those that have changed since the last time."""
        if self._scanner is None:
            return []
        now = self._clock()
        dirty = self._scanner.dirty()
        self._not_before = now + _PAUSE
        is_due, wanted = now >= self._due, self._signs
        if dirty is not None and not is_due:
            wanted = {path: self._signs[path] for path in dirty if path in self._signs}
        found = []
        for path, before in list(wanted.items()):
            after = _sign(path)
            if after != before:
                self._signs[path] = after
                found.append(path)
        if is_due:
            # A folder that was not there may be, and one that was may be another.
            self._watch()
            self._due = now + _LOOK_EVERY * (5 if self._is_told_all else 1)
        return found

    def close(self) -> None:
        if self._scanner is not None:
            self._scanner.close()
            self._scanner = None

    def _watch(self) -> None:
        if self._scanner is None:
            return
        folders = {folder: _sign(folder) for folder in {os.path.dirname(path) for path in self._signs}}
        there = {folder: each for folder, each in folders.items() if each is not None}
        files = {path: each for path in self._signs for each in [_sign(path)] if each is not None}
        _, self._is_told_all = self._scanner.watch(there, files)


def _sign(path: str) -> tuple[int, int, int, int] | None:
    try:
        return sign(os.stat(path))
    except (OSError, ValueError):
        return None
