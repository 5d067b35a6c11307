"""When a target counts as degraded, down and well again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agtmux.domain.durations import SECOND
from agtmux.domain.states import Health
from agtmux.domain.timestamps import Timestamp


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    failures_to_down: int = 3
    # So many failures in a row make a target down only if they came this close together.
    within: int = 30 * SECOND
    successes_to_ok: int = 2


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """The health of a target and the row of looks that led to it."""

    health: Health = Health.OK
    failures: tuple[Timestamp, ...] = ()
    successes: int = 0

    def failed(self, now: Timestamp, policy: HealthPolicy) -> HealthRecord:
        failures = (*self.failures, now)[-policy.failures_to_down :]
        is_down = len(failures) == policy.failures_to_down and now - failures[0] <= policy.within
        health = Health.DOWN if is_down or self.health is Health.DOWN else Health.DEGRADED
        return HealthRecord(health, failures)

    def succeeded(self, policy: HealthPolicy) -> HealthRecord:
        successes = self.successes + 1
        is_well = self.health is Health.OK or successes >= policy.successes_to_ok
        return HealthRecord(Health.OK) if is_well else replace(self, failures=(), successes=successes)
