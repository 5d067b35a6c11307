"""From what each source last said to one state: freshness, arbitration, precedence, demotion.

A pure function of the signals and the clock. It keeps no history, which is why the order in which the signals
arrived cannot matter, and it returns the role every signal played, which is what `explain` prints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from agtmux.domain.events import Attention, Incomplete, Verdict
from agtmux.domain.redact import Redacted
from agtmux.domain.states import PRECEDENCE, Confidence, Health, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.order import OrderKey
from agtmux.engine.questions import Relation, both, relation
from agtmux.engine.transitions import EVENT_DRIVEN, WORK_ELSEWHERE, Policy, can_carry, contradicts, doubts


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
    """Which signal decides depends on the signals alone. Time can only make that one stale: then the state is unknown,
    unless another signal that is still fresh says the same. So nothing that was superseded or overruled comes back."""
    if not has_agent:
        return Resolution(State.UNKNOWN, Reason.NO_AGENT, Confidence.HIGH)
    if health is Health.DOWN:
        return _undecided(Reason.TARGET_UNREACHABLE, signals, Role.UNREACHABLE)
    readable = [signal for signal in signals if not signal.verdict.is_unsupported]
    if not readable:
        reason = Reason.UNSUPPORTED_SIGNAL if signals else Reason.NO_SIGNAL
        return _undecided(reason, signals, Role.UNREADABLE)
    roles = {signal.source: Role.UNREADABLE for signal in signals}
    roles |= {signal.source: Role.OVERTAKEN for signal in readable}
    report = latest_report(readable, policy)
    observation = next((signal for signal in readable if signal.source not in EVENT_DRIVEN), None)
    told = report if report is not None and not _has_expired_before(report, observation, policy) else None
    seen = observation if observation is not None and not _has_expired_before(observation, told, policy) else None
    decider, confidence = _arbitrate(told, seen, roles, policy)
    fresh = [signal for signal in readable if not is_stale(signal, now, policy)]
    roles |= {signal.source: Role.STALE for signal in readable if signal not in fresh}
    carrier = decider
    if decider not in fresh:
        other = seen if decider is told else told
        if other is None or other not in fresh or not can_carry(decider.verdict.state, other.verdict.state):
            roles[decider.source] = Role.STALE
            return _undecided(Reason.STALE_SIGNAL, signals, roles)
        carrier, confidence = other, other.verdict.confidence
        roles[carrier.source] = Role.DECIDES
    resolution = Resolution(
        state=carrier.verdict.state,
        reason_code=carrier.verdict.reason_code,
        confidence=confidence,
        source=carrier.source,
        attention=_attention(carrier, seen if seen in fresh else None, fresh, policy),
        # By this a finished turn is demoted, so it is that of the signal that decided first.
        decided_at=decider.seen_at,
        evidence=_chain(signals, roles),
    )
    return _demoted(resolution, now, policy)


def is_stale(signal: Signal, now: Timestamp, policy: Policy) -> bool:
    return now - signal.seen_at > policy.ttl(signal.source, signal.verdict.state)


def latest_report(signals: Iterable[Signal], policy: Policy) -> Signal | None:
    """The newest report, stale or not: a report that it superseded never counts again. Of several within one moment
    it is the most urgent, and stays so until there is another report."""
    reports = [signal for signal in signals if signal.source in EVENT_DRIVEN and not signal.verdict.is_unsupported]
    if not reports:
        return None
    newest = max(signal.seen_at for signal in reports)
    same_moment = [signal for signal in reports if newest - signal.seen_at <= policy.same_moment]
    return min(same_moment, key=lambda signal: (PRECEDENCE[signal.verdict.state], -signal.seen_at, signal.source))


def next_change(signals: Iterable[Signal], now: Timestamp, policy: Policy) -> Timestamp | None:
    """When time alone will next change what `resolve` says, so that nobody has to poll for it."""
    moments = []
    for signal in signals:
        moments.append(signal.seen_at + policy.ttl(signal.source, signal.verdict.state) + 1)
        if signal.verdict.state is State.COMPLETED:
            moments.append(signal.seen_at + policy.completed_to_idle)
    return min((Timestamp(moment) for moment in moments if moment > now), default=None)


def _has_expired_before(signal: Signal, other: Signal | None, policy: Policy) -> bool:
    """Whether it was stale when the other came: then the other stands alone."""
    return other is not None and is_stale(signal, other.seen_at, policy)


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
        surer = min(told.verdict.confidence, seen.verdict.confidence, key=list(Confidence).index)
        # Behind a menu neither can be sure.
        is_too_sure = seen.verdict.is_covered and surer is Confidence.HIGH
        return told, Confidence.MEDIUM if is_too_sure else surer
    held_since = seen.verdict.held_since if seen.verdict.held_since is not None else seen.seen_at
    is_held = held_since > told.seen_at and seen.verdict.repeats >= policy.sightings_to_overrule
    if not contradicts(told.verdict, seen.verdict):
        is_doubted = doubts(told.verdict, seen.verdict) and (is_held or seen.verdict.is_covered)
        roles[seen.source] = Role.CONTRADICTS if is_doubted else Role.AGREES
        return told, told.verdict.confidence.lowered() if is_doubted else told.verdict.confidence
    if seen.verdict.outlives_reports and told.verdict.state in WORK_ELSEWHERE:
        roles[told.source] = Role.OVERRULED
        roles[seen.source] = Role.DECIDES
        return seen, seen.verdict.confidence
    if seen.seen_at <= told.seen_at and not seen.verdict.is_covered:
        roles[seen.source] = Role.OVERTAKEN
        return told, told.verdict.confidence
    if is_held:
        roles[told.source] = Role.OVERRULED
        roles[seen.source] = Role.DECIDES
        return seen, seen.verdict.confidence
    roles[seen.source] = Role.CONTRADICTS
    return told, told.verdict.confidence.lowered()


def _attention(decider: Signal, seen: Signal | None, fresh: list[Signal], policy: Policy) -> Attention | None:
    """What is asked: as it was reported, where a report says so. What the screen shows is added wherever it may be more
    than that, as a key would go there."""
    reported = decider.verdict.attention or _shared_attention(decider, fresh, policy)
    if seen is None or seen.verdict.dialog is None or seen.verdict.state is not decider.verdict.state:
        return reported
    shown = seen.verdict.attention
    if reported is None or shown is None or decider is seen:
        return reported
    match relation(reported, shown):
        case Relation.SAME | Relation.PART:
            return reported
        case Relation.SAME_SUBJECT:
            return both(reported, shown, reported.incomplete or shown.incomplete)
    # Until its dialog has had the time to be drawn, the one that can be seen may be another.
    if seen.seen_at - decider.seen_at < policy.settles_after(decider.verdict.state):
        return reported
    if reported.incomplete is Incomplete.NOT_REPORTED or decider.verdict.state is not State.WAITING_APPROVAL:
        return shown
    return both(reported, shown, Incomplete.SCREEN_DIFFERS)


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


def _undecided(reason: Reason, signals: Collection[Signal], role: Role | dict[Source, Role]) -> Resolution:
    roles = role if isinstance(role, dict) else {signal.source: role for signal in signals}
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
