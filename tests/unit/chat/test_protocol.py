"""What may be said on a chat socket, and how it comes apart into lines."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.chat.protocol import (
    TEXT_LIMIT,
    Abort,
    Answer,
    Approve,
    Deny,
    Lines,
    Message,
    Replay,
    decoded,
    encoded,
    fitted,
    tool_line,
)
from agtmux.domain.errors import AgtmuxError, ErrorCode


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ('{"type":"message","text":"バグを直して"}', Message("バグを直して")),
        ('{"type":"approve","request_id":"req_123"}', Approve("req_123")),
        ('{"type":"deny","request_id":"req_123","reason":"危険なコマンド"}', Deny("req_123", "危険なコマンド")),
        ('{"type":"deny","request_id":"req_123"}', Deny("req_123")),
        ('{"type":"answer","request_id":"q","answers":{"Which?":"Red"}}', Answer("q", {"Which?": "Red"})),
        ('{"type":"answer","request_id":"q","answers":["Red",["A","B"]]}', Answer("q", ["Red", ["A", "B"]])),
        ('{"type":"answer","request_id":"q","answers":"Red"}', Answer("q", "Red")),
        ('{"type":"abort"}', Abort()),
        ('{"type":"replay","after":7}', Replay(7)),
        ('{"type":"abort","since":"a later version says more"}', Abort()),
    ],
)
def test_what_clients_say_is_understood(line, command):
    assert decoded(line.encode()) == command


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b"null",
        b'{"type":"nope"}',
        b'{"type":7}',
        b'{"type":"message"}',
        b'{"type":"message","text":7}',
        b'{"type":"message","text":"  "}',
        b'{"type":"approve"}',
        b'{"type":"answer","request_id":"q","answers":7}',
        b'{"type":"replay","after":"x"}',
        b"[" * 100_000,
        b'{"type":"message","text":"x","more":' + b"[" * 100_000,
    ],
)
def test_what_is_nothing_that_a_client_says_is_a_usage_error(line):
    with pytest.raises(AgtmuxError) as caught:
        decoded(line)
    assert caught.value.code is ErrorCode.USAGE


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b" "))), st.lists(st.integers(0, 900)))
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    reader = Lines(limit=20)
    out = [line for start, end in itertools.pairwise(places) for line in reader.feed(stream[start:end])]
    assert out == [line if len(line) <= 20 else None for line in lines]


def test_a_line_that_never_ends_is_told_of_once_and_not_kept():
    reader = Lines(limit=10)
    told = [line for _ in range(1_000) for line in reader.feed(b"x" * 100)]
    assert told == [None]
    assert reader.feed(b"\nnext\n") == [b"next"]


def test_long_texts_are_cut_wherever_they_are_and_it_is_said():
    value, is_cut = fitted({"a": ["x" * (TEXT_LIMIT + 1), 7], "b": "short"})
    assert is_cut and len(value["a"][0]) == TEXT_LIMIT + 1 and value["b"] == "short"
    assert fitted({"a": [1, "two", None]}) == ({"a": [1, "two", None]}, False)


def test_what_is_told_is_one_line():
    line = encoded({"type": "text_delta", "text": "one\ntwo\u2028three"})
    assert line.count(b"\n") == 1 and json.loads(line)["text"] == "one\ntwo\u2028three"


def test_a_tool_is_told_in_a_line():
    assert tool_line("Bash", {"command": "make\ndeploy", "description": "d"}) == "Bash make deploy"
    assert tool_line("Odd", {"x": 1}) == "Odd"
