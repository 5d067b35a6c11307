"""What may be typed: text, and nothing that steers a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agtmux.actions.typing import clean


def test_line_ends_are_newlines_and_what_steers_is_gone():
    assert clean("a\r\nb\rc\n") == "a\nb\nc\n"
    assert clean("\x1b[201~\x00\x07\x7f\x9b31m!\t-") == "[201~31m!\t-"


def test_what_people_write_stays():
    text = "日本語 👩‍💻 é e\u0301 ‮rtl‬ \u00a0 ﷽"
    assert clean(text) == text


@given(st.text())
def test_no_control_character_is_left_and_nothing_else_is_lost(text: str):
    cleaned = clean(text)
    assert not any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in cleaned)
    kept = [char for char in text if unicodedata.category(char) != "Cc"]
    assert [char for char in cleaned if char not in "\n\t"] == kept
    assert clean(cleaned) == cleaned
