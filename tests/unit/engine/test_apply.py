"""One event applied to one runtime: duplicates, order, dead runtimes, guards, versions."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.events import DEMOTION_DUE, MAX_INT64, STALE_DETECTED, TARGET_HEALTH_CHANGED, Event
from agtmux.domain.states import EXTERNAL_SOURCES, Health, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import KEPT, Outcome, Record, apply, begin, settle
from unit.builders import (
    POLICY,
    a_record,
    a_runtime,
    a_verdict,
    after,
    an_attention,
    an_event,
    unsupported,
)
from unit.event_strategies import SKEWS, histories

STATES = [state for state in State if state is not State.UNKNOWN]


def put(record: Record, event: Event, *, at: float, duplicate: bool = False, health: Health = Health.OK):
    return apply(record, event, duplicate=duplicate, health=health, now=after(at), policy=POLICY)


def ours(event_type: str, version: int | None = None, *, at: float) -> Event:
    return an_event(
        f"ours-{at}", None, source=Source.RECONCILER, event_type=event_type, if_state_version=version, at=at
    )


@given(histories(max_size=4), st.sampled_from(["ended", "another"]))
@settings(max_examples=100)
def test_events_of_a_dead_runtime_change_nothing(history: list[Event], how: str) -> None:
    alive = a_record()
    for event in history[:-1]:
        alive, _ = put(alive, event, at=200)
    last = history[-1]
    if how == "ended":
        alive = replace(alive, runtime=replace(alive.runtime, ended_at=after(150)))
    else:
        last = replace(last, runtime_id=a_runtime(epoch=2).runtime_id)
    unchanged, outcome = put(alive, last, at=201)
    assert unchanged is alive
    assert outcome in (Outcome.STALE_RUNTIME, Outcome.SUPERSEDED)


def test_an_event_that_names_no_runtime_is_not_applied() -> None:
    record = a_record()
    assert put(record, an_event(runtime_id=None), at=1) == (record, Outcome.STALE_RUNTIME)


@given(histories(max_size=5))
@settings(max_examples=50)
def test_a_duplicate_changes_nothing_whatever_it_says(history: list[Event]) -> None:
    record = a_record()
    for event in history:
        assert put(record, event, at=1, duplicate=True) == (record, Outcome.DUPLICATE)
        record, _ = put(record, event, at=1)


OTHERS = [(one, other) for one in sorted(EXTERNAL_SOURCES) for other in sorted(EXTERNAL_SOURCES) if one is not other]


@pytest.mark.parametrize(("greedy", "other"), OTHERS)
@given(
    seq=st.none() | st.sampled_from([0, 7, MAX_INT64]),
    skew=st.sampled_from(SKEWS),
    count=st.integers(1, 4),
    seq_of_other=st.none() | st.sampled_from([-MAX_INT64 - 1, 0]),
)
@settings(max_examples=10)
def test_no_source_can_starve_another(greedy, other, seq, skew, count, seq_of_other) -> None:
    """However far one source's cursor has come, by number or by time, a newer event of another is applied."""
    record = a_record()
    for number in range(count):
        record, _ = put(
            record,
            an_event(
                f"g{number}",
                source=greedy,
                source_seq=seq,
                at=number,
                event_time=Timestamp(after(number) + skew),
                verdict=a_verdict("running"),
            ),
            at=number,
        )
    newer = an_event("z", source=other, source_seq=seq_of_other, at=10, verdict=a_verdict("running", "newer"))
    record, outcome = put(record, newer, at=10)
    assert outcome is Outcome.APPLIED
    assert record.cursors[other].event_id == "z"
    assert record.signals[other].verdict.reason_code == "newer"


def test_the_daemons_own_events_never_hold_up_a_source() -> None:
    record, _ = put(a_record(), ours(STALE_DETECTED, at=1_000), at=1_000)
    record, outcome = put(record, an_event("e1", "running", at=1), at=1_001)
    assert (outcome, record.row.state) == (Outcome.APPLIED, State.RUNNING)


def test_what_is_late_is_superseded_and_still_kept() -> None:
    record, _ = put(a_record(), an_event("e2", "completed", at=2), at=2)
    unchanged, outcome = put(record, an_event("e1", "running", at=1), at=3)
    assert unchanged is record
    assert outcome is Outcome.SUPERSEDED
    assert frozenset({Outcome.APPLIED, Outcome.RECORDED, Outcome.SUPERSEDED}) == KEPT


def test_completed_is_demoted_when_it_is_due_and_still_the_same_state() -> None:
    record, _ = put(a_record(), an_event("stop", "completed", at=0), at=0)
    due = ours(DEMOTION_DUE, record.row.state_version, at=120)
    demoted, outcome = put(record, due, at=120)
    assert outcome is Outcome.APPLIED
    assert (demoted.row.state, demoted.row.reason_code) == (State.IDLE, "completed_demoted")
    assert demoted.row.state_version == record.row.state_version + 1
    assert demoted.row.updated_at == after(120)


def test_a_reminder_that_comes_early_changes_nothing() -> None:
    record, _ = put(a_record(), an_event("stop", "completed", at=0), at=0)
    early, outcome = put(record, ours(DEMOTION_DUE, record.row.state_version, at=119), at=119.999999)
    assert outcome is Outcome.APPLIED
    assert early.row == record.row


