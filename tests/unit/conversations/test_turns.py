"""A turn that a screen shows is told once, however often it is shown and however it is drawn."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.agents.screen.said import Turn
from agtmux.conversations.turns import Told, as_told, goes_on
from agtmux.conversations.turns import known_part as matched


def known_part(told: list[Told], shown: list[Turn], *, has_news: bool) -> int:
    return matched(told, shown, has_news=has_news)[1]


@settings(max_examples=200, deadline=None)
@given(
    said=st.lists(st.tuples(st.sampled_from(["go on", "again", "stop"]), st.integers(0, 50)), min_size=1, max_size=25),
    shows=st.integers(2, 12),
)
def test_each_turn_is_told_once_as_they_scroll_by(said: list[tuple[str, int]], shows: int):
    turns = [Turn(prompt, f"answer {number} {at}") for at, (prompt, number) in enumerate(said)]
    told: list[Told] = []
    for last in range(1, len(turns) + 1):
        shown = turns[max(last - shows, 0) : last]
        new = shown[known_part(told, shown, has_news=True) :]
        assert [as_told(turn) for turn in new] == [as_told(turns[last - 1])]
        told += [as_told(turn) for turn in new]
        # Looked at again, there is nothing new.
        assert known_part(told, shown, has_news=False) == len(shown)


def test_the_same_said_again_and_again_is_told_as_often_as_it_was():
    same = Turn("go on", "ok")
    told = [as_told(same)] * 5
    # The screen has room for three of them, and one more has come.
    assert known_part(told, [same] * 3, has_news=True) == 2
    assert known_part(told, [same] * 3, has_news=False) == 3


def test_another_width_is_no_news():
    told = [as_told(Turn("one two three", "four five six"))]
    assert known_part(told, [Turn("one two\nthree", "four\nfive six")], has_news=False) == 1


def test_an_answer_that_is_drawn_otherwise_later_is_no_news():
    told = [as_told(Turn("one", "a tool ran with much output"))]
    assert known_part(told, [Turn("one", "a tool ran (hidden)"), Turn("two", "x")], has_news=True) == 1


def test_what_went_on_is_the_same_turn():
    told = [as_told(Turn("one", "first words"))]
    assert known_part(told, [Turn("one", "first words and more")], has_news=True) == 1
    assert goes_on(told[0], Turn("one", "first words and more"))


def test_less_of_it_or_something_else_does_not_go_on():
    told = as_told(Turn("one", "the first words of it"))
    shown = ["the first", "the first words of it", "and the last words of it, which are more", ""]
    assert not [answer for answer in shown if goes_on(told, Turn("one", answer))]


def test_long_answers_that_begin_the_same_are_told_apart():
    first, second = (
        Turn("check", "all is well " * 50 + "at nine o'clock"),
        Turn("check", "all is well " * 50 + "at ten"),
    )
    told = [as_told(first), as_told(second)]
    assert known_part(told, [first, second], has_news=True) == 2


def test_a_secret_is_compared_as_it_is_remembered():
    secret = "ghp_" + "Ab1d" * 9
    told = as_told(Turn(f"use {secret}", f"I use {secret} then"))
    assert secret not in str(told)
    assert known_part([told], [Turn(f"use\n{secret}", f"I use\n{secret} then")], has_news=False) == 1
