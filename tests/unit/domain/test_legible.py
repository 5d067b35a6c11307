"""What others wrote does not steer a terminal, and JSON stays the same JSON."""

import json
import sys

from hypothesis import given
from hypothesis import strategies as st

from agtmux.cli import table, watch
from agtmux.domain.legible import LEFT_TO_RIGHT, in_order, legible, legible_json, printable

STEERING = st.sampled_from("\x7f\x80\x85\x9b\x9d\u061c\u200b\u200e\u202e\u2066\u2069\u2028\ufeff\ue000\U000e0041")
TEXT = st.text() | st.text(STEERING) | st.text(st.sampled_from('aé日\x9b\u202e😀\\"\n\t'))


@given(st.dictionaries(TEXT, TEXT, max_size=4))
def test_json_for_a_terminal_holds_nothing_that_does_not_print_and_is_the_same(content):
    try:
        line = json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        line = json.dumps(content).encode()
    shown = legible_json(line)
    assert shown.decode().isprintable()
    assert json.loads(shown) == json.loads(line)


def test_plain_json_is_the_very_same():
    line = b'{"a": [1, "x"],\n\t"b": null}'
    assert legible_json(line) is line


def test_watch_prints_no_line_that_could_steer_a_terminal(tmp_path, monkeypatch):
    class Daemon:
        def lines(self, path, wait):
            yield '{"title": "\x9b31mred\u202e evil"}'.encode()

    with (tmp_path / "out").open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        watch._print_lines(Daemon(), {}, None, once=True)
    shown = (tmp_path / "out").read_text()
    assert shown.rstrip("\n").isprintable()
    assert json.loads(shown) == {"title": "\x9b31mred\u202e evil"}


@given(st.text() | st.text(st.sampled_from("\u05e9\u0645\u0661\u200e\u200f a>/'1")))
def test_marks_of_the_direction_are_all_that_is_added_and_only_once(text):
    ordered = in_order(text)
    assert ordered.replace(LEFT_TO_RIGHT, "") == text.replace(LEFT_TO_RIGHT, "")
    assert in_order(ordered) == ordered


def test_commands_are_marked_and_prose_is_not():
    assert legible("\u05d0 > \u05d1") == "\u200e\u05d0\u200e > \u200e\u05d1\u200e"
    assert printable("\u05d0 \u05d1\x1b[0m") == "\u05d0 \u05d1 [0m"


@given(st.text(st.sampled_from("\u05e9\u0645 a>\u65e5"), max_size=30), st.integers(0, 20))
def test_a_cell_is_as_wide_with_marks_as_without(text, width):
    line = table.draw(("H",), [(legible(text),)], colour=False, width=None)[1]
    assert table.display_width(line) == table.display_width(text.rstrip())
    assert table.display_width(table.fit(in_order(text), width)) == width
