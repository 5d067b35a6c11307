"""Which runtime an event belongs to when it does not say: exactly one that fits every hint, or none."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.domain.runtimes import Runtime
from agtmux.domain.states import Reason
from agtmux.engine.binding import Bound, Dropped, Pending, bind
from unit.builders import POLICY, a_runtime, after, an_event, unbound

TICK = 0.000001
WAITING = unbound(an_event(at=100))


def binding(*active: Runtime, event=WAITING, looked: float | None = None, now: float = 100.0):
    observed_at = None if looked is None else after(looked)
    return bind(event, active, observed_at=observed_at, now=after(now), policy=POLICY)


def test_the_only_runtime_of_the_pane_gets_the_event() -> None:
    assert binding(a_runtime()) == Bound(a_runtime())


def test_two_that_fit_are_one_too_many() -> None:
    assert binding(a_runtime(), a_runtime(epoch=2)) == Dropped(Reason.BIND_AMBIGUOUS)


def test_a_hint_settles_which_of_two_it_is() -> None:
    mine, other = a_runtime(pid=7), a_runtime(pid=8, epoch=2)
    assert binding(other, mine, event=replace(WAITING, pid=7)) == Bound(mine)


@pytest.mark.parametrize(("pid", "fits"), [(None, True), (100, True), (101, False)])
def test_a_pid_must_be_the_runtimes(pid: int | None, fits: bool) -> None:
    assert isinstance(binding(a_runtime(pid=100), event=replace(WAITING, pid=pid)), Bound) is fits


def test_a_runtime_without_a_known_pid_does_not_satisfy_a_pid() -> None:
    assert binding(a_runtime(pid=None), event=replace(WAITING, pid=100)) == Pending()


@pytest.mark.parametrize(("agent_type", "fits"), [(None, True), ("claude", True), ("codex", False)])
def test_an_agents_event_never_goes_to_another_agent_or_to_the_shell(agent_type: str | None, fits: bool) -> None:
    assert isinstance(binding(a_runtime("claude"), event=replace(WAITING, agent_type=agent_type)), Bound) is fits
    if agent_type is not None:
        assert binding(a_runtime("none"), event=replace(WAITING, agent_type=agent_type)) == Pending()


@pytest.mark.parametrize(("seconds", "fits"), [(0, True), (5, True), (-5, True), (5 + TICK, False), (-5 - TICK, False)])
def test_a_start_hint_must_lie_within_the_window(seconds: float, fits: bool) -> None:
    event = replace(WAITING, start_hint=after(seconds))
    assert isinstance(binding(a_runtime(), event=event), Bound) is fits


def test_every_hint_must_fit_not_just_one() -> None:
    event = replace(WAITING, pid=100, agent_type="claude", start_hint=after(6))
    assert binding(a_runtime(pid=100), event=event) == Pending()


def test_an_ended_runtime_is_no_candidate() -> None:
    ended = replace(a_runtime(), ended_at=after(50))
    assert binding(ended) == Pending()
    assert binding(ended, looked=101) == Dropped(Reason.BIND_NO_CANDIDATE)


@pytest.mark.parametrize("looked", [None, 99, 100])
def test_what_nobody_has_looked_for_since_waits(looked: float | None) -> None:
    assert binding(looked=looked) == Pending()


def test_a_look_since_then_that_found_nobody_is_an_answer() -> None:
    assert binding(looked=100 + TICK) == Dropped(Reason.BIND_NO_CANDIDATE)


def test_waiting_ends_after_its_time_and_not_before() -> None:
    assert binding(now=110) == Pending()
    assert binding(now=110 + TICK) == Dropped(Reason.BIND_TTL_EXPIRED)


def test_a_runtime_that_shows_up_late_is_still_the_right_one() -> None:
    """Time is up only for what fits nobody: what can be bound safely is never thrown away."""
    assert binding(a_runtime(), now=500) == Bound(a_runtime())


@given(
    st.lists(st.builds(a_runtime, st.sampled_from(["claude", "none"]), st.none() | st.integers(1, 2)), max_size=3),
    st.none() | st.integers(1, 2),
    st.none() | st.sampled_from([-6, 0, 6]).map(after),
    st.none() | st.sampled_from([99, 101]),
    st.sampled_from([100, 200]),
)
@settings(max_examples=100)
def test_there_are_three_reasons_to_drop_and_no_other_ends(active, pid, start_hint, looked, now) -> None:
    found = binding(*active, event=replace(WAITING, pid=pid, start_hint=start_hint), looked=looked, now=now)
    if isinstance(found, Bound):
        assert (
            sum(binding(each, event=replace(WAITING, pid=pid, start_hint=start_hint)) != Pending() for each in active)
            == 1
        )
    elif isinstance(found, Dropped):
        assert found.reason in {Reason.BIND_AMBIGUOUS, Reason.BIND_NO_CANDIDATE, Reason.BIND_TTL_EXPIRED}
    else:
        assert looked != 101
        assert now == 100


@pytest.mark.parametrize(("ancestors", "fits"), [(None, True), ({7, 100, 1}, True), ({7, 101}, False), (set(), False)])
def test_who_has_to_prove_where_an_event_came_from_must_be_among_its_ancestors(ancestors, fits: bool) -> None:
    event = replace(WAITING, ancestors=None if ancestors is None else frozenset(ancestors))
    assert isinstance(binding(a_runtime(pid=100), event=event), Bound) is fits
    if ancestors is not None:
        assert binding(a_runtime(pid=None), event=event) == Pending()
