"""Event envelope v1, and the verdict an adapter reads out of an event.

An envelope is what was reported, by whom and when. A verdict is what it means for the agent's state. The engine
sees both and never the agent's own words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from agtmux.domain.redact import Redacted
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Reason, Source, State
from agtmux.domain.timestamps import Timestamp

MAX_EVENT_BYTES: Final = 1_000_000
MAX_INT64: Final = 2**63 - 1

# What the reconciler may say. Each is about a state agtmux itself holds, so it carries no verdict of its own.
STALE_DETECTED: Final = "stale_detected"
TARGET_HEALTH_CHANGED: Final = "target_health_changed"
DEMOTION_DUE: Final = "demotion_due"


LONGEST_SUMMARY: Final = 200
LONGEST_DETAIL: Final = 2_000


@dataclass(frozen=True, slots=True)
class Attention:
    """What a waiting agent asks of its user."""

    kind: str
    summary: Redacted
    detail: Redacted | None = None
    options: tuple[Redacted, ...] = ()


def shortened(text: Redacted, limit: int) -> Redacted:
    """With a sign that it goes on: nobody is to say yes to more than is shown without knowing it."""
    return text if len(text) <= limit else Redacted(f"{text[: limit - 1]}…")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one event says about the agent."""

    state: State
    reason_code: str
    confidence: Confidence = Confidence.HIGH
    attention: Attention | None = None
    # What was seen, in a line for people: the hook's name, the line on the screen.
    note: Redacted | None = None
    # For what is seen again and again: since when it has been the same, and how often it was looked at.
    held_since: Timestamp | None = None
    repeats: int = 1
    # Of a dialog: it was still there after a report of work had time to end it, so others like that do not either.
    outlives_reports: bool = False
    # The fingerprint of the dialog that is on the screen.
    dialog: str | None = None

    @property
    def is_unsupported(self) -> bool:
        return self.state is State.UNKNOWN and self.reason_code == Reason.UNSUPPORTED_SIGNAL


@dataclass(frozen=True, slots=True)
class Event:
    event_id: str
    event_type: str
    source: Source
    dedupe_key: str
    event_time: Timestamp
    ingested_at: Timestamp
    source_event_id: str | None = None
    source_seq: int | None = None
    runtime_id: RuntimeId | None = None
    target_id: TargetId | None = None
    pane_id: PaneId | None = None
    # Hints for binding, when `runtime_id` is absent.
    pid: int | None = None
    start_hint: Timestamp | None = None
    agent_type: str | None = None
    # The processes it came from, where that has to be proven: the agent's own must be among them.
    ancestors: frozenset[int] | None = None
    # The process of the tmux server the event came from.
    server_pid: int | None = None
    raw_payload: Redacted | None = None
    action_id: str | None = None
    # None: the event is known and says nothing about the state.
    verdict: Verdict | None = None
    # A guard for events that are about a state seen earlier: it applies only to that version.
    if_state_version: int | None = None
    # The file that the agent says it writes its conversation to. It is not kept: what follows it looks for itself.
    transcript: str = ""


def derive_dedupe_key(source: str, source_event_id: str | None, event_type: str, payload: bytes) -> str:
    payload_hash = hashlib.sha256(payload).hexdigest()
    joined = f"{source}:{source_event_id or ''}:{payload_hash}:{event_type.strip().lower()}"
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
