"""What a hook is told reaches the daemon, whatever its arguments, its stdin and its environment are like."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from support.hook import PAYLOAD, status


def test_event_reaches_the_daemon_to_the_letter(hook, daemon):
    before = time.time_ns()
    hook.run("claude", "UserPromptSubmit")
    (request,) = daemon.requests
    assert request.head.split(b"\r\n") == [
        b"POST /v1/events HTTP/1.1",
        b"Host: agtmux",
        b"Content-Type: application/vnd.agtmux.hook",
        request.head.split(b"\r\n")[3],
        b"Connection: close",
    ]
    assert request.payload == PAYLOAD
    meta = request.meta
    assert before <= meta.pop("event_time_ns") <= time.time_ns()
    assert re.fullmatch("[0-9a-f]{32}", meta.pop("event_id"))
    assert meta.pop("pid") > 1
    assert meta == {
        "v": 1,
        "agent": "claude",
        "event": "UserPromptSubmit",
        "pane_id": "%7",
        "tmux": "/tmp/tmux-0/default,1,0",
        # No shell stays in between: what the daemon looks up is the agent itself.
        "ppid": os.getpid(),
        "payload_bytes": len(PAYLOAD),
    }
    assert not hook.state_dir.exists()


def test_outside_tmux_there_is_no_pane(hook, daemon):
    del hook.env["TMUX"], hook.env["TMUX_PANE"]
    hook.run("claude", "Stop")
    assert (daemon.requests[0].meta["pane_id"], daemon.requests[0].meta["tmux"]) == (None, None)


@pytest.mark.parametrize("code", [200, 202, 204])
def test_accepted_events_are_not_spooled(hook, daemon, code):
    daemon.answer = status(code)
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1
    assert hook.spooled() == []


@pytest.mark.parametrize("code", [400, 413])
def test_refused_events_are_not_spooled(hook, daemon, code):
    daemon.answer = status(code)
    hook.run("claude", "Stop")
    assert hook.spooled() == []


def test_refused_before_the_body_was_read_is_refused(hook, daemon):
    daemon.answer = status(413)
    daemon.reads_body = False
    hook.run("claude", "PostToolUse", stdin=b"x" * 800_000)
    assert hook.spooled() == []


@pytest.mark.parametrize("args", [(), ("claude",), ("",)])
def test_bad_arguments_are_no_reason_to_fail(hook, daemon, args):
    hook.run(*args)
    assert daemon.requests == []
    assert not hook.state_dir.exists()


def test_payload_may_be_the_third_argument(hook, daemon):
    # Codex's notify. Its stdin is whatever Codex has, and must not be waited for.
    read_end, write_end = os.pipe()
    try:
        hook.run("codex", "notify", '{"type": "agent-turn-complete"}', stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert daemon.requests[0].payload == b'{"type": "agent-turn-complete"}'


@pytest.mark.parametrize("payload", [b"", b"\xff\xfe\x00 not UTF-8\n", b"\n\n", b"x" * 900 * 1024])
def test_payload_arrives_as_it_is(hook, daemon, payload):
    hook.run("claude", "Stop", stdin=payload)
    (request,) = daemon.requests
    assert request.payload == payload
    assert request.meta["payload_bytes"] == len(payload)
    assert "omitted_bytes" not in request.meta


def test_a_payload_of_two_megabytes_is_left_out(hook, daemon):
    hook.run("claude", "PostToolUse", stdin=b"x" * 2_000_000)
    (request,) = daemon.requests
    assert request.payload == b""
    assert (request.meta["payload_bytes"], request.meta["omitted_bytes"]) == (0, 2_000_000)


def test_arguments_that_are_not_utf_8_are_replaced(hook, daemon):
    hook.env["TMUX_PANE"] = b"%\xff".decode("utf-8", "surrogateescape")
    hook.run(b"cl\xffaude", 'say "hé"\n\\')
    meta = daemon.requests[0].meta
    assert (meta["agent"], meta["event"], meta["pane_id"]) == ("cl\ufffdaude", 'say "hé"\n\\', "%\ufffd")


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "no_SUCH.locale"])
def test_arguments_survive_any_locale(hook, daemon, locale):
    hook.env["LC_ALL"] = locale
    hook.run("claude", "hé")
    assert daemon.requests[0].meta["event"] == "hé"


def test_the_agents_own_python_settings_do_not_reach_the_hook(hook, daemon, tmp_path):
    for name in ("select", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    hook.env["PYTHONPATH"] = str(tmp_path)
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1
    assert not (tmp_path / "mark").exists()


def test_stdin_that_never_closes_is_not_waited_for(hook, daemon):
    process = hook.start("claude", "Stop")
    process.stdin.write(PAYLOAD)
    process.stdin.flush()
    assert process.wait(60) == 0
    assert daemon.requests[0].payload == PAYLOAD
    assert process.communicate() == (b"", b"")


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-", "</"])
def test_stdin_that_cannot_be_read_is_an_empty_payload(hook, daemon, closed):
    command = ["sh", "-c", f'exec "$0" claude Stop {closed}', hook.command]
    done = subprocess.run(command, env=hook.env, capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert daemon.requests[0].payload == b""


def test_a_terminal_as_stdin_is_not_read(hook, daemon):
    ours, theirs = pty.openpty()
    try:
        os.write(ours, b"typed ahead\n")
        hook.run("claude", "Stop", stdin=theirs)
        # What was typed is still there for whoever reads the terminal next.
        assert select.select([theirs], [], [], 0)[0]
    finally:
        os.close(ours)
        os.close(theirs)
    assert daemon.requests[0].payload == b""


def test_home_that_is_not_set_does_not_stop_the_daemon_from_hearing(hook, daemon):
    del hook.env["HOME"], hook.env["AGTMUX_STATE_DIR"]
    hook.run("claude", "Stop")
    assert len(daemon.requests) == 1
