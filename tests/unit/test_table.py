"""A table fits its terminal, and what an agent asks stays readable as long as anything does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.cli.table import display_width, draw, wrap

HEADS = ("", "STATE", "AGENT", "AGE", "PANE", "ASKS / TITLE")
ROW = ("!", "waiting_approval", "claude", "3s", "demo/storefront/@0/%1", "rm -rf build && make release")


def test_a_wide_terminal_shows_everything():
    assert draw(HEADS, [ROW], colour=False, width=200)[1].endswith("rm -rf build && make release")
    assert draw(HEADS, [ROW], colour=False, width=None) == draw(HEADS, [ROW], colour=False, width=200)


@pytest.mark.parametrize("width", [60, 70, 80])
def test_a_narrow_terminal_still_shows_the_question(width: int):
    assert "rm -rf build" in draw(HEADS, [ROW], colour=False, width=width)[1]


def test_a_narrow_terminal_still_shows_which_pane():
    line = draw(HEADS, [ROW], colour=False, width=60, place=4)[1]
    assert "@0/%1 " in line and "demo/" not in line


@given(st.lists(st.tuples(*[st.text(max_size=30)] * 3), min_size=1, max_size=5), st.integers(1, 200))
def test_no_line_is_wider_than_the_terminal_and_none_holds_a_control_character(rows: list, width: int):
    for line in draw(("A", "B", "C"), rows, colour=False, width=width, place=1):
        assert display_width(line) <= width
        # Marks that keep words in their order take no room, and are ours.
        assert line.replace("\u200e", "").isprintable() or not line


@given(st.text(max_size=200), st.integers(1, 80))
def test_wrapped_text_keeps_its_words_and_fits_where_they_do(text: str, width: int):
    lines = wrap(text, width)
    for line in lines:
        assert line.isprintable() or not line
        assert display_width(line) <= width or " " not in line
    assert " ".join(lines).split() == wrap(text, None)[0].split()
