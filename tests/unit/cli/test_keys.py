"""What a terminal sends, as keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.cli.keys import is_unfinished, read_keys


@pytest.mark.parametrize(
    ("chunk", "keys"),
    [
        (b"j", ["j"]),
        (b"\x1b[A\x1bOB\r\n", ["up", "down", "enter", "enter"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1bOF", ["page up", "page down", "home", "end"]),
        ("é終🦊".encode(), ["é", "終", "🦊"]),
        # A function key, a mouse, an answer to a question that nobody asked: none of ours, and not letters either.
        (b"\x1b[15~\x1b[<0;3;4M\x1b[?1;2cx", ["x"]),
        (b"\x7f\x08", ["backspace", "backspace"]),
        (b"\x00\x01\xff\x9b", []),
        (b"", ["end of input"]),
        (b"\x04", ["end of input"]),
    ],
)
def test_keys_are_read_by_name(chunk: bytes, keys: list[str]):
    assert read_keys(chunk) == keys


@pytest.mark.parametrize("chunk", [b"\x1b", b"\x1b[", b"\x1b[1", b"j\x1bO", "é".encode()[:1], "🦊".encode()[:3]])
def test_the_rest_of_a_key_is_waited_for(chunk: bytes):
    assert is_unfinished(chunk)


@pytest.mark.parametrize("chunk", [b"j", b"\x1b[A", "é".encode(), "🦊".encode(), b"\xff", b"\x80", b""])
def test_what_is_whole_is_not(chunk: bytes):
    assert not is_unfinished(chunk)


@given(st.binary(max_size=40))
def test_no_bytes_are_too_strange(chunk: bytes):
    is_unfinished(chunk)
    for key in read_keys(chunk):
        assert key.isprintable() and key


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), max_size=20))
def test_text_comes_as_it_was_typed(text: str):
    assert read_keys(text.encode()) == (list(text) or ["end of input"])
