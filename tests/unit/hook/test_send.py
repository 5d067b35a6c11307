"""The hot path's own small JSON writer and its idea of where things are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.hook.send import metadata, places, quoted


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
