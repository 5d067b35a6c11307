"""What must still be true when an action is carried out: pure checks, each with its code and what has changed.

An action means the agent that was in the pane when its snapshot was made. Whoever else is there by now is refused,
whatever the caller says; `force_stale` lets pass only that the same agent has moved on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record

SNAPSHOT_TTL: Final = 30 * SECOND


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the caller wants to be true beside what is always checked."""

    if_runtime: str | None = None
    if_state: State | None = None
    # As the caller last saw it: nothing about its state has changed since.
    if_state_version: int | None = None
    # Microseconds.
    if_updated_within: int | None = None
    force_stale: bool = False


NO_CONDITIONS: Final = Conditions()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Who was in the pane, and in which state, when the action was asked for."""

    snapshot_id: str
    action_id: str
    target_id: TargetId
    pane_id: PaneId
    runtime_id: RuntimeId
    state_version: int
    observed_at: Timestamp
    expires_at: Timestamp
    nonce: str


class StillThere(Protocol):
    """Who is in the pane now, if that is who was meant; raises otherwise. For the last moment before each step that
    cannot be taken back. `may_have_moved` lets pass that its state has changed, within a step that has begun."""

    def __call__(self, *, may_have_moved: bool = False) -> Record: ...


def check_conditions(record: Record, conditions: Conditions, now: Timestamp) -> None:
    """The caller's own conditions."""
    runtime, row = record.runtime, record.row
    if conditions.if_runtime is not None and conditions.if_runtime != runtime.runtime_id:
        raise AgtmuxError(
            ErrorCode.RUNTIME_STALE,
            "another agent, or none, is in that pane now; list the panes again",
            {"expected": conditions.if_runtime, "found": runtime.runtime_id},
        )
    if conditions.if_state is not None and conditions.if_state is not row.state:
        raise _moved(f"it is {row.state} and not {conditions.if_state}", conditions.if_state, row.state)
    version = conditions.if_state_version
    if version is not None and version != row.state_version:
        raise _moved(f"it is {row.state} now, and something has changed since you looked", version, row.state_version)
    within = conditions.if_updated_within
    if within is not None and now - row.updated_at > within:
        age = (now - row.updated_at) // SECOND
        raise _moved(f"its state is {age} s old, and older than you allow", within // SECOND, age)


def check_unmoved(
    snapshot: Snapshot, record: Record | None, now: Timestamp, *, needs_state: bool, force_stale: bool
) -> Record:
    """Who is there now, if that is who was meant; called at the last moment before anything is done."""
    if now > snapshot.expires_at:
        raise AgtmuxError(
            ErrorCode.SNAPSHOT_EXPIRED,
            f"this was asked for more than {SNAPSHOT_TTL // SECOND} s ago and not done yet; ask again",
        )
    if record is None or record.runtime.runtime_id != snapshot.runtime_id or record.runtime.ended_at is not None:
        raise AgtmuxError(
            ErrorCode.RUNTIME_STALE,
            "what was in that pane has ended; list the panes again",
            {"expected": snapshot.runtime_id, "found": None if record is None else record.runtime.runtime_id},
        )
    if needs_state and not force_stale and record.row.state_version != snapshot.state_version:
        raise _moved(
            f"its state or its request has changed meanwhile, and it is {record.row.state} now",
            snapshot.state_version,
            record.row.state_version,
        )
    return record


def _moved(what: str, expected: object, found: object) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.PRECONDITION_FAILED, f"{what}; look at it and try again", {"expected": expected, "found": found}
    )
