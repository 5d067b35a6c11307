"""Every way in which a daemon, a disk or a stdin can fail: the event is spooled once, and the agent never waits."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess

import pytest

from agtmux.hook.compose import script
from agtmux.hook.spool_reader import drain
from support.hook import PAYLOAD, SECONDS_MAX, patient, sources, status

SECRET = "sk-ant-api03-" + "Zx9" * 30


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"HTTP/1.1",
        b"\x00\xff garbage instead of an answer\r\n",
        b"HTTP/1.1 2xx Nonsense\r\n\r\n",
        b"RTSP/1.0 200 OK\r\n\r\n",
        status(100),
        status(302),
        status(404),
        status(500),
        status(503),
    ],
)
def test_event_is_spooled_once_when_the_daemon_fails(hook, daemon, answer):
    daemon.answer = answer
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    (request,) = daemon.requests
    assert record == request.meta | {"payload": json.loads(PAYLOAD)}


def test_event_is_spooled_once_when_nobody_listens(hook):
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    assert (record["agent"], record["event"], record["payload"]) == ("claude", "Stop", json.loads(PAYLOAD))


def test_event_is_spooled_when_the_socket_is_stale(hook):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(hook.env["AGTMUX_SOCKET"])
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


@pytest.mark.parametrize("size", [10, 800_000])
def test_event_is_spooled_when_the_daemon_never_accepts(hook, size):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(hook.env["AGTMUX_SOCKET"])
        listener.listen(8)
        hook.run("claude", "Stop", stdin=json.dumps("x" * size).encode())
        assert len(hook.spooled()) == 1


def test_event_is_spooled_when_the_backlog_is_full(hook):
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as waiting:
        listener.bind(hook.env["AGTMUX_SOCKET"])
        listener.listen(0)
        with contextlib.suppress(OSError):
            for _ in range(200):
                client = waiting.enter_context(socket.socket(socket.AF_UNIX))
                client.settimeout(0.01)
                client.connect(hook.env["AGTMUX_SOCKET"])
        hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_event_is_spooled_when_the_socket_path_is_too_long(hook):
    hook.env["AGTMUX_SOCKET"] = "/tmp/" + "x" * 300
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_no_daemon_does_not_hold_the_agent(prompt_hook):
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_a_silent_daemon_does_not_hold_the_agent(prompt_hook, daemon):
    daemon.answer = None
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_an_answer_byte_by_byte_is_not_waited_for(hook, daemon):
    # Each byte comes in time; the status is complete after five seconds.
    daemon.seconds_per_byte = 0.4
    hook.run("claude", "Stop")
    assert len(hook.spooled()) == 1


def test_a_daemon_that_does_not_read_does_not_hold_the_agent(prompt_hook, daemon):
    daemon.answer, daemon.reads_body = None, False
    assert prompt_hook.run("claude", "Stop", stdin=b"x" * 800_000) < SECONDS_MAX


def test_a_locked_spool_does_not_hold_the_agent(prompt_hook):
    path = prompt_hook.state_dir / "spool" / "hook.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_stdin_that_never_closes_does_not_hold_the_agent(prompt_hook):
    read_end, write_end = os.pipe()
    try:
        assert prompt_hook.run("claude", "Stop", stdin=read_end) < SECONDS_MAX
    finally:
        os.close(read_end)
        os.close(write_end)


@pytest.mark.parametrize("redact", ["while True: pass\n", "import time\ntime.sleep(60)\n"])
def test_slow_redaction_does_not_hold_the_agent(prompt_hook, redact):
    prompt_hook.command.write_text(script(**(sources() | {"redact": redact})), "utf-8")
    assert prompt_hook.run("claude", "Stop") < SECONDS_MAX


def test_a_payload_of_two_megabytes_is_left_out_of_the_spool(hook):
    hook.run("claude", "PostToolUse", stdin=b"x" * 2_000_000)
    (record,) = hook.spooled()
    assert (record["payload"], record["omitted_bytes"]) == (None, 2_000_000)


def test_stdin_that_stays_silent_is_not_waited_for(hook):
    process = hook.start("claude", "Stop")
    assert process.wait(60) == 0
    assert process.communicate() == (b"", b"")
    assert len(hook.spooled()) == 1


@pytest.mark.parametrize("state_dir", ["/dev/null/state", "/proc/agtmux", "\udcff/\n", "x" * 5000])
def test_a_state_dir_that_cannot_be_written_is_given_up(hook, state_dir, tmp_path):
    hook.env["AGTMUX_STATE_DIR"] = state_dir.replace("\udcff", str(tmp_path / "\udcff"))
    hook.run("claude", "Stop")


def test_a_fifo_in_place_of_the_spool_is_given_up(hook):
    (hook.state_dir / "spool").mkdir(parents=True)
    os.mkfifo(hook.state_dir / "spool" / "hook.jsonl")
    hook.run("claude", "Stop")


def test_no_secret_is_spooled(hook):
    hook.run("claude", "PreToolUse", stdin=json.dumps({"env": {"API_KEY": SECRET}, "text": SECRET}).encode())
    hook.run("claude", "PreToolUse", stdin=f"{SECRET} in plain text".encode())
    hook.run("claude", "PreToolUse", json.dumps([SECRET]))
    raw = b"".join(path.read_bytes() for path in hook.state_dir.rglob("*") if path.is_file())
    assert raw.count(b"\n") == 3
    assert SECRET.encode() not in raw


@pytest.mark.parametrize("known", [True, False])
def test_home_that_is_not_set_is_looked_up_to_spool(hook, tmp_path, known):
    # The real user database would lead to the real home.
    found = f"type('Entry', (), {{'pw_dir': {str(tmp_path / 'home')!r}}})" if known else "{}[uid]"
    text = sources()
    text["spool"] = f"import pwd\n\npwd.getpwuid = lambda uid: {found}\n" + text["spool"]
    hook.command.write_text(patient(script(**text)), "utf-8")
    for name in ("HOME", "AGTMUX_STATE_DIR", "AGTMUX_SOCKET"):
        del hook.env[name]
    hook.run("claude", "Stop")
    assert len(drain(tmp_path / "home/.local/state/agtmux").records) == known


@pytest.mark.parametrize("redact", ["def broken(:\n", "raise SystemExit(3)\n", "import nothing\n", "1 / 0\n"])
def test_a_spool_that_breaks_is_no_reason_to_fail(hook, redact):
    hook.command.write_text(script(**(sources() | {"redact": redact})), "utf-8")
    hook.run("claude", "Stop")
    assert hook.spooled() == []


SLOW_REDACT = """
def redact_text(text):
    return text


