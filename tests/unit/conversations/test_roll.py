"""Screens that are put together are what was written: no line twice, none missing, whatever is drawn anew."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.conversations import roll


def screen(lines: list[str], height: int) -> list[str]:
    return lines[-height:]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000), height=st.integers(8, 40), words=st.integers(20, 400))
def test_what_scrolls_by_is_told_whole(seed: int, height: int, words: int):
    chance = random.Random(seed)
    # Blank lines and lines that come again and again are among them, but never fill a screen.
    written: list[str] = []
    known: list[str] = []
    for number in range(words):
        written.append(chance.choice(["", f"line {number}", f"line {number}", f"line {number}", "the same"]))
        written.append(f"own {number}")
        if len(written) - len(known) >= chance.randint(1, height - 6):
            # Below what is written something turns, and is drawn over at the next look.
            known = roll.add(known, [*screen(written, height - 1), f"  … {number}"])[:-1]
    known = roll.add(known, screen(written, height))
    assert known[-len(written) :] == written[-roll.MOST_LINES :]
    assert roll.GAP not in known


def test_a_line_that_is_written_further_takes_the_place_of_what_it_was():
    known = roll.add([], ["> ask", "", "● The ans"])
    known = roll.add(known, ["> ask", "", "● The answer", "  goes on"])
    assert known == ["> ask", "", "● The answer", "  goes on"]


def test_a_screen_that_shares_nothing_is_a_gap():
    known = roll.add(["one", "two", "three"], ["seven", "eight"])
    assert known == ["one", "two", "three", roll.GAP, "seven", "eight"]


def test_what_was_cleared_stays_known():
    assert roll.add(["one", "two"], []) == ["one", "two"]


def test_it_never_grows_without_end():
    known: list[str] = []
    for number in range(400):
        known = roll.add(known, [f"{each}" for each in range(number * 20, number * 20 + 30)])
    assert len(known) == roll.MOST_LINES
    assert known[-1] == str(399 * 20 + 29)


def test_a_banner_that_is_drawn_smaller_doubles_nothing():
    banner = [f"welcome {number}" for number in range(12)]
    first = ["> one", "  more of it", "⏺ an answer", "", "✻ done"]
    second = ["> two", "⏺ another"]
    smaller = [f"at work {number}" for number in range(10)]
    known = roll.add(banner + first, smaller + first + second)
    assert known == [*banner, *first, *second]
    assert roll.add(known, smaller + first + second) == known


def test_a_prompt_that_stays_at_the_top_takes_nothing_away():
    lines = [f"line {number}" for number in range(30)]
    known = roll.add(lines[:20], ["> what was asked", *lines[6:24]])
    known = roll.add(known, ["> what was asked", *lines[11:30]])
    assert known == lines
