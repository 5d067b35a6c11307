"""The hook that waits: silent until there is a decision, gone when there will be none, and no bother to anybody."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux.actions.decisions import Handed, Waiting
from agtmux.probe.hook_socket import HookSocket
from support.home import Home, wait_until
from support.hook import SECONDS_MAX, patient_in
from support.http import request
from support.inside import InsideDaemon

AGENT = "claude"
VERSION = "2.1.325"
ASKED = {"tool_name": "Bash", "tool_input": {"command": "make deploy"}}
ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


class Scene:
    """An agent's pane, its daemon, and its hooks as it would run them."""

    def __init__(self, home: Home, daemon: InsideDaemon, pane: str) -> None:
        self.home = home
        self.daemon = daemon
        self.env = home.tmux_variables(pane)
        self.pane = pane
        self.hooks: list[subprocess.Popen[bytes]] = []

    def start(self, event: str = "PermissionRequest", *more: str, payload: object = None) -> subprocess.Popen[bytes]:
        command = [patient_in(self.home.folder), AGENT, event, *(more or ("--wait",))]
        pipe = subprocess.PIPE
        hook = subprocess.Popen(command, env=self.home.env | self.env, stdin=pipe, stdout=pipe, stderr=pipe)
        self.hooks.append(hook)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(ASKED if payload is None else payload).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook

    def tell(self, event: str, payload: object) -> None:
        """An event that nobody waits for."""
        words = [patient_in(self.home.folder), AGENT, event]
        subprocess.run(words, env=self.home.env | self.env, input=json.dumps(payload).encode(), check=True, timeout=20)

    def asked(self) -> tuple[subprocess.Popen[bytes], Waiting]:
        hook = self.start()
        return hook, wait_until(self.waiting, "the hook to wait")

    def waiting(self) -> Waiting | None:
        world, decisions = self.daemon.service.world, self.daemon.service.decisions
        return self.daemon.ask(
            lambda: next(
                (found for who in list(world.by_runtime) if (found := decisions.waiting(who)) is not None), None
            )
        )

    def decide(self, question: Waiting, *, allow: bool, message: str = "") -> Handed:
        decide = self.daemon.service.decisions.decide
        return self.daemon.call(decide(question.runtime_id, question.event_id, allow=allow, message=message))

    def waiters(self) -> int:
        return self.daemon.ask(lambda: self.daemon.service.decisions.waiter_count)


def said(hook: subprocess.Popen[bytes]) -> bytes:
    """All it said, once it has gone as a hook should."""
    out, complaints = hook.communicate(timeout=20)
    assert (hook.returncode, complaints) == (0, b"")
    return out


