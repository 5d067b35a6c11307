"""One event applied to one runtime: dedupe → order → runtime guard → freshness → precedence.

`apply` returns the record as it is afterwards and what became of the event. Nothing here reads a clock, a file or
a database; the caller says whether the event is a duplicate, because only the store knows all that ever came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agtmux.domain.events import Attention, Event
from agtmux.domain.runtimes import Runtime, RuntimeId
from agtmux.domain.states import Confidence, Health, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.order import OrderKey, order_key
from agtmux.engine.questions import is_one, is_shown
from agtmux.engine.resolve import Evidence, Resolution, Signal, resolve
from agtmux.engine.transitions import Policy


@dataclass(frozen=True, slots=True)
class StateRow:
    """What is shown for a pane, and since when."""

    state: State = State.UNKNOWN
    reason_code: str = Reason.NO_SIGNAL
    confidence: Confidence = Confidence.LOW
    source: Source | None = None
    attention: Attention | None = None
    evidence: tuple[Evidence, ...] = ()
    last_source_seq: int | None = None
    last_seen_at: Timestamp | None = None
    # These two tell what this daemon has shown: how often it changed, and when it last did. They depend on the
    # path; everything above depends only on the events.
    state_version: int = 0
    updated_at: Timestamp = Timestamp(0)


@dataclass(frozen=True, slots=True)
class Record:
    """A runtime with all that decides its state."""

    runtime: Runtime
    row: StateRow
    signals: Mapping[Source, Signal] = field(default_factory=dict)
    cursors: Mapping[Source, OrderKey] = field(default_factory=dict)

    @property
    def dialog(self) -> str | None:
        """The fingerprint of the dialog that was last seen to be open, and is the one that is shown to be asked."""
        told = self.signals.get(Source.WRAPPER)
        if told is not None and told.verdict.dialog is not None:
            # Whoever wraps an agent knows what it asks, and draws nothing that could be seen.
            return told.verdict.dialog if told.verdict.state in _WAITING else None
        seen = self.signals.get(Source.POLLER)
        if seen is None or seen.verdict.state not in _WAITING:
            return None
        # What was reported since may be about the next one, which nobody has seen yet.
        asked = self.row.attention if self.row.state in _WAITING else None
        return seen.verdict.dialog if is_one(asked, seen.verdict.attention) else None

    def asks(self, question: Attention | None) -> bool:
        """Whether that is what is shown to be asked."""
        return is_shown(question, self.row.attention)


_WAITING = frozenset({State.WAITING_APPROVAL, State.WAITING_INPUT})


class Outcome(StrEnum):
    APPLIED = "applied"
    # Known, kept, and without meaning for the state.
    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    STALE_RUNTIME = "stale_runtime"
    STATE_MOVED_ON = "state_moved_on"


# What is kept in the store, beside what changes a state: a late event is still part of the story.
KEPT = frozenset({Outcome.APPLIED, Outcome.RECORDED, Outcome.SUPERSEDED})


def apply(
    record: Record, event: Event, *, duplicate: bool, health: Health, now: Timestamp, policy: Policy
) -> tuple[Record, Outcome]:
    """The record after the event, with its row brought up to `now`."""
    after, outcome = absorb(record, event, whose=event.runtime_id, duplicate=duplicate, policy=policy)
    return settle(after, health=health, now=now, policy=policy) if outcome is Outcome.APPLIED else record, outcome


def absorb(
    record: Record, event: Event, *, whose: RuntimeId | None, duplicate: bool, policy: Policy
) -> tuple[Record, Outcome]:
    """Take the event in without working the state out: many may be absorbed before anyone looks.

    `whose` is the runtime the event belongs to, which binding may have found out.
    """
    if duplicate:
        return record, Outcome.DUPLICATE
    moves_cursor = event.verdict is not None or event.source is Source.RECONCILER
    key = order_key(event, policy.skew_budget)
    cursor = record.cursors.get(event.source)
    if moves_cursor and cursor is not None and key <= cursor:
        return record, Outcome.SUPERSEDED
    if whose != record.runtime.runtime_id or record.runtime.ended_at is not None:
        return record, Outcome.STALE_RUNTIME
    if event.if_state_version is not None and event.if_state_version != record.row.state_version:
        return record, Outcome.STATE_MOVED_ON
    if not moves_cursor:
        return record, Outcome.RECORDED
    signals = record.signals
    if event.verdict is not None:
        signals = {**signals, event.source: Signal(event.source, event.event_type, key, event.verdict)}
    return Record(record.runtime, record.row, signals, {**record.cursors, event.source: key}), Outcome.APPLIED


def settle(record: Record, *, health: Health, now: Timestamp, policy: Policy) -> Record:
    """The record with its row brought up to `now`; the same object when nothing changed."""
    resolution = resolve(
        record.signals.values(), has_agent=record.runtime.has_agent, health=health, now=now, policy=policy
    )
    row = _row(record, resolution, now)
    return record if row == record.row else Record(record.runtime, row, record.signals, record.cursors)


def begin(runtime: Runtime, *, after_version: int, health: Health, now: Timestamp, policy: Policy) -> Record:
    """A new inhabitant. Versions go on from the pane's last one, so that an old guard can never match again."""
    fresh = Record(runtime, StateRow(state_version=after_version + 1, updated_at=now))
    settled = settle(fresh, health=health, now=now, policy=policy)
    return replace(settled, row=replace(settled.row, state_version=after_version + 1, updated_at=now))


def _row(record: Record, resolution: Resolution, now: Timestamp) -> StateRow:
    before = record.row
    changed = (before.state, before.reason_code, before.attention) != (
        resolution.state,
        resolution.reason_code,
        resolution.attention,
    )
    decider = record.signals.get(resolution.source) if resolution.source is not None else None
    numbered = decider is not None and decider.key.numbered
    return StateRow(
        state=resolution.state,
        reason_code=resolution.reason_code,
        confidence=resolution.confidence,
        source=resolution.source,
        attention=resolution.attention,
        evidence=resolution.evidence,
        last_source_seq=decider.key.source_seq if decider is not None and numbered else None,
        last_seen_at=max((signal.seen_at for signal in record.signals.values()), default=None),
        state_version=before.state_version + 1 if changed else before.state_version,
        updated_at=(resolution.decided_at or now) if changed else before.updated_at,
    )
