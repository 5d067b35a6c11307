"""What can be handed to ingest, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from agtmux.domain.events import Event
from agtmux.domain.panes import Target, Topology
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.states import Health


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one event."""

    event_id: str
    status: str
    runtime_id: RuntimeId | None = None
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class AddTarget:
    target: Target


@dataclass(frozen=True, slots=True)
class RemoveTarget:
    target_id: TargetId


@dataclass(frozen=True, slots=True)
class HealthChanged:
    target_id: TargetId
    health: Health


@dataclass(frozen=True, slots=True)
class TargetsSeen:
    """The daemon ends: when targets were last looked at is written down."""


@dataclass(frozen=True, slots=True)
class ExpirePending:
    """Time has passed: events that waited too long for their runtime are let go."""


@dataclass(frozen=True, slots=True)
class FirstObserved:
    """All agents of a target were looked at since this daemon started: what is stored of them is what is."""

    target_id: TargetId


Fact = Topology | AddTarget | RemoveTarget | HealthChanged | TargetsSeen | ExpirePending | FirstObserved
Submission = tuple[Event, ...] | Fact