def redact_value(value):
    while True:
        pass
"""


def test_a_payload_that_takes_too_long_to_redact_is_left_out_and_its_event_kept(hook):
    text = patient(script(**(sources() | {"redact": SLOW_REDACT})))
    hook.command.write_text(text.replace("SPOOL_UNTIL = 40", "SPOOL_UNTIL = 1.5"), "utf-8")
    hook.run("claude", "Stop")
    (record,) = hook.spooled()
    assert (record["event"], record["payload"], record["omitted_bytes"]) == ("Stop", None, len(PAYLOAD))


def test_waiting_for_a_processor_is_no_reason_to_leave_the_payload_out(hook):
    """The deadline is over from the start, and the kernel says that all the time since then went to other programs."""
    text = hook.command.read_text("utf-8")
    real = "return int(posix.read(file, 100).split()[1]) / 1e9"
    assert real in text and "SPOOL_UNTIL = 40" in text
    text = text.replace(real, "return time.monotonic() * 10_000").replace("SPOOL_UNTIL = 40", "SPOOL_UNTIL = -0.01")
    hook.command.write_text(text, "utf-8")
    hook.run("claude", "Stop", stdin=b'{"session_id": "s1"}')
    [record] = hook.spooled()
    assert record["payload"] == {"session_id": "s1"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupting_the_agent_neither_shows_nor_loses_the_event(hook, daemon, number):
    # Ctrl-C and a closing pane reach every process of the pane.
    daemon.answer = None
    process = hook.start("claude", "Stop", stdin=subprocess.DEVNULL)
    assert daemon.has_request.wait(20)
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0
    assert len(hook.spooled()) == 1


def test_many_hooks_at_once_spool_each_event_once(hook):
    processes = [hook.start("claude", f"event-{n}", '{"n": 1}', stdin=subprocess.DEVNULL) for n in range(12)]
    for process in processes:
        assert process.communicate(timeout=60) == (b"", b"")
        assert process.returncode == 0
    assert sorted(record["event"] for record in hook.spooled()) == sorted(f"event-{n}" for n in range(12))
