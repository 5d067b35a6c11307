"""The daemon's time never goes back, never stands still, and follows the wall clock forward."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.timestamps import Timestamp
from unit.builders import T0, FakeTime

HOUR = 3600 * SECOND


def test_it_tells_the_wall_clocks_time() -> None:
    machine = FakeTime()
    clock = machine.clock()
    machine.pass_by(5)
    assert clock.now() == T0 + 5 * SECOND
    assert (clock.jumps, clock.lead) == (0, 0)


def test_no_two_readings_share_a_moment() -> None:
    clock = FakeTime().clock()
    readings = [clock.now() for _ in range(1_000)]
    assert readings == sorted(set(readings))


def test_a_wall_clock_set_back_leaves_it_ahead_at_the_real_rate() -> None:
    machine = FakeTime()
    clock = machine.clock()
    before = clock.now()
    machine.wall -= HOUR
    machine.pass_by(2)
    assert clock.now() == before + 2 * SECOND
    machine.pass_by(3)
    assert clock.now() == before + 5 * SECOND
    assert (clock.jumps, clock.lead) == (1, HOUR)


def test_a_wall_clock_set_forward_is_followed() -> None:
    machine = FakeTime()
    clock = machine.clock()
    clock.now()
    machine.wall += HOUR
    assert clock.now() == T0 + HOUR
    machine.pass_by(1)
    assert clock.now() == T0 + HOUR + SECOND
    assert (clock.jumps, clock.lead) == (1, 0)


def test_a_wall_clock_set_back_and_right_again_leaves_no_trace_but_the_count() -> None:
    machine = FakeTime()
    clock = machine.clock()
    machine.wall -= HOUR
    clock.now()
    machine.wall += HOUR
    machine.pass_by(1)
    assert clock.now() == T0 + SECOND
    assert (clock.jumps, clock.lead) == (2, 0)


def test_the_wall_clock_catching_up_from_behind_is_followed_from_there() -> None:
    machine = FakeTime()
    clock = machine.clock()
    machine.wall -= HOUR
    clock.now()
    machine.wall += 3 * HOUR
    assert clock.now() == T0 + 2 * HOUR
    assert clock.lead == 0


def test_sleep_is_time_that_passed_and_no_jump() -> None:
    machine = FakeTime()
    clock = machine.clock()
    clock.now()
    machine.pass_by(8 * 3600)
    assert clock.now() == T0 + 8 * HOUR
    assert clock.jumps == 0


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_jump_is_counted_once_however_often_the_clock_is_read(step: int) -> None:
    machine = FakeTime()
    clock = machine.clock()
    clock.now()
    machine.wall += step
    for _ in range(100):
        clock.now()
        machine.pass_by(0.1)
    assert clock.jumps == 1


@pytest.mark.parametrize("step", [SECOND, -SECOND])
def test_the_slewing_of_a_clock_that_is_kept_right_is_no_jump(step: int) -> None:
    machine = FakeTime()
    clock = machine.clock()
    machine.wall += step
    clock.now()
    assert clock.jumps == 0


def test_a_restart_goes_on_after_what_the_last_daemon_wrote() -> None:
    """The wall clock was set back while no daemon was there to notice."""
    machine = FakeTime()
    clock = machine.clock()
    written = Timestamp(T0 + HOUR)
    clock.start_after(written)
    first = clock.now()
    assert first == written + 1
    machine.pass_by(5)
    assert clock.now() == first + 5 * SECOND
    assert clock.jumps == 1
    assert clock.lead == HOUR + 1


def test_a_restart_as_it_should_be_changes_nothing() -> None:
    machine = FakeTime()
    clock = machine.clock()
    clock.start_after(Timestamp(T0 - HOUR))
    assert clock.now() == T0
    assert (clock.jumps, clock.lead) == (0, 0)


def test_a_restart_within_the_same_moment_is_no_jump() -> None:
    clock = FakeTime().clock()
    clock.start_after(Timestamp(T0 + 3))
    assert clock.now() == T0 + 4
    assert clock.jumps == 0


steps = st.tuples(st.sampled_from(["pass", "set"]), st.integers(-5 * HOUR, 5 * HOUR))


@given(st.lists(steps, max_size=20), st.none() | st.integers(-HOUR, HOUR))
@settings(max_examples=100)
def test_whatever_happens_to_the_wall_clock_time_only_grows_and_at_least_at_the_real_rate(moves, written) -> None:
    machine = FakeTime()
    clock = machine.clock()
    if written is not None:
        clock.start_after(Timestamp(T0 + written))
    last = clock.now()
    assert written is None or last > T0 + written
    for kind, amount in moves:
        began = machine.steady
        if kind == "pass":
            machine.pass_by(abs(amount) / SECOND)
        else:
            machine.wall += amount
        now = clock.now()
        assert now > last
        # It may have ticked ahead by one for each reading within the same moment.
        assert now - last >= machine.steady - began - len(moves) - 1
        assert now >= machine.wall
        last = now


def test_the_real_clocks_agree_with_the_systems() -> None:
    clock = Clock()
    assert abs(clock.now() - time.time_ns() // 1000) < SECOND
    assert clock.jumps == 0
