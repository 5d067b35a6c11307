"""Excerpts of large files: what is left out comes back byte for byte, and the rest says what it said."""

import json
import sys
import threading
import time

import pytest
from hypothesis import given, settings

from agtmux.agents.install.jsonc import JsoncError, as_python, parse
from agtmux.agents.mcp import json_file
from agtmux.probe.excerpts import Excerpt, LeftOut, excerpt
from support.histories import with_history
from unit.agents.install.documents import documents

MOST = 1_000_000
# More than JSON's scanner follows in any Python: its limit was 1,000 up to 3.11, and has been larger since.
DEEP = 200_000
ENTRY = {"command": "/opt/agtmux-mcp", "args": ["--socket", "/run/x"]}


def small(text: str, *wanted: str) -> Excerpt:
    """Of a text that need not be large for that."""
    return excerpt(text.encode("utf-8", "surrogatepass"), wanted, MOST, least=1)


def whole(made: str, found: Excerpt, text: str) -> str:
    return b"".join(found.left_out.filled(made.encode(), text.encode())).decode()


@settings(deadline=None)
@given(documents())
def test_whatever_is_left_out_comes_back(text: str) -> None:
    found = small(text, "hooks")
    assert found.trouble is None
    assert whole(found.data.decode(), found, text) == text
    read, there = as_python(parse(found.data.decode())), as_python(parse(text))
    assert list(read) == list(there) and read.get("hooks") == there.get("hooks")


@settings(deadline=None)
@given(documents())
def test_a_change_to_an_excerpt_is_a_change_to_the_file(text: str) -> None:
    found = small(text, "mcpServers")
    new = whole(json_file.added(found.data.decode(), "mcpServers", ENTRY), found, text)
    assert as_python(parse(new)) == as_python(parse(text)) | {"mcpServers": {"agtmux": ENTRY}}
    again = small(new, "mcpServers")
    left = json_file.removed(again.data.decode(), "mcpServers")
    assert left is not None and whole(left, again, new) == text
    # And without one, should the file have become small in the meantime.
    assert json_file.removed(new, "mcpServers") == text


def test_what_is_large_and_not_wanted_is_left_out_and_nothing_else() -> None:
    large = ["x" * 100] * 20
    text = json.dumps({"a": large, "b": 1, "mcpServers": {"a": large}, "c": {"mcpServers": large}, "d": "x" * 2_000})
    found = excerpt(text.encode(), ["mcpServers"], MOST)
    read = json.loads(found.data)
    assert (read["b"], read["mcpServers"]) == (1, {"a": large})
    assert [name for name, value in read.items() if str(value).startswith(found.left_out.mark)] == ["a", "c", "d"]
    assert found.left_out.size == len(text.encode()) - len(found.data) + 3 * len(f'"{found.left_out.mark} 0"')


def test_a_wanted_member_is_known_however_its_name_is_written() -> None:
    found = small('{"mcp\\u0053ervers": {"x": 1}, "mcpServers": [2], "é": [3]}', "mcpServers")
    assert as_python(parse(found.data.decode()))["mcpServers"] == [2] and b'{"x": 1}' in found.data
    assert len(found.left_out.parts) == 1


@pytest.mark.parametrize(
    "value", ["[1, /* ] */ 2]", "[1, 2,]", '{"a": "]", // }\n}', "[NaN]", "[" * DEEP + "]" * DEEP], ids=range(5)
)
def test_what_is_not_json_throughout_is_left_to_whoever_reads_it(value: str) -> None:
    found = small(f'{{"a": {value}, "b": [1]}}', "mcpServers")
    assert value.encode() in found.data and b'"b": "left out' in found.data
    assert found.trouble is None


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ('{"a": [1, 2', 11),
        ('{"a": "x', 6),
        ('{"a": tru}', 6),
        ('{"a" [1]}', 5),
        ("{a: 1}", 1),
        ('{"a": 1 "b": 2}', 8),
        ('{"a": [1], ', 11),
        ("[1]", None),
        ("", None),
    ],
)
def test_where_it_stops_being_json_is_told(text: str, trouble: int | None) -> None:
    found = small(text)
    assert found.trouble == trouble
    assert whole(found.data.decode(), found, text) == text


@settings(deadline=None)
@given(documents(strict=True))
def test_a_fault_is_told_where_it_is_in_the_file(text: str) -> None:
    text = text.rstrip()[:-1] + "!"
    found = small(text, "hooks")
    with pytest.raises(JsoncError) as there:
        parse(text)
    with pytest.raises(JsoncError) as read:
        parse(found.data.decode())
    line, column = found.left_out.place(read.value.before)
    # Of what is left out, a column is a byte.
    last = text.split("\n")[there.value.line - 1]
    assert line == there.value.line and 0 <= column - there.value.column <= len(last.encode()) - len(last)


def test_no_part_can_be_lost_or_doubled() -> None:
    text = '{"a": [1], "b": [2]}'
    found = small(text)
    first, second = (f'"{found.left_out.mark} {number}"' for number in (0, 1))
    for made in (f'{{"a": {first}}}', f'{{"a": {first}, "b": {first}}}', f'{{"b": {second}, "a": {first}}}', "{}"):
        with pytest.raises(ValueError, match="missing"):
            found.left_out.filled(made.encode(), text.encode())


def test_what_only_looks_like_a_mark_is_none() -> None:
    assert LeftOut("", ()).place('[\n"x", " 5", ') == (2, 12)


def test_others_get_their_turn_while_a_large_file_is_read() -> None:
    data = with_history(30_000_000).encode()
    reading = threading.Thread(target=excerpt, args=(data, ["mcpServers"], MOST))
    waits = []
    interval = sys.getswitchinterval()
    # Whoever wants its turn is given it after so long, if it can be: a machine with much to do makes them no fewer.
    sys.setswitchinterval(0.001)
    try:
        reading.start()
        while reading.is_alive():
            began = time.monotonic()
            time.sleep(0.001)
            waits.append(time.monotonic() - began)
    finally:
        sys.setswitchinterval(interval)
    # Read in one go there would be four; as it is, there are twenty.
    assert sum(wait > 0.0018 for wait in waits) > 10, "the daemon stood still"
