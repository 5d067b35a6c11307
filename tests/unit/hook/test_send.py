"""The hot path's own small JSON writer and its idea of where things are."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.hook import send
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


# On a busy machine


def test_the_time_to_spool_is_left_when_the_daemon_was_given_up_late(monkeypatch):
    """The clock says that five seconds have passed where 90 ms were to be waited."""
    clock = iter([100.0])
    monkeypatch.setattr(send, "time", SimpleNamespace(monotonic=lambda: next(clock, 105.0), time_ns=lambda: 0))
    monkeypatch.setattr(send, "delivered", lambda *_: False)
    deadlines = []
    monkeypatch.setattr(send, "exit_at", deadlines.append)
    send.main(["hook", "claude", "Stop", "{}"], lambda *words: deadlines.append(words[3]), lambda *_: None)
    left = [deadline - 105.0 + send.ANSWER_UNTIL for deadline in deadlines]
    assert left == pytest.approx([send.EXIT_AT, send.SPOOL_UNTIL])


def test_an_early_refusal_does_not_bring_the_deadlines_forward(monkeypatch):
    monkeypatch.setattr(send, "time", SimpleNamespace(monotonic=lambda: 100.0, time_ns=lambda: 0))
    monkeypatch.setattr(send, "delivered", lambda *_: False)
    deadlines = []
    monkeypatch.setattr(send, "exit_at", deadlines.append)
    send.main(["hook", "claude", "Stop", "{}"], lambda *words: deadlines.append(words[3]), lambda *_: None)
    assert deadlines == [100.0 + send.EXIT_AT, 100.0 + send.SPOOL_UNTIL]


STAYS = """
import sys, time
from agtmux.hook import send
calls = []
send.delayed = lambda: calls.append(1) or (0.0, {delay})[len(calls) > 1]
send.exit_at(time.monotonic())
deadline = time.monotonic() + 20
while len(calls) < 2 and time.monotonic() < deadline:
    pass
print("stayed", flush=True)
"""


@pytest.mark.parametrize(("delay", "said"), [("60.0", "stayed\n"), ("0.0", "")])
def test_waiting_for_a_processor_does_not_count_against_the_moment_to_leave(delay, said):
    done = subprocess.run(
        [sys.executable, "-c", STAYS.format(delay=delay)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == said


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does not tell it elsewhere")
def test_the_kernel_tells_how_long_this_process_waited_for_a_processor():
    assert send.delayed() > 0.0
