"""Hypothesis strategies for event histories: everything that order, freshness and arbitration depend on, mixed."""

from __future__ import annotations

from hypothesis import strategies as st

from agtmux.domain.durations import SECOND
from agtmux.domain.events import STALE_DETECTED, Event, Verdict
from agtmux.domain.states import EXTERNAL_SOURCES, Confidence, Source, State
from agtmux.domain.timestamps import Timestamp
from unit.builders import a_runtime, after, an_attention, unsupported

# Around the skew budget of 10 s, on both sides of both edges, and far beyond it.
SKEWS = [
    0,
    1,
    -1,
    10 * SECOND,
    -10 * SECOND,
    10 * SECOND + 1,
    -10 * SECOND - 1,
    3600 * SECOND,
    -3600 * SECOND,
]
# Few, so that equal times are common; the last three are around a poller's 30 s and a completed turn's 120 s.
MOMENTS = [0, 0.000001, 0.5, 1, 1.000001, 5, 30, 120, 125]


@st.composite
def verdicts(draw: st.DrawFn, states: list[State]) -> Verdict:
    if draw(st.integers(0, 6)) == 0:
        return unsupported()
    return Verdict(
        state=draw(st.sampled_from(states)),
        reason_code=draw(st.sampled_from(["one", "another"])),
        confidence=draw(st.sampled_from(list(Confidence))),
        attention=draw(st.sampled_from([None, an_attention("this?"), an_attention("that?")])),
        held_since=draw(st.none() | st.sampled_from(MOMENTS).map(after)),
        repeats=draw(st.integers(1, 3)),
    )


@st.composite
def histories(draw: st.DrawFn, max_size: int = 12) -> list[Event]:
    """Events of one runtime, each once, as different sources with different clocks would report them."""
    size = draw(st.integers(1, max_size))
    numbered = draw(st.sampled_from([frozenset(), frozenset({Source.HOOK}), frozenset(EXTERNAL_SOURCES)]))
    # Two or three states at a time: sources that agree, or flatly contradict each other, are what is interesting.
    states = draw(st.lists(st.sampled_from(list(State)), min_size=1, max_size=3))
    return [_event(draw, number, numbered, states) for number in range(size)]


def _event(draw: st.DrawFn, number: int, numbered: frozenset[Source], states: list[State]) -> Event:
    source = draw(st.sampled_from(list(Source)))
    ours = source is Source.RECONCILER
    ingested_at = after(draw(st.sampled_from(MOMENTS)))
    has_number = not ours and (source in numbered) != (draw(st.integers(0, 4)) == 0)
    return Event(
        # Ids do not follow the order in which events are made up.
        event_id=f"{draw(st.integers(0, 9))}-{number}",
        event_type=STALE_DETECTED if ours else f"type.{number}",
        source=source,
        dedupe_key=f"key-{number}",
        event_time=Timestamp(ingested_at + (0 if ours else draw(st.sampled_from(SKEWS)))),
        ingested_at=ingested_at,
        source_seq=draw(st.integers(-2, 5)) if has_number else None,
        runtime_id=a_runtime().runtime_id,
        verdict=None if ours or draw(st.integers(0, 7)) == 0 else draw(verdicts(states)),
    )


@st.composite
def arrivals(draw: st.DrawFn, max_size: int = 12) -> tuple[list[Event], list[Event]]:
    """Two ways in which the same events may come in, the second with some of them sent again."""
    history = draw(histories(max_size))
    again = draw(st.lists(st.sampled_from(history), max_size=4))
    return draw(st.permutations(history)), draw(st.permutations(history + again))


NOWS = [after(moment) for moment in (126, 140, 245, 1900, 50_000)]