@pytest.fixture
def scene(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    # As a native build is laid out, which tells its version.
    program = home.folder / AGENT / "versions" / VERSION
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/sleep", program)
    pane = home.pane(agent=None, command=f"{program} 600")
    for name in ("HOME", "AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "TMUX_TMPDIR"):
        monkeypatch.setenv(name, home.env[name])
    with InsideDaemon(home.state) as daemon:
        wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == AGENT, "the agent")
        made = Scene(home, daemon, pane)
        try:
            yield made
        finally:
            for hook in made.hooks:
                if hook.poll() is None:
                    hook.kill()
                hook.communicate()


def test_an_approval_is_handed_to_the_agent(scene: Scene):
    hook, question = scene.asked()
    assert question.attention is not None
    assert question.attention.summary == "make deploy"
    assert hook.poll() is None
    assert scene.decide(question, allow=True) is Handed.HANDED_OVER
    assert json.loads(said(hook)) == ALLOWED
    assert (scene.waiters(), scene.waiting()) == (0, None)


def test_a_refusal_carries_its_reason_whatever_it_says(scene: Scene):
    hook, question = scene.asked()
    reason = 'not on a "friday" \\ é\n\x00 {message}' + "x" * 100_000
    assert scene.decide(question, allow=False, message=reason) is Handed.HANDED_OVER
    told = json.loads(said(hook))["hookSpecificOutput"]["decision"]
    assert told == {"behavior": "deny", "message": reason}


def test_a_plan_is_decided_in_its_own_words_and_a_question_not_at_all(scene: Scene):
    hook = scene.start(payload={"tool_name": "ExitPlanMode", "tool_input": {"plan": "# One"}})
    question = wait_until(scene.waiting, "the hook to wait")
    assert scene.decide(question, allow=True) is Handed.HANDED_OVER
    assert json.loads(said(hook))["hookSpecificOutput"]["decision"] == {"behavior": "allow", "updatedInput": {}}
    ask = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which?"}]}}
    assert said(scene.start(payload=ask)) == b""
    assert scene.home.state_of(scene.pane) == "waiting_input"


def test_explain_tells_that_a_hook_waits(scene: Scene):
    hook, question = scene.asked()
    ref = scene.home.panes()[scene.pane]["ref"]
    explained = scene.home.ask("GET", f"/v1/explain?ref={ref.replace('%', '%25')}").json
    assert explained["waiting_hook"]["event_id"] == question.event_id == explained["evidence"][0]["event_id"]
    assert "its hook waits" in scene.home.run("explain", ref).stdout
    assert scene.decide(question, allow=True) is Handed.HANDED_OVER
    said(hook)
    assert scene.home.ask("GET", f"/v1/explain?ref={ref.replace('%', '%25')}").json["waiting_hook"] is None


@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "SessionEnd"])
def test_the_hook_goes_in_silence_when_the_dialog_was_answered_elsewhere(scene: Scene, event: str):
    hook, question = scene.asked()
    scene.tell(event, {})
    assert said(hook) == b""
    assert scene.decide(question, allow=True) is Handed.NOBODY_WAITS


def test_the_hook_goes_in_silence_when_its_agent_has_ended(scene: Scene):
    hook, _ = scene.asked()
    scene.home.tmux("respawn-pane", "-k", "-t", scene.pane, "sleep 600")
    assert said(hook) == b""


def test_the_hook_goes_when_nobody_reads_what_it_would_say(scene: Scene):
    # All that an agent says when it is killed.
    hook, _ = scene.asked()
    assert hook.stdout is not None
    hook.stdout.close()
    hook.stdout = None
    assert said(hook) is None
    wait_until(lambda: scene.waiters() == 0, "the daemon to notice")


def test_the_hook_goes_when_the_agent_says_so(scene: Scene):
    hook, question = scene.asked()
    hook.send_signal(signal.SIGTERM)
    assert hook.communicate(timeout=20) == (b"", b"")
    wait_until(lambda: scene.waiters() == 0, "the daemon to notice")
    assert scene.decide(question, allow=True) is Handed.NOBODY_WAITS


def test_a_daemon_that_stops_waits_for_no_hook_and_no_hook_for_it(scene: Scene):
    hook, _ = scene.asked()
    began = time.monotonic()
    scene.daemon.stop()
    assert time.monotonic() - began < 2.0
    assert said(hook) == b""


def test_a_daemon_that_is_killed_leaves_no_hook_behind(home: Home):
    program = home.folder / AGENT
    shutil.copy("/bin/sleep", program)
    pane = home.pane(agent=None, command=f"{program} 600")
    daemon = home.start()
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == AGENT, "the agent")
    hook = home.spawn(patient_in(home.folder), AGENT, "PermissionRequest", "--wait", env=home.tmux_variables(pane))
    wait_until(lambda: home.health()["waiting_hooks"] == 1, "the hook to wait")
    os.kill(daemon.pid, signal.SIGKILL)
    assert hook.communicate(timeout=20) == ("", "")
    assert hook.returncode == 0


def test_a_hook_that_is_not_told_to_wait_does_not(scene: Scene):
    hook = scene.start("PermissionRequest", json.dumps(ASKED))
    assert said(hook) == b""
    assert scene.home.state_of(scene.pane) == "waiting_approval"
    assert scene.waiters() == 0


def test_a_version_that_is_too_old_is_not_waited_for(scene: Scene):
    old = scene.home.folder / "old" / AGENT / "versions" / "2.0.54"
    old.parent.mkdir(parents=True)
    (scene.home.folder / AGENT / "versions" / VERSION).rename(old)
    scene.home.tmux("respawn-pane", "-k", "-t", scene.pane, f"{old} 600")
    wait_until(lambda: scene.home.panes()[scene.pane]["agent_version"] == "2.0.54", "the old version")
    assert said(scene.start()) == b""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells")
