"""What time alone may change: a signal grows stale, a finished turn becomes idle, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.durations import SECOND
from agtmux.domain.events import Event
from agtmux.domain.states import Health, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record, apply
from agtmux.engine.resolve import Resolution, Role, Signal, next_change, resolve
from agtmux.engine.transitions import EVENT_DRIVEN, Policy
from unit.builders import POLICY, a_record, a_signal, after, an_event
from unit.event_strategies import arrivals, histories

HOOK, NOTIFY, POLLER = Source.HOOK, Source.NOTIFY, Source.POLLER
# Short and different for each state, so that signals grow stale in every order; the second is the daemon's default.
TTLS = [1, 2, 8, 40, 130, 2_000]
SOONER = (
    after(second + part) for second in (0, 1, 2, 3, 9, 31, 41, 121, 131, 161, 246, 2_200) for part in (-1e-6, 0, 0.5)
)
CLOCK = [*SOONER, after(50_000), after(100_000)]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    if draw(st.booleans()):
        return POLICY
    ttls = {state: draw(st.sampled_from(TTLS)) * SECOND for state in State}
    return replace(
        POLICY,
        told_ttl=ttls,
        seen_ttl=draw(st.sampled_from(TTLS)) * SECOND,
        completed_to_idle=draw(st.sampled_from(TTLS)) * SECOND,
    )


def decided(signals: dict[Source, Signal], now: Timestamp, policy: Policy) -> Resolution:
    return resolve(signals.values(), has_agent=True, health=Health.OK, now=now, policy=policy)


def replay(events: list[Event], now: Timestamp, policy: Policy) -> Record:
    record = a_record(policy=policy)
    known: set[tuple[str, str]] = set()
    for event in events:
        is_known = (event.source, event.dedupe_key) in known
        known.add((event.source, event.dedupe_key))
        record, _ = apply(record, event, duplicate=is_known, health=Health.OK, now=now, policy=policy)
    return record


@given(histories(), policies())
@settings(max_examples=300)
def test_without_new_evidence_a_state_only_becomes_unknown_or_idle_after_completed(
    history: list[Event], policy: Policy
) -> None:
    signals = dict(replay(history, CLOCK[0], policy).signals)
    before = decided(signals, CLOCK[0], policy)
    for now in CLOCK[1:]:
        found = decided(signals, now, policy)
        allowed = {before.state, State.UNKNOWN} | ({State.IDLE} if before.state is State.COMPLETED else set())
        assert found.state in allowed, f"{before.state} became {found.state} by {now - CLOCK[0]} µs"
        before = found


@st.composite
def reports(draw: st.DrawFn) -> tuple[list[Event], Policy, Timestamp]:
    """Reports of several sources, how long each state counts, and a moment at which some have grown stale."""
    states = draw(st.lists(st.sampled_from(list(State)), min_size=2, max_size=6))
    events = [
        an_event(
            f"e{number}",
            state,
            at=draw(st.integers(0, 60)) / 2,
            source=draw(st.sampled_from(sorted(EVENT_DRIVEN))),
            source_seq=draw(st.none() | st.integers(0, 5)),
        )
        for number, state in enumerate(states)
    ]
    ttls = {state: draw(st.sampled_from([2, 8, 40])) * SECOND for state in State}
    return draw(st.permutations(events)), replace(POLICY, told_ttl=ttls), after(draw(st.integers(0, 80)))


@given(reports())
@settings(max_examples=300)
def test_a_report_that_another_superseded_never_decides(drawn: tuple[list[Event], Policy, Timestamp]) -> None:
    """Stale or not: the deciding report is never older than the moment of the newest one."""
    events, policy, now = drawn
    signals = dict(replay(events, now, policy).signals)
    found = decided(signals, now, policy)
    if found.source is not None:
        newest = max(each.seen_at for each in signals.values())
        assert newest - signals[found.source].seen_at <= policy.same_moment
        assert found.evidence[0].role is Role.DECIDES and found.evidence[0].source is found.source


@given(arrivals(), policies(), st.sampled_from(CLOCK))
@settings(max_examples=150)
def test_replays_in_any_order_converge_whatever_grows_stale(
    both: tuple[list[Event], list[Event]], policy: Policy, now: Timestamp
) -> None:
    one, other = (replace(replay(events, now, policy).row, state_version=0, updated_at=Timestamp(0)) for events in both)
    assert one == other


@given(histories(), policies(), st.sampled_from(CLOCK))
@settings(max_examples=100)
def test_next_change_names_every_moment_at_which_a_state_changes(
    history: list[Event], policy: Policy, now: Timestamp
) -> None:
    signals = dict(replay(history, now, policy).signals)
    change = next_change(signals.values(), now, policy)
    for later in (each for each in CLOCK if each > now and (change is None or each < change)):
        assert decided(signals, later, policy) == decided(signals, now, policy)


@pytest.mark.parametrize(
    ("first", "second"), [("waiting_approval", "running"), ("completed", "running"), ("error", "idle")]
)
def test_a_superseded_report_does_not_return_when_the_later_one_grows_stale(first: str, second: str) -> None:
    """An approval was asked for, then a tool ran, then nothing was heard for longer than a tool may be silent."""
    policy = replace(POLICY, told_ttl={**POLICY.told_ttl, State(second): 8 * SECOND})
    signals = {NOTIFY: a_signal(NOTIFY, first, at=0), HOOK: a_signal(HOOK, second, at=3)}
    assert decided(signals, after(11), policy).state == second
    found = decided(signals, after(12), policy)
    assert (found.state, found.reason_code, found.confidence) == ("unknown", "stale_signal", "low")
    assert {link.source: link.role for link in found.evidence} == {HOOK: Role.STALE, NOTIFY: Role.OVERTAKEN}


def test_an_overruled_report_does_not_return_when_the_screen_was_not_read_again() -> None:
    seen = a_signal(POLLER, "idle", at=5, repeats=2)
    signals = {HOOK: a_signal(HOOK, "running", at=0), POLLER: seen}
    assert decided(signals, after(600), POLICY).state is State.IDLE
    assert decided(signals, after(606), POLICY).reason_code == "stale_signal"


def test_precedence_within_one_moment_does_not_lapse() -> None:
    """`waiting_approval` for one second and then `running`, with nothing heard in between, would be a flip."""
    signals = {NOTIFY: a_signal(NOTIFY, "waiting_approval", at=0), HOOK: a_signal(HOOK, "running", at=0.5)}
    for seconds in (0.6, 1.4, 1.6, 60, 40_000):
        assert decided(signals, after(seconds), POLICY).state is State.WAITING_APPROVAL
    signals[HOOK] = a_signal(HOOK, "running", at=1.1)
    assert decided(signals, after(1.1), POLICY).state is State.RUNNING


def test_a_fresh_signal_that_says_the_same_carries_the_state_on() -> None:
    signals = {HOOK: a_signal(HOOK, "running", at=0), POLLER: a_signal(POLLER, "running", at=1_700)}
    assert decided(signals, after(1_900), POLICY).source is POLLER
    assert decided(signals, after(1_900), POLICY).state is State.RUNNING
