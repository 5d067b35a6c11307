"""Durations and moments, as people and programs write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.durations import MICROSECONDS, format_age, format_duration, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.timestamps import Timestamp, format_timestamp, parse_timestamp

LONGEST = 3650 * MICROSECONDS["d"]
LATEST = 253_402_300_799_999_999


@given(st.integers(0, LONGEST))
def test_any_duration_is_read_back_as_it_was_written(microseconds: int) -> None:
    assert parse_duration(format_duration(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0s", 0),
        ("500ms", 500_000),
        ("2s", 2_000_000),
        ("1.5s", 1_500_000),
        ("0.25ms", 250),
        ("1h30m", 5_400_000_000),
        ("7d", 604_800_000_000),
        ("1m1us", 60_000_001),
        ("3650d", LONGEST),
    ],
)
def test_a_duration_is_numbers_with_their_units(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "s", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1w", "1.s", ".5s", "1e3s", "1s2", "\u0663s"),
        *("3651d", "1" * 99 + "s", "x" * 10_000),
    ],
)
def test_anything_else_is_a_usage_error_and_never_a_guess(text: str) -> None:
    with pytest.raises(AgtmuxError) as refused:
        parse_duration(text)
    assert refused.value.code is ErrorCode.USAGE
    assert len(refused.value.message) < 200


@given(st.text(max_size=12))
def test_reading_a_duration_never_fails_with_anything_but_our_error(text: str) -> None:
    try:
        assert 0 <= parse_duration(text) <= LONGEST
    except AgtmuxError as error:
        assert error.code is ErrorCode.USAGE


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"), (86_400, "1d"), (1e6, "11d")],
)
def test_an_age_is_one_unit_rounded_down(seconds: float, age: str) -> None:
    assert format_age(round(seconds * 1_000_000)) == age


@given(st.integers(0, LATEST).map(Timestamp))
def test_any_moment_is_read_back_as_it_was_written(moment: Timestamp) -> None:
    text = format_timestamp(moment)
    assert parse_timestamp(text) == moment
    assert len(text) == len("2026-01-31T12:00:00.000000Z")


@given(st.lists(st.integers(0, LATEST), min_size=2).map(sorted))
def test_moments_sort_as_text_as_they_do_in_time(moments: list[int]) -> None:
    texts = [format_timestamp(Timestamp(moment)) for moment in moments]
    assert texts == sorted(texts)


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", "2026-01-31T11:30:00.000-00:30"])
def test_every_offset_means_the_same_moment(text: str) -> None:
    assert format_timestamp(parse_timestamp(text)) == "2026-01-31T12:00:00.000000Z"


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026-01-31", "2026-01-31T12:00:00", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z"),
        *("\ud800", "1" * 99),
    ],
)
def test_what_is_no_moment_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_timestamp(text)


def test_a_moment_out_of_range_is_shown_at_its_edge() -> None:
    assert format_timestamp(Timestamp(-1)) == "1970-01-01T00:00:00.000000Z"
    assert format_timestamp(Timestamp(2**63)) == "9999-12-31T23:59:59.999999Z"
