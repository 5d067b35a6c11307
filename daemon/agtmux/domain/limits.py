"""How long a target may take before it counts as one that does not answer."""

from __future__ import annotations

from dataclasses import dataclass

from agtmux.domain.durations import MICROSECONDS, SECOND


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
