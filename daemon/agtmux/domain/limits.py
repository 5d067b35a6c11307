"""How long a target may take before it counts as one that does not answer; how many agents may be launched, and how
much they may write."""

from __future__ import annotations

from dataclasses import dataclass

from agtmux.domain.durations import MICROSECONDS, SECOND


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """Launched agents at a time, and launches in a minute: of all, and of one who asks."""

    most_agents: int = 20
    most_per_agent: int = 5
    per_minute: int = 4
    per_minute_overall: int = 12


@dataclass(frozen=True, slots=True)
class Limits:
    """All in microseconds."""

    connect: int = 3 * SECOND
    command: int = 5 * SECOND
    # Pauses after the first failures in a row; then they double, up to the longest.
    retries: tuple[int, ...] = (250 * MICROSECONDS["ms"], 1 * SECOND)
    longest_pause: int = 10 * SECOND

    def pause(self, failures: int) -> int:
        """How long to wait after so many failures in a row, before jitter."""
        if failures <= len(self.retries):
            return self.retries[failures - 1]
        doubled = self.retries[-1] << min(failures - len(self.retries), 20) if self.retries else self.longest_pause
        return min(doubled, self.longest_pause)


@dataclass(frozen=True, slots=True)
class MailLimits:
    """How many messages a minute, from one to another and from one to all; and how many may wait for one receiver."""

    per_pair: int = 20
    per_sender: int = 60
    waiting: int = 200
