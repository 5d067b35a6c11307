"""How much a target on another machine may report, so that one that is somebody else's by now harms only itself.

What is over the allowance is not lost where it matters: of each pane the newest report is kept and handed on as soon as
there is room again, and a report without its payload still says what the agent does. The rest is left out and counted,
and the target counts as degraded for a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from agtmux.domain.events import Event

# How long a target counts as degraded after something was left out, in seconds.
_DEGRADED_FOR: Final = 30.0
# Panes whose newest report waits.
_MOST_LATE: Final = 1_000
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket's size, and what flows into it in a second."""

    at_once: float
    a_second: float


@dataclass(frozen=True, slots=True)
class AllowanceLimits:
    """Fifty busy agents report a few times a second, some kilobytes each."""

    reports: Rate = Rate(2_000, 50)
    # Bytes that are kept of them.
    payloads: Rate = Rate(8 * _MEGABYTE, 32_000)
    # Bytes that are read at all: what is over that is not even looked at.
    raw: Rate = Rate(16 * _MEGABYTE, _MEGABYTE)
    # Agents and shells that come to be in a pane.
    starts: Rate = Rate(6_000, 1)


class Bucket:
    """Times are of a clock that only goes forward, in seconds."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._left = rate.at_once
        self._at: float | None = None

    def take(self, amount: float, now: float) -> bool:
        """All or nothing."""
        if amount > self.left(now):
            return False
        self._left -= amount
        return True

    def spend(self, amount: float, now: float) -> None:
        """What has happened already; there may be less than nothing left."""
        self.left(now)
        self._left = max(self._left - amount, -self._rate.at_once)

    def left(self, now: float) -> float:
        passed = 0.0 if self._at is None else max(now - self._at, 0.0)
        self._at = now if self._at is None else max(now, self._at)
        self._left = min(self._left + passed * self._rate.a_second, self._rate.at_once)
        return self._left


class Allowance:
    """Of one target."""

    def __init__(self, limits: AllowanceLimits | None = None) -> None:
        limits = limits or AllowanceLimits()
        self._reports = Bucket(limits.reports)
        self._payloads = Bucket(limits.payloads)
        self._raw = Bucket(limits.raw)
        self._starts = Bucket(limits.starts)
        # The newest report of each pane that had to wait.
        self._late: dict[object, Event] = {}
        self._left_out_at: float | None = None
        # What was left out since the target was last well.
        self.left_out: Counter[str] = Counter()

    def reads(self, size: int, now: float) -> bool:
        """Whether a report of so many bytes is looked at."""
        if self._raw.take(size, now):
            return True
        self._leave_out(now, reports=1, bytes=size)
        return False

    def take(self, events: Iterable[Event], now: float) -> list[Event]:
        """Those that are handed on now, some without their payload."""
        return [self._without_excess(event, now) for event in events if self._passes(event, now)]

    def late(self, now: float) -> list[Event]:
        """Those that had to wait, as far as there is room for them now."""
        found = []
        while self._late and self._reports.take(1, now):
            found.append(self._late.pop(next(iter(self._late))))
        return found

    def observed(self, count: int, now: float) -> None:
        """So many reports were made of what its panes show."""
        self._reports.spend(count, now)

    def starts(self, count: int, now: float) -> bool:
        """Whether so many may come to be in panes there."""
        if self._starts.take(count, now):
            return True
        self._leave_out(now, starts=count)
        return False

    def is_spent(self, now: float) -> bool:
        return self._reports.left(now) <= 0

    def excess(self, now: float) -> str | None:
        """What there was too much of lately, in a sentence; None if nothing."""
        if self._left_out_at is None or now - self._left_out_at > _DEGRADED_FOR:
            self._left_out_at = None
            self.left_out.clear()
            return None
        counts = self.left_out
        told = [
            (counts["reports"], "reports were left out or put together"),
            (counts["bytes"] // 1_000, "kB of what they carry were left out"),
            (counts["starts"], "new agents were not taken in"),
        ]
        what = ", ".join(f"{count} {text}" for count, text in told if count)
        return f"it reports more than is taken in: {what}; look at what runs there, or remove the target"

    def _passes(self, event: Event, now: float) -> bool:
        key = (event.runtime_id, event.target_id, event.pane_id, event.source)
        # A report without a verdict says nothing of the state, so it never replaces one that has a verdict.
        if self._reports.take(1, now):
            if event.verdict is not None:
                self._late.pop(key, None)
            return True
        self._leave_out(now, reports=1)
        if event.verdict is not None and (key in self._late or len(self._late) < _MOST_LATE):
            self._late.pop(key, None)
            self._late[key] = replace(event, raw_payload=None)
        return False

    def _without_excess(self, event: Event, now: float) -> Event:
        size = 0 if event.raw_payload is None else len(event.raw_payload)
        if not size or self._payloads.take(size, now):
            return event
        self._leave_out(now, bytes=size)
        return replace(event, raw_payload=None)

    def _leave_out(self, now: float, **counts: int) -> None:
        self._left_out_at = now
        self.left_out.update(counts)
