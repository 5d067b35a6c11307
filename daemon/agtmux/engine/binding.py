"""Which runtime an event belongs to, when it does not say so itself.

Binding is all or nothing: exactly one active runtime that satisfies every hint, or none. A pane that nobody has
looked at since the event came in may still turn out to hold its runtime, so the event waits for that look.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agtmux.domain.events import Event
from agtmux.domain.runtimes import Runtime
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.transitions import Policy


@dataclass(frozen=True, slots=True)
class Bound:
    runtime: Runtime


@dataclass(frozen=True, slots=True)
class Pending:
    """Not decided yet."""


@dataclass(frozen=True, slots=True)
class Dropped:
    reason: Reason


Binding = Bound | Pending | Dropped


def bind(
    event: Event,
    active: Collection[Runtime],
    *,
    observed_at: Timestamp | None,
    now: Timestamp,
    policy: Policy,
) -> Binding:
    """`active` are the runtimes on the event's target and pane; `observed_at` is when that target was last seen."""
    candidates = [runtime for runtime in active if _fits(event, runtime, policy)]
    if len(candidates) == 1:
        return Bound(candidates[0])
    if len(candidates) > 1:
        return Dropped(Reason.BIND_AMBIGUOUS)
    if observed_at is not None and observed_at > event.ingested_at:
        return Dropped(Reason.BIND_NO_CANDIDATE)
    if now - event.ingested_at > policy.pending_bind_ttl:
        return Dropped(Reason.BIND_TTL_EXPIRED)
    return Pending()


def _fits(event: Event, runtime: Runtime, policy: Policy) -> bool:
    if runtime.ended_at is not None:
        return False
    if event.pid is not None and event.pid != runtime.pid:
        return False
    # An agent's first hooks fire before anyone has seen it start: they wait for its runtime instead of going to
    # the shell that was there before.
    if event.agent_type is not None and event.agent_type != runtime.agent_type:
        return False
    if event.ancestors is not None and runtime.pid not in event.ancestors:
        return False
    if event.server_pid is not None and runtime.instance.server_pid not in (None, event.server_pid):
        return False
    # What happened before an agent began was not said by it. A shell's beginning is not known that well.
    if runtime.has_agent and event.ingested_at < runtime.started_at - policy.bind_window:
        return False
    if event.start_hint is None:
        return True
    return abs(runtime.started_at - event.start_hint) <= policy.bind_window
