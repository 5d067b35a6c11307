"""How soon a target that failed is tried again."""

from agtmux.domain.durations import SECOND
from agtmux.domain.limits import Limits


def test_two_quick_retries_then_ever_longer_up_to_a_limit():
    pauses = [Limits().pause(failures) / SECOND for failures in range(1, 9)]
    assert pauses == [0.25, 1, 2, 4, 8, 10, 10, 10]


def test_a_target_that_has_been_down_for_a_year_overflows_nothing():
    assert Limits().pause(10_000_000) == 10 * SECOND


def test_without_retries_it_waits_the_longest_pause():
    assert Limits(retries=()).pause(1) == 10 * SECOND
