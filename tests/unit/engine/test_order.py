"""In which order the events of one source count."""

from hypothesis import given, settings

from agtmux.domain.durations import SECOND
from agtmux.domain.events import Event
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.order import effective_event_time, order_key
from unit.builders import a_verdict, after, an_event, unsupported
from unit.event_strategies import histories

BUDGET = 10 * SECOND


def ordered(*events: Event) -> list[str]:
    return [event.event_id for event in sorted(events, key=lambda each: order_key(each, BUDGET))]


def test_a_sources_own_time_counts_while_its_clock_agrees_with_ours() -> None:
    for skew, trusted in ((0, True), (BUDGET, True), (-BUDGET, True), (BUDGET + 1, False), (-BUDGET - 1, False)):
        event = an_event(event_time=Timestamp(after(0) + skew))
        assert effective_event_time(event, BUDGET) == (event.event_time if trusted else event.ingested_at)


def test_numbers_decide_over_times() -> None:
    late = an_event("late", source_seq=1, at=9)
    early = an_event("early", source_seq=2, at=0)
    assert ordered(late, early) == ["late", "early"]


def test_negative_numbers_and_zero_are_numbers() -> None:
    assert ordered(an_event("a", source_seq=0), an_event("b", source_seq=-5), an_event("c")) == ["c", "b", "a"]


def test_an_unnumbered_event_never_overtakes_a_numbered_one() -> None:
    assert ordered(an_event("numbered", source_seq=-3), an_event("plain", at=1_000)) == ["plain", "numbered"]


def test_without_numbers_the_time_it_happened_then_when_it_came_then_its_id_decide() -> None:
    first = an_event("z", at=5, event_time=after(1))
    second = an_event("y", at=4, event_time=after(2))
    third = an_event("x", at=5, event_time=after(2))
    fourth = an_event("xx", at=5, event_time=after(2))
    assert ordered(fourth, third, second, first) == ["z", "y", "x", "xx"]


def test_equal_numbers_fall_back_to_time() -> None:
    assert ordered(an_event("b", source_seq=1, at=1), an_event("a", source_seq=1, at=2)) == ["b", "a"]


def test_what_cannot_be_read_stands_before_everything_that_can() -> None:
    unreadable = an_event("new", source_seq=99, at=99, verdict=unsupported())
    assert ordered(unreadable, an_event("old")) == ["new", "old"]
    # An unknown with a reason of its own was read very well.
    exited = an_event("exited", at=5, verdict=a_verdict("unknown", "agent_exited"))
    assert ordered(exited, an_event("old")) == ["old", "exited"]


@given(histories())
@settings(max_examples=50)
def test_no_two_events_ever_share_a_place(history: list[Event]) -> None:
    assert len({order_key(event, BUDGET) for event in history}) == len({event.event_id for event in history})
