"""From what each source last said to one state: freshness, arbitration, precedence, demotion.

A pure function of the signals and the clock. It keeps no history, which is why the order in which the signals
arrived cannot matter, and it returns the role every signal played, which is what `explain` prints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from agtmux.domain.events import Attention, Verdict
from agtmux.domain.redact import Redacted
from agtmux.domain.states import PRECEDENCE, Confidence, Health, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.order import OrderKey
from agtmux.engine.questions import is_same
from agtmux.engine.transitions import EVENT_DRIVEN, WORK_ELSEWHERE, Policy, contradicts


@dataclass(frozen=True, slots=True)
class Signal:
    """The newest verdict of one source."""

    source: Source
    event_type: str
    key: OrderKey
    verdict: Verdict

    @property
    def seen_at(self) -> Timestamp:
        """By the daemon's clock: sources are compared with each other only by that."""
        return self.key.ingested_at


class Role(StrEnum):
    DECIDES = "decides"
    AGREES = "agrees"
    OVERRULED = "overruled"
    OVERTAKEN = "overtaken"
    CONTRADICTS = "contradicts"
    STALE = "stale"
    UNREADABLE = "unreadable"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One link of the chain behind a state."""

    source: Source
    event_type: str
    event_id: str
    state: State
    reason_code: str
    seen_at: Timestamp
    role: Role
    note: Redacted | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    state: State
    reason_code: str
    confidence: Confidence
    source: Source | None = None
    attention: Attention | None = None
    decided_at: Timestamp | None = None
    evidence: tuple[Evidence, ...] = ()


def resolve(
    signals: Collection[Signal], *, has_agent: bool, health: Health, now: Timestamp, policy: Policy
) -> Resolution:
    if not has_agent:
        return Resolution(State.UNKNOWN, Reason.NO_AGENT, Confidence.HIGH)
    if health is Health.DOWN:
        return _undecided(Reason.TARGET_UNREACHABLE, signals, Role.UNREACHABLE)
    readable = [signal for signal in signals if not signal.verdict.is_unsupported]
    fresh = [signal for signal in readable if not is_stale(signal, now, policy)]
    if not fresh:
        if readable:
            return _undecided(Reason.STALE_SIGNAL, signals, Role.STALE)
        reason = Reason.UNSUPPORTED_SIGNAL if signals else Reason.NO_SIGNAL
        return _undecided(reason, signals, Role.UNREADABLE)
    roles = {signal.source: Role.STALE for signal in readable}
    roles |= {signal.source: Role.UNREADABLE for signal in signals if signal.source not in roles}
    told = _latest_told(fresh, roles, now, policy)
    seen = next((signal for signal in fresh if signal.source not in EVENT_DRIVEN), None)
    decider, confidence = _arbitrate(told, seen, roles, policy)
    resolution = Resolution(
        state=decider.verdict.state,
        reason_code=decider.verdict.reason_code,
        confidence=confidence,
        source=decider.source,
        attention=_attention(decider, seen, fresh, policy),
        decided_at=decider.seen_at,
        evidence=_chain(signals, roles),
    )
    return _demoted(resolution, now, policy)


def is_stale(signal: Signal, now: Timestamp, policy: Policy) -> bool:
    return now - signal.seen_at > policy.ttl(signal.source, signal.verdict.state)


def next_change(signals: Iterable[Signal], now: Timestamp, policy: Policy) -> Timestamp | None:
    """When time alone will next change what `resolve` says, so that nobody has to poll for it."""
    moments = []
    told = []
    for signal in signals:
        moments.append(signal.seen_at + policy.ttl(signal.source, signal.verdict.state) + 1)
        if signal.source in EVENT_DRIVEN:
            told.append(signal.seen_at)
        if signal.verdict.state is State.COMPLETED:
            moments.append(signal.seen_at + policy.completed_to_idle)
    if len(told) > 1:
        moments.append(max(told) + policy.same_moment + 1)
    return min((Timestamp(moment) for moment in moments if moment > now), default=None)


def _latest_told(fresh: list[Signal], roles: dict[Source, Role], now: Timestamp, policy: Policy) -> Signal | None:
    """The latest report. While its moment lasts, the most urgent of those that came within it."""
    told = [signal for signal in fresh if signal.source in EVENT_DRIVEN]
    if not told:
        return None
    newest = max(signal.seen_at for signal in told)
    for signal in told:
        roles[signal.source] = Role.OVERTAKEN
    window = policy.same_moment if now - newest <= policy.same_moment else 0
    same_moment = [signal for signal in told if newest - signal.seen_at <= window]
    return min(same_moment, key=lambda signal: (PRECEDENCE[signal.verdict.state], -signal.seen_at, signal.source))


def _arbitrate(
    told: Signal | None, seen: Signal | None, roles: dict[Source, Role], policy: Policy
) -> tuple[Signal, Confidence]:
    """Neither is trusted alone where the other contradicts it."""
    if told is None or seen is None:
        only = told or seen
        if only is None:
            raise LookupError("nothing to arbitrate: no fresh signal")
        roles[only.source] = Role.DECIDES
        return only, only.verdict.confidence
    roles[told.source] = Role.DECIDES
    if seen.verdict.state is told.verdict.state:
        roles[seen.source] = Role.AGREES
        return told, min(told.verdict.confidence, seen.verdict.confidence, key=list(Confidence).index)
    if not contradicts(told.verdict, seen.verdict):
        roles[seen.source] = Role.AGREES
        return told, told.verdict.confidence
    if seen.verdict.outlives_reports and told.verdict.state in WORK_ELSEWHERE:
        roles[told.source] = Role.OVERRULED
        roles[seen.source] = Role.DECIDES
        return seen, seen.verdict.confidence
    held_since = seen.verdict.held_since if seen.verdict.held_since is not None else seen.seen_at
    if seen.seen_at <= told.seen_at:
        roles[seen.source] = Role.OVERTAKEN
        return told, told.verdict.confidence
    if held_since > told.seen_at and seen.verdict.repeats >= policy.sightings_to_overrule:
        roles[told.source] = Role.OVERRULED
        roles[seen.source] = Role.DECIDES
        return seen, seen.verdict.confidence
    roles[seen.source] = Role.CONTRADICTS
    return told, told.verdict.confidence.lowered()


def _attention(decider: Signal, seen: Signal | None, fresh: list[Signal], policy: Policy) -> Attention | None:
    """What is asked. Several parts of an agent may ask at once, and one may ask without a report: then it is what can
    be seen, as that is what an answer goes to."""
    told = decider.verdict.attention or _shared_attention(decider, fresh, policy)
    if seen is None or seen.verdict.dialog is None or seen.verdict.state is not decider.verdict.state:
        return told
    has_settled = seen.seen_at - decider.seen_at >= policy.settles_after(decider.verdict.state)
    if not has_settled or is_same(told, seen.verdict.attention):
        return told
    return seen.verdict.attention


def _shared_attention(decider: Signal, fresh: list[Signal], policy: Policy) -> Attention | None:
    """A hook may know that the agent waits and the screen what for. What an earlier moment asked is no answer."""
    since = decider.seen_at - policy.same_moment
    same = [each for each in fresh if each.verdict.state is decider.verdict.state and each.seen_at >= since]
    knowing = [each for each in same if each.verdict.attention is not None]
    newest = max(knowing, key=lambda each: (each.seen_at, each.source), default=None)
    return None if newest is None else newest.verdict.attention


def _demoted(resolution: Resolution, now: Timestamp, policy: Policy) -> Resolution:
    decided_at = resolution.decided_at
    if resolution.state is not State.COMPLETED or decided_at is None:
        return resolution
    if now - decided_at < policy.completed_to_idle:
        return resolution
    return replace(
        resolution,
        state=State.IDLE,
        reason_code=Reason.COMPLETED_DEMOTED,
        decided_at=Timestamp(decided_at + policy.completed_to_idle),
    )


def _undecided(reason: Reason, signals: Collection[Signal], role: Role) -> Resolution:
    roles = {signal.source: role for signal in signals}
    return Resolution(State.UNKNOWN, reason, Confidence.LOW, evidence=_chain(signals, roles))


def _chain(signals: Collection[Signal], roles: dict[Source, Role]) -> tuple[Evidence, ...]:
    chain = [
        Evidence(
            source=signal.source,
            event_type=signal.event_type,
            event_id=signal.key.event_id,
            state=signal.verdict.state,
            reason_code=signal.verdict.reason_code,
            seen_at=signal.seen_at,
            role=roles[signal.source],
            note=signal.verdict.note,
        )
        for signal in signals
    ]
    return tuple(sorted(chain, key=lambda link: (link.role is not Role.DECIDES, -link.seen_at, link.source)))
