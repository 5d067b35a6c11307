"""What agents' screens say, as events: when it changes, when it holds against what was told, and before it grows old.

A screen that has not changed says nothing new, so it costs nothing. Only what is seen twice after a report can
overrule that report, so it is told a second time when it contradicts one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen
from agtmux.clock import Clock
from agtmux.domain.events import Attention, Event, Verdict, derive_dedupe_key
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.engine.transitions import EVENT_DRIVEN, Policy, can_overrule
from agtmux.observe.intake import new_event_id
from agtmux.observe.world import World

_LONGEST_NOTE = 500


@dataclass(slots=True)
class _Sight:
    """What one pane has shown since when."""

    runtime_id: RuntimeId
    looks: tuple[str, str]
    seen: Seen
    held_since: Timestamp
    repeats: int = 0
    reported_at: Timestamp | None = None
    reported: object = None


class Sightings:
    """Of one target."""

    def __init__(self, target_id: TargetId, world: World, registry: Registry, clock: Clock, policy: Policy) -> None:
        self._target_id = target_id
        self._world = world
        self._registry = registry
        self._clock = clock
        self._policy = policy
        self._sights: dict[PaneId, _Sight] = {}

    def look(
        self, screens: Mapping[PaneId, str], titles: Mapping[PaneId, str], taken_at: Timestamp
    ) -> tuple[Event, ...]:
        """What there is to say after a look that began at `taken_at`."""
        events = []
        sights: dict[PaneId, _Sight] = {}
        for pane_id, text in screens.items():
            record = self._world.records.get((self._target_id, pane_id))
            if record is None or not record.runtime.has_agent:
                continue
            if not self._registry.reads_screens(record.runtime.agent_type):
                continue
            sight = self._sight(pane_id, record, text, titles.get(pane_id, ""), taken_at)
            sights[pane_id] = sight
            if not sight.seen.is_overlay and self._is_worth_telling(sight, record):
                events.append(self._event(sight, record, taken_at))
        self._sights = sights
        return tuple(events)

    def _sight(self, pane_id: PaneId, record: Record, text: str, title: str, taken_at: Timestamp) -> _Sight:
        sight = self._sights.get(pane_id)
        if sight is None or sight.runtime_id != record.runtime.runtime_id:
            seen = self._registry.read_screen(record.runtime.agent_type, text, title=title)
            sight = _Sight(record.runtime.runtime_id, (text, title), seen, taken_at)
        elif sight.looks != (text, title):
            seen = self._registry.read_screen(record.runtime.agent_type, text, title=title)
            if not seen.is_overlay and _meaning(seen) != _meaning(sight.seen):
                sight.held_since, sight.repeats = taken_at, 0
            sight.seen, sight.looks = seen, (text, title)
        told = [signal.seen_at for signal in record.signals.values() if signal.source in EVENT_DRIVEN]
        if told and max(told) >= sight.held_since:
            # What was seen before a report says nothing against it.
            sight.held_since, sight.repeats = taken_at, 0
        if not told or max(told) < taken_at:
            sight.repeats += 1
        return sight

    def _is_worth_telling(self, sight: _Sight, record: Record) -> bool:
        if sight.reported != _meaning(sight.seen) or sight.reported_at is None:
            return True
        if self._clock.now() - sight.reported_at > self._policy.seen_ttl // 2:
            return True
        contradicts = sight.seen.state is not record.row.state and can_overrule(record.row.state, sight.seen.state)
        return contradicts and sight.repeats == self._policy.sightings_to_overrule

    def _event(self, sight: _Sight, record: Record, taken_at: Timestamp) -> Event:
        now = self._clock.now()
        sight.reported, sight.reported_at = _meaning(sight.seen), now
        event_id = new_event_id()
        event_type = f"{record.runtime.agent_type}.screen"
        return Event(
            event_id=event_id,
            event_type=event_type,
            source=Source.POLLER,
            dedupe_key=derive_dedupe_key(Source.POLLER, event_id, event_type, b""),
            event_time=taken_at,
            ingested_at=now,
            runtime_id=record.runtime.runtime_id,
            verdict=self._verdict(sight, record),
        )

    def _verdict(self, sight: _Sight, record: Record) -> Verdict:
        seen = sight.seen
        if seen.state is State.UNKNOWN:
            return Verdict(State.UNKNOWN, Reason.UNSUPPORTED_SIGNAL, Confidence.LOW, note=_note(seen))
        is_verified = self._registry.has_verified(record.runtime.agent_type, record.runtime.agent_version)
        return Verdict(
            state=seen.state,
            reason_code=seen.reason_code,
            confidence=seen.confidence if is_verified else seen.confidence.lowered(),
            attention=_attention(seen),
            note=_note(seen),
            held_since=sight.held_since,
            repeats=sight.repeats,
        )


def _meaning(seen: Seen) -> object:
    return seen.state, seen.reason_code, None if seen.asked is None else seen.asked.fingerprint


def _attention(seen: Seen) -> Attention | None:
    if seen.asked is None:
        return None
    return Attention(
        kind=seen.asked.kind,
        summary=redact_text(seen.asked.summary[:200]),
        detail=redact_text(seen.asked.detail) if seen.asked.detail else None,
        options=tuple(redact_text(option[:200]) for option in seen.asked.options[:20]),
    )


def _note(seen: Seen) -> Redacted | None:
    return redact_text(" / ".join(seen.evidence)[:_LONGEST_NOTE]) if seen.evidence else None