def test_hooks_that_wait_cost_nothing(scene: Scene):
    hook, _ = scene.asked()

    def ticks() -> int:
        fields = Path(f"/proc/{hook.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def switches() -> int:
        return sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", Path(f"/proc/{hook.pid}/status").read_text())))

    before = (ticks(), switches())
    # Long enough for anything that happens every second.
    deadline = time.monotonic() + 1.5
    wait_until(lambda: time.monotonic() > deadline, "time to pass")
    assert (ticks(), switches()) == before
    memory = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{hook.pid}/status").read_text())[1])
    assert memory < 16 * 1024


# What may listen in the daemon's place.


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b'HTTP/1.1 200 OK\r\n\r\n{"answer": 5}',
        b'HTTP/1.1 200 OK\r\n\r\n{"answer": null}',
        b'HTTP/1.1 200 OK\r\n\r\n{"answer": "{\\"a\\": 1}',
        b'HTTP/1.1 500 No\r\n\r\n{"answer": "{}"}',
        b'{"answer": "{}"}',
        b"",
    ],
)
def test_what_is_no_decision_ends_in_silence(hook, daemon, answer):
    daemon.answers = [b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", answer]
    hook.run("claude", "PermissionRequest", "--wait")
    assert [request.head.split()[1] for request in daemon.requests] == [b"/v1/events", b"/v1/decisions/wait"]
    assert daemon.requests[1].meta == {"event_id": daemon.requests[0].meta["event_id"]}
    assert hook.spooled() == []


def test_a_decision_is_passed_on_as_it_is(hook, daemon):
    daemon.answers = [b"HTTP/1.1 200 OK\r\n\r\n", b'HTTP/1.1 200 OK\r\n\r\n{"answer": "{\\"a\\": \\"\\u00e9\\"}\\n"}']
    done = subprocess.run(
        [hook.command, "claude", "PermissionRequest", "--wait"], env=hook.env, input=b"{}", capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a": "é"}\n'.encode(), b"")


def test_a_daemon_that_is_busy_for_a_moment_is_no_reason_not_to_wait(prompt_hook, daemon):
    # Twice as long as any other hook would wait.
    daemon.answer, daemon.seconds_per_byte = b"HTTP/1.1 200", 0.015
    prompt_hook.run("claude", "PermissionRequest", "--wait")
    assert [request.head.split()[1] for request in daemon.requests] == [b"/v1/events", b"/v1/decisions/wait"]


def test_at_the_door_of_a_probe_nobody_decides(prompt_hook):
    taken = []
    door = HookSocket(prompt_hook.env["AGTMUX_SOCKET"], lambda kind, body, _: taken.append(body) is None)
    try:
        assert prompt_hook.run("claude", "PermissionRequest", "--wait") < SECONDS_MAX
    finally:
        door.close()
    assert len(taken) == 1


def test_nobody_waits_for_a_daemon_that_is_away(hook):
    assert hook.run("claude", "PermissionRequest", "--wait") < 30
    (record,) = hook.spooled()
    assert (record["event"], record["payload"]["session_id"]) == ("PermissionRequest", "s1")


def test_with_its_output_closed_a_hook_reports_and_does_not_wait(prompt_hook, daemon):
    command = 'exec "$0" claude PermissionRequest --wait >&-'
    done = subprocess.run(
        ["sh", "-c", command, prompt_hook.command], env=prompt_hook.env, input=b"{}", stderr=-1, timeout=20
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert daemon.requests[0].meta["event"] == "PermissionRequest"


def test_the_request_of_another_kind_is_refused_in_the_one_shape(scene: Scene):
    with scene.home.connect() as connection:
        connection.send(request("POST", "/v1/decisions/wait", {"event_id": ""}))
        assert connection.answer().error["code"] == "E_USAGE"


def test_an_agent_does_not_wait_for_a_hook_that_waits_for_no_one(prompt_hook, daemon):
    assert prompt_hook.run("claude", "PermissionRequest", "--wait") < SECONDS_MAX
