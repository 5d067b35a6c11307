"""The daemon's time: the wall clock, made safe to order and to measure by.

It runs at the real rate, through sleep as well, follows the wall clock when that is set forward, and never goes
back: a wall clock that is set back leaves it ahead instead, because events ordered by a clock that returns would
overtake later ones. It ticks at every reading, so no two events share a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from agtmux.domain.durations import SECOND
from agtmux.domain.timestamps import Timestamp

# Both count the time a machine sleeps, which time.monotonic() does not.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Less than this is the ordinary slewing of a clock that is being kept right.
_JUMP: Final = 1 * SECOND


def wall_clock() -> int:
    return time.time_ns() // 1000


def steady_clock() -> int:
    return time.clock_gettime_ns(_STEADY) // 1000


class Clock:
    def __init__(self, wall: Callable[[], int] = wall_clock, steady: Callable[[], int] = steady_clock) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = wall() - steady()
        self._last = 0
        self.jumps = 0
        # How far ours is ahead of the wall clock, in microseconds.
        self.lead = 0

    def now(self) -> Timestamp:
        steady = self._steady()
        lead = steady + self._offset - self._wall()
        if abs(lead - self.lead) > _JUMP:
            self.jumps += 1
            self.lead = max(lead, 0)
        if lead < 0:
            self._offset -= lead
        self._last = max(self._last + 1, steady + self._offset)
        return Timestamp(self._last)

    def start_after(self, moment: Timestamp) -> None:
        """Go on from what an earlier daemon wrote, should the wall clock have been set back in between."""
        missing = moment + 1 - (self._steady() + self._offset)
        if missing > 0:
            self._offset += missing
            self.lead += missing
            self.jumps += missing > _JUMP
