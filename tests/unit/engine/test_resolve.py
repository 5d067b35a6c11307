"""From what each source last said to one state: precedence, freshness, demotion, reach, and when time changes it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.durations import SECOND
from agtmux.domain.events import Verdict
from agtmux.domain.states import PRECEDENCE, Confidence, Health, Reason, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.order import OrderKey
from agtmux.engine.resolve import Resolution, Role, Signal, is_stale, next_change, resolve
from agtmux.engine.transitions import EVENT_DRIVEN
from unit.builders import POLICY, a_signal, a_verdict, after, an_attention
from unit.event_strategies import MOMENTS, verdicts

HOOK, NOTIFY, WRAPPER, POLLER = Source.HOOK, Source.NOTIFY, Source.WRAPPER, Source.POLLER
TICK = 0.000001
PAIRS = [(one, other) for one in State for other in State]


def verdict_at(seconds: float, *signals: Signal, health: Health = Health.OK, has_agent: bool = True) -> Resolution:
    return resolve(signals, has_agent=has_agent, health=health, now=after(seconds), policy=POLICY)


def roles(resolution: Resolution) -> dict[Source, Role]:
    return {link.source: link.role for link in resolution.evidence}


def test_precedence_is_the_specs() -> None:
    expected = ["error", "waiting_approval", "waiting_input", "running", "completed", "idle", "unknown"]
    assert sorted(State, key=PRECEDENCE.__getitem__) == expected


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_of_two_reports_of_one_moment_the_more_urgent_counts(one: State, other: State) -> None:
    """Hooks and notify tell of the same moment in no particular order."""
    for earlier, later in ((0, 1), (1, 0), (0, 0)):
        found = verdict_at(2, a_signal(HOOK, one, at=earlier), a_signal(NOTIFY, other, at=later))
        assert found.state is min(one, other, key=PRECEDENCE.__getitem__)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_later_report_overtakes_an_earlier_one(one: State, other: State) -> None:
    found = verdict_at(2, a_signal(HOOK, one, at=0), a_signal(NOTIFY, other, at=1 + TICK))
    assert (found.state, found.source) == (other, NOTIFY)
    assert roles(found) == {NOTIFY: Role.DECIDES, HOOK: Role.OVERTAKEN}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("source", [HOOK, NOTIFY, WRAPPER, POLLER])
def test_a_signal_counts_to_the_last_moment_of_its_time_and_not_beyond(source: Source, state: State) -> None:
    lasts = 600 if source is Source.POLLER else 1_800 if state is State.RUNNING else 43_200
    signal = a_signal(source, state)
    assert verdict_at(lasts, signal).evidence[0].role is Role.DECIDES
    stale = verdict_at(lasts + TICK, signal)
    assert (stale.state, stale.reason_code, stale.confidence) == ("unknown", "stale_signal", "low")
    assert roles(stale) == {source: Role.STALE}


def test_what_is_stale_decides_nothing_beside_what_is_fresh() -> None:
    found = verdict_at(1_900, a_signal(HOOK, "running", at=0), a_signal(POLLER, "idle", at=1_899))
    assert (found.state, found.source) == ("idle", POLLER)
    assert roles(found) == {POLLER: Role.DECIDES, HOOK: Role.STALE}


@pytest.mark.parametrize("state", State)
def test_nothing_is_believed_of_a_target_that_is_down(state: State) -> None:
    found = verdict_at(1, a_signal(HOOK, state), a_signal(POLLER, state), health=Health.DOWN)
    assert (found.state, found.reason_code, found.confidence) == ("unknown", "target_unreachable", "low")
    assert found.attention is None
    assert set(roles(found).values()) == {Role.UNREACHABLE}


def test_a_degraded_target_is_still_believed() -> None:
    assert verdict_at(1, a_signal(HOOK, "running"), health=Health.DEGRADED).state is State.RUNNING


def test_no_evidence_is_unknown_and_never_idle() -> None:
    assert verdict_at(1).state is State.UNKNOWN
    assert verdict_at(1).reason_code == Reason.NO_SIGNAL
    unreadable = a_signal(HOOK, "unknown", reason_code="unsupported_signal")
    assert verdict_at(1, unreadable).reason_code == Reason.UNSUPPORTED_SIGNAL
    assert verdict_at(1, has_agent=False).reason_code == Reason.NO_AGENT


def test_completed_becomes_idle_at_exactly_its_time_by_the_daemons_clock() -> None:
    # The source's clock is ten seconds fast: only when we took it in counts.
    key = OrderKey(True, False, 0, after(10), after(0), "stop")
    signal = Signal(HOOK, "stop", key, a_verdict("completed"))
    assert verdict_at(120 - TICK, signal).state is State.COMPLETED
    idle = verdict_at(120, signal)
    assert (idle.state, idle.reason_code, idle.decided_at) == ("idle", "completed_demoted", after(120))


def test_a_demoted_turn_is_sure_of_itself_and_keeps_its_evidence() -> None:
    idle = verdict_at(500, a_signal(HOOK, "completed"))
    assert (idle.confidence, idle.source) == (Confidence.HIGH, HOOK)
    assert [link.state for link in idle.evidence] == [State.COMPLETED]


def test_screen_may_say_what_the_hook_says_that_it_waits_for() -> None:
    seen = a_signal(POLLER, "waiting_approval", at=1, attention=an_attention("rm -rf /"))
    assert verdict_at(2, a_signal(HOOK, "waiting_approval"), seen).attention == an_attention("rm -rf /")
    other = a_signal(POLLER, "waiting_input", at=1, attention=an_attention("colour?"))
    assert verdict_at(2, a_signal(HOOK, "waiting_approval"), other).attention is None


def test_the_deciding_link_comes_first_and_every_signal_has_one() -> None:
    signals = [a_signal(HOOK, "running"), a_signal(WRAPPER, "idle", at=-5), a_signal(POLLER, "running", at=1)]
    chain = verdict_at(2, *signals).evidence
    assert [link.source for link in chain] == [HOOK, POLLER, WRAPPER]


@st.composite
def signal_sets(draw: st.DrawFn) -> list[Signal]:
    sources = draw(st.lists(st.sampled_from(sorted(EVENT_DRIVEN | {Source.POLLER})), unique=True))
    states = draw(st.lists(st.sampled_from(list(State)), min_size=1, max_size=3))
    signals = []
    for source in sources:
        verdict: Verdict = draw(verdicts(states))
        moment = after(draw(st.sampled_from(MOMENTS)))
        key = OrderKey(not verdict.is_unsupported, False, 0, moment, moment, f"of-{source}")
        signals.append(Signal(source, "type", key, verdict))
    return signals


MOMENTS_TO_ASK = [after(s) for s in (0, 29.9, 30, 35, 60, 119, 120, 244, 245, 1_799, 1_800, 1_925, 43_200, 50_000)]


@given(signal_sets(), st.sampled_from(MOMENTS_TO_ASK), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_nothing_changes_by_itself_before_the_moment_that_next_change_names(signals, now, random) -> None:
    def said(moment: int) -> Resolution:
        return resolve(signals, has_agent=True, health=Health.OK, now=Timestamp(moment), policy=POLICY)

    change = next_change(signals, now, POLICY)
    assert change is None or change > now
    last = change - 1 if change is not None else now + 400_000 * SECOND
    for moment in (last, *(random.randint(now, last) for _ in range(5))):
        assert said(moment) == said(now)


@given(signal_sets(), st.sampled_from(MOMENTS_TO_ASK))
@settings(max_examples=200)
def test_following_next_change_reaches_the_end_of_every_story(signals: list[Signal], now: Timestamp) -> None:
    """Whoever wakes at these moments only, misses nothing, and is soon left to sleep."""
    wakes = 0
    moment = now
    while (change := next_change(signals, moment, POLICY)) is not None:
        assert change > moment
        moment = change
        wakes += 1
    assert wakes <= 2 * len(signals) + 1
    assert all(is_stale(signal, moment, POLICY) for signal in signals)


def test_next_change_is_the_exact_moment_of_a_demotion_and_of_staleness() -> None:
    signal = a_signal(HOOK, "completed")
    assert next_change([signal], after(0), POLICY) == after(120)
    assert next_change([signal], after(120), POLICY) == after(43_200 + TICK)
    assert next_change([signal], after(43_200 + TICK), POLICY) is None
    assert next_change([], after(0), POLICY) is None


@given(signal_sets(), st.sampled_from(MOMENTS_TO_ASK), st.sampled_from(list(Health)), st.booleans())
@settings(max_examples=200)
def test_unknown_always_says_why_and_nothing_stale_is_ever_sure(signals, now, health, has_agent) -> None:
    found = resolve(signals, has_agent=has_agent, health=health, now=now, policy=POLICY)
    assert found.reason_code
    if found.source is None and has_agent:
        assert (found.state, found.confidence) == (State.UNKNOWN, Confidence.LOW)
    if found.source is not None:
        decider = next(signal for signal in signals if signal.source is found.source)
        assert not is_stale(decider, now, POLICY)
        assert not decider.verdict.is_unsupported


def test_every_time_to_live_can_be_configured() -> None:
    policy = replace(POLICY, completed_to_idle=5 * SECOND, seen_ttl=2 * SECOND, told_ttl=dict.fromkeys(State, SECOND))
    assert policy.ttl(HOOK, State.RUNNING) == SECOND
    assert policy.ttl(POLLER, State.RUNNING) == 2 * SECOND
    assert next_change([a_signal(POLLER, "completed")], after(0), policy) == after(2 + TICK)
