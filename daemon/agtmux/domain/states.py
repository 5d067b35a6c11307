"""The canonical states, where they come from and how sure they are.

Only vocabulary lives here; what an event does to a state is the engine's business.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """What an agent is doing, in order of precedence: the first is the most urgent."""

    ERROR = "error"
    WAITING_APPROVAL = "waiting_approval"
    WAITING_INPUT = "waiting_input"
    RUNNING = "running"
    COMPLETED = "completed"
    IDLE = "idle"
    UNKNOWN = "unknown"


PRECEDENCE: Final[dict[State, int]] = {state: rank for rank, state in enumerate(State)}

NEEDS_ACTION: Final = frozenset({State.ERROR, State.WAITING_APPROVAL, State.WAITING_INPUT})


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def lowered(self) -> Confidence:
        return Confidence.MEDIUM if self is Confidence.HIGH else Confidence.LOW


class Source(StrEnum):
    """Who reported an event. Each source has a cursor of its own, so that none can starve another."""

    HOOK = "hook"
    NOTIFY = "notify"
    WRAPPER = "wrapper"
    POLLER = "poller"
    # The daemon's own bookkeeping. It is never accepted from outside.
    RECONCILER = "reconciler"


EXTERNAL_SOURCES: Final = frozenset(Source) - {Source.RECONCILER}


class Health(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    DOWN = "down"


class Reason(StrEnum):
    """The reason codes agtmux itself gives. Adapters add their own, in the same snake_case."""

    NO_AGENT = "no_agent"
    NO_SIGNAL = "no_signal"
    # Known from an earlier daemon only: its target has not been looked at since this one started.
    NOT_OBSERVED_YET = "not_observed_yet"
    STALE_SIGNAL = "stale_signal"
    TARGET_UNREACHABLE = "target_unreachable"
    UNSUPPORTED_SIGNAL = "unsupported_signal"
    UNREAD_SCREEN = "unread_screen"
    AGENT_EXITED = "agent_exited"
    COMPLETED_DEMOTED = "completed_demoted"
    INTERRUPTED = "interrupted"
    BIND_NO_CANDIDATE = "bind_no_candidate"
    BIND_AMBIGUOUS = "bind_ambiguous"
    BIND_TTL_EXPIRED = "bind_ttl_expired"
