"""The hot path's own small JSON writer and its idea of where things are."""

import json
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.hook.send import metadata, places, quoted, read_stdin


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_become_a_json_string(raw):
    written = quoted(raw)
    assert json.loads(written) == raw.decode("utf-8", "replace")
    assert "\n" not in written


def test_control_characters_are_escaped_and_line_separators_kept():
    assert quoted(b'a"\\\n\x00\x7f\xe2\x80\xa8') == '"a\\"\\\\\\u000a\\u0000\x7f\u2028"'


def test_what_is_not_set_is_null():
    assert quoted(None) == "null"


@given(st.binary(), st.binary())
def test_metadata_is_one_line_of_json(agent, event):
    line = metadata(agent, event, "e1", 12, 12)
    assert b"\n" not in line
    meta = json.loads(line)
    assert (meta["v"], meta["agent"]) == (1, agent.decode("utf-8", "replace"))
    assert meta["payload_bytes"] == 12
    assert "omitted_bytes" not in meta


def test_metadata_tells_what_was_left_out():
    meta = json.loads(metadata(b"claude", b"Stop", "e1", 0, 2_000_000))
    assert (meta["payload_bytes"], meta["omitted_bytes"]) == (0, 2_000_000)


@pytest.fixture
def stdin() -> Iterator[int]:
    """The other end of a pipe that is this process's standard input."""
    before = os.dup(0)
    end, other = os.pipe()
    os.dup2(end, 0)
    os.close(end)
    yield other
    os.dup2(before, 0)
    os.close(before)
    os.close(other)


def test_a_payload_that_came_in_time_is_read_by_a_process_that_did_not_run(stdin: int):
    """On a busy machine the hook may get the processor only after its deadline. Without the payload, the event would
    say that the agent waits and not what for."""
    os.write(stdin, b'{"tool_name": "Bash"}')
    assert read_stdin(until=0) == (b'{"tool_name": "Bash"}', 21)


def test_a_process_out_of_time_waits_for_nothing_and_reads_once(stdin: int):
    assert read_stdin(until=0) == (b"", 0)
    os.write(stdin, b"x" * 65_536)
    assert read_stdin(until=0) == (b"x" * 65_536, 65_536)


HOME_STATE = b"/home/u/.local/state/agtmux"


@pytest.mark.parametrize(
    ("env", "socket_path", "state_dir"),
    [
        ({"HOME": "/home/u"}, HOME_STATE + b"/agtmuxd.sock", HOME_STATE),
        ({"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/u"}, b"/run/u/agtmux/agtmuxd.sock", HOME_STATE),
        ({"HOME": "/home/u", "XDG_RUNTIME_DIR": ""}, HOME_STATE + b"/agtmuxd.sock", HOME_STATE),
        ({"HOME": "/home/u", "XDG_STATE_HOME": "/st"}, b"/st/agtmux/agtmuxd.sock", b"/st/agtmux"),
        ({"XDG_STATE_HOME": "/st", "AGTMUX_STATE_DIR": "/own"}, b"/own/agtmuxd.sock", b"/own"),
        ({"AGTMUX_SOCKET": "/s", "XDG_RUNTIME_DIR": "/r", "AGTMUX_STATE_DIR": "/own"}, b"/s", b"/own"),
        (
            {"AGTMUX_SOCKET": "", "AGTMUX_STATE_DIR": "", "HOME": "/home/u"},
            HOME_STATE + b"/agtmuxd.sock",
            HOME_STATE,
        ),
        ({"XDG_RUNTIME_DIR": "/run/u"}, b"/run/u/agtmux/agtmuxd.sock", None),
        ({}, None, None),
    ],
)
def test_places_follow_the_environment(env, socket_path, state_dir):
    assert places({name.encode(): value.encode() for name, value in env.items()}) == (socket_path, state_dir)
