"""Every table that decides a state. Whatever affects the state machine stands in this file.

A pair of states that the arbitration table does not know raises an error that names both, so a new state cannot
slip in half-wired.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agtmux.domain.durations import MICROSECONDS, SECOND
from agtmux.domain.events import Verdict
from agtmux.domain.states import Reason, Source, State

ERROR, APPROVAL, INPUT, RUNNING, COMPLETED, IDLE, UNKNOWN = State

# Told by the agent itself, or by what wraps it: precise, but with holes. All other sources look from outside: without
# holes, but what they see can be quoted, stale or restyled.
EVENT_DRIVEN: Final = frozenset({Source.HOOK, Source.NOTIFY, Source.WRAPPER})

# What was told → the sightings that cannot be true beside it, so that a fresh and repeated one overrules it.
# Everything else can coexist: a finished turn sits at an idle prompt, an error leaves a prompt below it. A screen that
# says nothing overrules nothing by itself, but makes a report less sure (`doubts`).
OVERRULED_BY: Final[dict[State, frozenset[State]]] = {
    ERROR: frozenset({APPROVAL, INPUT, RUNNING}),
    APPROVAL: frozenset({ERROR, INPUT, RUNNING, COMPLETED, IDLE}),
    INPUT: frozenset({ERROR, APPROVAL, RUNNING, COMPLETED, IDLE}),
    RUNNING: frozenset({ERROR, APPROVAL, INPUT, COMPLETED, IDLE}),
    COMPLETED: frozenset({ERROR, APPROVAL, INPUT, RUNNING}),
    IDLE: frozenset({ERROR, APPROVAL, INPUT, RUNNING}),
    UNKNOWN: frozenset({ERROR, APPROVAL, INPUT, RUNNING, COMPLETED, IDLE}),
}


# Reports that parts of an agent make beside an open dialog: subagents, tools that run at the same time.
WORK_ELSEWHERE: Final = frozenset({RUNNING, COMPLETED})


def can_overrule(told: State, seen: State) -> bool:
    try:
        return seen in OVERRULED_BY[told]
    except KeyError:
        raise LookupError(f"no rule for told={told!r} and seen={seen!r}") from None


def can_carry(decided: State, other: State) -> bool:
    """Whether another signal may stand in for the one that decided, once that is stale: it must say the same, or what
    becomes of a finished turn anyway."""
    return other is decided or (decided is COMPLETED and other is IDLE)


# Reports that a screen which says nothing overrules all the same: work that something covers may be blocked by it, and
# a wait whose dialog was seen to go is over.
COVERED_OVERRULES: Final = frozenset({RUNNING})
DIALOG_GONE_OVERRULES: Final = frozenset({APPROVAL, INPUT})


def contradicts(told: Verdict, seen: Verdict) -> bool:
    """Whether both cannot be true. Some agents report a turn that was stopped as one that ended."""
    if seen.state is UNKNOWN:
        is_blocked = seen.is_covered and told.state in COVERED_OVERRULES
        return is_blocked or (seen.dialog_gone and told.state in DIALOG_GONE_OVERRULES)
    was_stopped = seen.state is IDLE and seen.reason_code == Reason.INTERRUPTED
    return can_overrule(told.state, seen.state) or (told.state is COMPLETED and was_stopped)


def doubts(told: Verdict, seen: Verdict) -> bool:
    """Whether the report may be true, and cannot be seen to be."""
    return (seen.state is UNKNOWN or seen.is_covered) and told.state is not UNKNOWN


_HALF_HOUR: Final = 30 * MICROSECONDS["m"]
_HALF_DAY: Final = 12 * MICROSECONDS["h"]


def _told_ttl() -> dict[State, int]:
    # A turn reports tools as it goes, so silence is suspicious soon. A dialog waits silently all night.
    return {state: _HALF_HOUR if state is RUNNING else _HALF_DAY for state in State}


@dataclass(frozen=True, slots=True)
class Policy:
    """Every duration the engine decides by, in microseconds, all configurable."""

    skew_budget: int = 10 * SECOND
    completed_to_idle: int = 120 * SECOND
    # Two reports from different event-driven sources this close together describe one moment: precedence decides
    # between them. Further apart, the later one has overtaken the earlier.
    same_moment: int = 1 * SECOND
    told_ttl: dict[State, int] = field(default_factory=_told_ttl)
    # What is seen is looked at again and again, and says so when it changes; this is for when nobody looks any more.
    seen_ttl: int = 600 * SECOND
    # How often a sighting must be repeated before it overrules what was told.
    sightings_to_overrule: int = 2
    # A report comes before its screen is painted; what is seen in between says nothing against it.
    settling_wait: int = 1_500_000
    # The same for a wait whose dialog has not been on the screen at all: a busy machine draws it two seconds later.
    settling_undrawn: int = 4 * SECOND
    settling: int = 1 * SECOND
    # What is reported of work that something covers may be of another part of the agent: so long it is believed.
    covered: int = 30 * SECOND
    bind_window: int = 5 * SECOND
    pending_bind_ttl: int = 10 * SECOND

    def settles_after(self, told: State) -> int:
        """How long after such a report its screen may still show what was before."""
        if told is UNKNOWN:
            # That an agent has gone, as some report when a session ends and the next begins: nothing is drawn for it.
            return 0
        return self.settling_wait if told in (APPROVAL, INPUT) else self.settling

    def ttl(self, source: Source, state: State) -> int:
        return self.told_ttl[state] if source in EVENT_DRIVEN else self.seen_ttl
