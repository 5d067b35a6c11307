"""The same events end at the same rows, in whatever order they arrive and however often."""

from dataclasses import replace
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.events import DEMOTION_DUE, Event
from agtmux.domain.states import Health, Source
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Outcome, Record, StateRow, apply
from unit.builders import POLICY, a_record, a_verdict, after, an_attention, an_event, unsupported
from unit.event_strategies import NOWS, arrivals, histories


def settled(row: StateRow) -> StateRow:
    """What must converge: all but the two columns that tell what this daemon has shown."""
    return replace(row, state_version=0, updated_at=Timestamp(0))


def replay(events: list[Event], now: Timestamp, record: Record | None = None) -> Record:
    record = record or a_record()
    known: set[tuple[str, str]] = set()
    for event in events:
        duplicate = (event.source, event.dedupe_key) in known
        known.add((event.source, event.dedupe_key))
        record, _ = apply(record, event, duplicate=duplicate, health=Health.OK, now=now, policy=POLICY)
    return record


@given(arrivals(), st.sampled_from(NOWS))
@settings(max_examples=400)
def test_any_order_of_arrival_ends_at_the_same_row(both: tuple[list[Event], list[Event]], now: Timestamp) -> None:
    one, other = (replay(events, now) for events in both)
    assert settled(one.row) == settled(other.row)
    assert one.cursors == other.cursors
    assert one.signals == other.signals


@given(histories(max_size=4), st.sampled_from(NOWS))
@settings(max_examples=60)
def test_every_order_of_a_few_events_ends_at_the_same_row(history: list[Event], now: Timestamp) -> None:
    ends = {repr(settled(replay(list(order), now).row)) for order in permutations(history)}
    assert len(ends) == 1


@given(arrivals(), st.sampled_from(NOWS))
@settings(max_examples=200)
def test_a_version_grows_exactly_when_state_reason_or_attention_changed(
    both: tuple[list[Event], list[Event]], now: Timestamp
) -> None:
    record = a_record()
    for event in both[0]:
        before = record.row
        record, outcome = apply(record, event, duplicate=False, health=Health.OK, now=now, policy=POLICY)
        row = record.row
        changed = (before.state, before.reason_code, before.attention) != (row.state, row.reason_code, row.attention)
        assert row.state_version - before.state_version == int(changed)
        assert changed or row.updated_at == before.updated_at
        assert outcome is Outcome.APPLIED or row == before


@given(arrivals(), st.sampled_from(NOWS), st.integers(0, 4))
@settings(max_examples=100)
def test_a_guarded_reminder_of_our_own_never_changes_where_the_row_ends(
    both: tuple[list[Event], list[Event]], now: Timestamp, version: int
) -> None:
    """Whether the guard holds depends on the path, so such an event may not carry anything that stays."""
    due = an_event("due", None, source=Source.RECONCILER, event_type=DEMOTION_DUE, if_state_version=version, at=3.0)
    assert settled(replay([*both[0], due], now).row) == settled(replay([due, *both[1]], now).row)


@given(histories(), st.sampled_from(NOWS))
@settings(max_examples=100)
def test_coming_in_one_by_one_over_time_ends_where_coming_in_at_once_does(history: list[Event], end: Timestamp) -> None:
    record = a_record()
    for event in sorted(history, key=lambda each: each.ingested_at):
        now = max(event.ingested_at, record.row.updated_at)
        record, _ = apply(record, event, duplicate=False, health=Health.OK, now=now, policy=POLICY)
    reminder = an_event("z", None, source=Source.RECONCILER, at=500)
    in_time, at_once = (replay([reminder], end, each) for each in (record, replay(history, end)))
    assert settled(in_time.row) == settled(at_once.row)


def test_the_question_shown_does_not_depend_on_who_spoke_first() -> None:
    """Three sources agree that the agent waits, and the one that decides does not know what for."""
    hook = an_event("hook", "waiting_approval", at=2)
    notify = an_event(
        "notify", source=Source.NOTIFY, at=1, verdict=a_verdict("waiting_approval", attention=an_attention("rm a"))
    )
    poller = an_event(
        "poller", source=Source.POLLER, at=1.5, verdict=a_verdict("waiting_approval", attention=an_attention("rm b"))
    )
    shown = {replay(list(order), after(3)).row.attention for order in permutations([hook, notify, poller])}
    assert shown == {an_attention("rm b")}, "the newest that knows is to be believed"


def test_a_question_of_an_earlier_moment_is_not_shown_for_a_later_one() -> None:
    """The agent waits again, for something else: its last question would be a wrong answer to "what for?"."""
    earlier = an_event(
        "notify", source=Source.NOTIFY, verdict=a_verdict("waiting_approval", attention=an_attention("rm a"))
    )
    later = an_event("hook", "waiting_approval", at=60)
    assert replay([earlier, later], after(61)).row.attention is None


def test_an_unreadable_event_never_hides_a_readable_one() -> None:
    unreadable = an_event("e2", at=5, verdict=unsupported())
    for order in permutations([an_event("e1", "waiting_approval"), unreadable]):
        assert replay(list(order), after(6)).row.state == "waiting_approval"


def test_a_silent_event_is_recorded_and_moves_nothing() -> None:
    before = replay([an_event("e1", at=1)], after(2))
    silent = an_event("e2", None, at=9, source_seq=99)
    after_it, outcome = apply(before, silent, duplicate=False, health=Health.OK, now=after(9), policy=POLICY)
    assert outcome is Outcome.RECORDED
    assert after_it is before
