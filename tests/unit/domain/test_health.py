"""A target is degraded at the first failure, down after three close together, well again after two successes."""

from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.durations import SECOND
from agtmux.domain.health import HealthPolicy, HealthRecord
from agtmux.domain.states import Health
from agtmux.domain.timestamps import Timestamp

POLICY = HealthPolicy()


def after(*looks: float | None) -> Health:
    """Looks that failed, each at its second, and None for one that succeeded."""
    record = HealthRecord()
    for look in looks:
        record = record.succeeded(POLICY) if look is None else record.failed(Timestamp(int(look * SECOND)), POLICY)
    return record.health


def test_the_first_failure_degrades():
    assert after() is Health.OK
    assert after(None, 1) is Health.DEGRADED


def test_three_failures_in_a_row_within_thirty_seconds_are_down():
    assert after(0, 10) is Health.DEGRADED
    assert after(0, 10, 30) is Health.DOWN
    assert after(0, 10, 31) is Health.DEGRADED
    assert after(0, 10, 31, 32) is Health.DOWN


def test_a_success_breaks_the_row():
    assert after(0, 1, None, 2) is Health.DEGRADED
    assert after(0, 1, None, 2, 3, 4) is Health.DOWN


def test_two_successes_in_a_row_are_well_again():
    assert after(0, None) is Health.DEGRADED
    assert after(0, None, None) is Health.OK
    assert after(0, 1, 2, None) is Health.DOWN
    assert after(0, 1, 2, None, 3, None) is Health.DOWN
    assert after(0, 1, 2, None, None) is Health.OK


def test_what_is_down_stays_down_however_seldom_it_is_tried():
    assert after(0, 1, 2, 300, 900) is Health.DOWN


@given(st.lists(st.none() | st.floats(0, 5), max_size=20))
def test_it_is_well_exactly_if_nothing_failed_since_two_successes(pauses: list[float | None]):
    now, looks = 0.0, []
    for pause in pauses:
        now += pause or 0
        looks.append(None if pause is None else now)
    well, row = True, 2
    for look in looks:
        row = row + 1 if look is None else 0
        well = (well and look is None) or row >= 2
    assert (after(*looks) is Health.OK) is well
