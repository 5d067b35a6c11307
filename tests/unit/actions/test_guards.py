"""What must still be true when an action is carried out."""

from dataclasses import replace

import pytest

from agtmux.actions.guards import SNAPSHOT_TTL, Conditions, Snapshot, check_conditions, check_unmoved
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from unit.builders import PANE, T0, a_record, a_runtime, after


def a_snapshot(record: Record) -> Snapshot:
    runtime_id, version = record.runtime.runtime_id, record.row.state_version
    return Snapshot("s", "a", HOST, PANE, runtime_id, version, T0, Timestamp(T0 + SNAPSHOT_TTL), "n")


def refusal(record: Record | None, *, now: float = 1, needs_state: bool = True, force_stale: bool = False) -> str:
    snapshot = a_snapshot(a_record())
    try:
        check_unmoved(snapshot, record, after(now), needs_state=needs_state, force_stale=force_stale)
    except AgtmuxError as error:
        return str(error.code)
    return ""


def moved_on() -> Record:
    record = a_record()
    return replace(record, row=replace(record.row, state_version=record.row.state_version + 1))


def test_who_was_meant_and_has_not_moved_is_let_pass() -> None:
    record = a_record()
    assert check_unmoved(a_snapshot(record), record, after(1), needs_state=True, force_stale=False) is record


@pytest.mark.parametrize("needs_state", [True, False])
@pytest.mark.parametrize("force_stale", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        None,
        a_record(a_runtime(epoch=2)),
        a_record(a_runtime("codex")),
        a_record(replace(a_runtime(), ended_at=after(0.5))),
    ],
    ids=["gone", "another epoch", "another agent", "ended"],
)
def test_nobody_else_is_ever_let_pass(other: Record | None, needs_state: bool, force_stale: bool) -> None:
    assert refusal(other, needs_state=needs_state, force_stale=force_stale) == "E_RUNTIME_STALE"


def test_who_has_moved_on_is_refused_unless_that_does_not_matter_or_is_forced() -> None:
    assert refusal(moved_on()) == "E_PRECONDITION_FAILED"
    assert refusal(moved_on(), needs_state=False) == ""
    assert refusal(moved_on(), force_stale=True) == ""


@pytest.mark.parametrize(("now", "code"), [(0, ""), (30, ""), (30.000001, "E_SNAPSHOT_EXPIRED")])
@pytest.mark.parametrize("force_stale", [True, False])
def test_a_snapshot_is_good_for_thirty_seconds(now: float, code: str, force_stale: bool) -> None:
    assert refusal(a_record(), now=now, force_stale=force_stale) == code


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        (Conditions(), None),
        (Conditions(if_runtime=a_runtime().runtime_id), None),
        (Conditions(if_runtime="0" * 64), ErrorCode.RUNTIME_STALE),
        (Conditions(if_state=State.UNKNOWN), None),
        (Conditions(if_state=State.IDLE), ErrorCode.PRECONDITION_FAILED),
        (Conditions(if_updated_within=10 * SECOND), None),
        (Conditions(if_updated_within=9 * SECOND), ErrorCode.PRECONDITION_FAILED),
        # Forcing never weakens what the caller asked for.
        (Conditions(if_state=State.IDLE, force_stale=True), ErrorCode.PRECONDITION_FAILED),
    ],
)
def test_the_callers_conditions_are_checked_too(conditions: Conditions, code: ErrorCode | None) -> None:
    if code is None:
        check_conditions(a_record(), conditions, after(10))
        return
    with pytest.raises(AgtmuxError) as refused:
        check_conditions(a_record(), conditions, after(10))
    assert refused.value.code is code
    assert set(refused.value.details) == {"expected", "found"}