def test_a_demotion_of_an_outdated_version_does_nothing() -> None:
    first, _ = put(a_record(), an_event("stop-1", "completed", at=0), at=0)
    due = ours(DEMOTION_DUE, first.row.state_version, at=120)
    running, _ = put(first, an_event("prompt", "running", at=119), at=119)
    again, _ = put(running, an_event("stop-2", "completed", at=119.5), at=119.5)
    for record in (running, again):
        assert put(record, due, at=500) == (record, Outcome.STATE_MOVED_ON)


def test_a_demotion_meant_for_an_earlier_runtime_does_nothing() -> None:
    earlier, _ = put(a_record(), an_event("stop", "completed", at=0), at=0)
    due = ours(DEMOTION_DUE, earlier.row.state_version, at=120)
    runtime = a_runtime(epoch=2)
    later = begin(runtime, after_version=0, health=Health.OK, now=after(100), policy=POLICY)
    stop = an_event("stop-2", "completed", at=1, runtime_id=runtime.runtime_id)
    later, _ = put(later, stop, at=100)
    assert later.row.state_version == earlier.row.state_version, "the version alone would let it pass"
    assert put(later, due, at=500) == (later, Outcome.STALE_RUNTIME)


def test_going_out_of_reach_and_back_is_unknown_in_between() -> None:
    record, _ = put(a_record(), an_event("e1", "waiting_approval", at=0), at=0)
    down, _ = put(record, ours(TARGET_HEALTH_CHANGED, at=5), at=5, health=Health.DOWN)
    assert (down.row.state, down.row.reason_code, down.row.confidence) == ("unknown", "target_unreachable", "low")
    assert down.row.source is None
    back, _ = put(down, ours(TARGET_HEALTH_CHANGED, at=6), at=6)
    assert back.row.state == "waiting_approval"
    assert back.row.state_version == record.row.state_version + 2


def test_silence_turns_into_unknown_when_somebody_says_so() -> None:
    record, _ = put(a_record(), an_event("e1", "running", at=0), at=0)
    stale, _ = put(record, ours(STALE_DETECTED, record.row.state_version, at=1_801), at=1_801)
    assert (stale.row.state, stale.row.reason_code) == ("unknown", "stale_signal")
    fresh, _ = put(stale, an_event("e2", "running", at=1_802), at=1_802)
    assert fresh.row.state is State.RUNNING


def test_a_new_question_of_the_same_state_is_a_new_version() -> None:
    """A client that was shown one question must not be able to answer another."""
    first = an_event("e1", verdict=a_verdict("waiting_approval", attention=an_attention("ls")), at=0)
    second = an_event("e2", verdict=a_verdict("waiting_approval", attention=an_attention("rm -rf /")), at=1)
    one, _ = put(a_record(), first, at=0)
    two, _ = put(one, second, at=1)
    assert two.row.state_version == one.row.state_version + 1


def test_more_or_less_sure_of_the_same_is_no_new_version() -> None:
    one, _ = put(a_record(), an_event("e1", "running", at=0), at=0)
    doubt = an_event("e2", "idle", source=Source.POLLER, at=1)
    two, _ = put(one, doubt, at=1)
    assert two.row.confidence == "medium"
    assert two.row.state_version == one.row.state_version


@pytest.mark.parametrize("agent_type", ["claude", "none"])
@pytest.mark.parametrize("health", Health)
def test_a_new_inhabitant_begins_unknown_one_version_on(agent_type: str, health: Health) -> None:
    runtime = a_runtime(agent_type)
    record = begin(runtime, after_version=41, health=health, now=after(3), policy=POLICY)
    reason = "no_agent" if agent_type == "none" else "target_unreachable" if health is Health.DOWN else "no_signal"
    row = record.row
    assert (row.state, row.reason_code, row.state_version, row.updated_at) == ("unknown", reason, 42, after(3))


@pytest.mark.parametrize("state", STATES)
def test_a_pane_without_an_agent_never_shows_a_state(state: State) -> None:
    record = a_record(a_runtime("none"))
    event = an_event(runtime_id=record.runtime.runtime_id, verdict=a_verdict(state))
    assert put(record, event, at=1)[0].row.reason_code == "no_agent"


def test_only_the_deciding_source_names_the_sequence_number() -> None:
    numbered, _ = put(a_record(), an_event("e1", "running", source_seq=0, at=0), at=0)
    assert numbered.row.last_source_seq == 0
    overtaken, _ = put(numbered, an_event("e2", "idle", source=Source.NOTIFY, at=9), at=9)
    assert (overtaken.row.source, overtaken.row.last_source_seq) == (Source.NOTIFY, None)
    assert overtaken.row.last_seen_at == after(9)


def test_settling_again_gives_back_the_very_same_record() -> None:
    record, _ = put(a_record(), an_event(at=0), at=0)
    assert settle(record, health=Health.OK, now=after(1), policy=POLICY) is record


def test_an_unsupported_signal_alone_is_unknown_and_says_so() -> None:
    record, outcome = put(a_record(), an_event(verdict=unsupported()), at=1)
    assert outcome is Outcome.APPLIED
    assert (record.row.state, record.row.reason_code) == ("unknown", "unsupported_signal")
