"""`agtmux wait`: what ends it, with which status, and that a restart of the daemon does not."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from support.home import COMMANDS, PATIENCE, Home, event, wait_until
from support.schemas import check_output

AGTMUX = COMMANDS / "agtmux"
Waited = Callable[..., "Waiting"]


class Waiting:
    """A wait that is under way."""

    def __init__(self, home: Home, *words: str) -> None:
        before = home.health()["streams"]
        self._words = words
        self._child = home.spawn(AGTMUX, "wait", *words)
        wait_until(lambda: home.health()["streams"] == before + 1 or self._child.poll() is not None, "its stream")

    @property
    def is_over(self) -> bool:
        return self._child.poll() is not None

    def ended(self) -> tuple[int, str, str]:
        out, complaints = self._child.communicate(timeout=PATIENCE)
        check_output(("wait", *self._words), out)
        return self._child.returncode, out, complaints

    def result(self) -> tuple[int, dict[str, Any]]:
        status, out, complaints = self.ended()
        # A daemon that takes long to come back is missed aloud.
        assert complaints.replace("agtmux: agtmuxd has stopped; waiting for it\n", "") == "", complaints
        return status, json.loads(out)


def tell(home: Home, pane: str, state: str, **payload: Any) -> None:
    """With low confidence: that of another falls some looks later, as its empty screen does not bear it out."""
    fields = {"raw_payload": {"confidence": "low", **payload}}
    assert home.ask("POST", "/v1/events", event(pane, f"state.{state}", **fields)).json["status"] == "applied"


def agents(home: Home, *states: str) -> list[str]:
    """Panes with agents in these states."""
    panes = [home.pane() for _ in states]
    wait_until(lambda: set(panes) <= set(home.panes()), "the panes")
    for pane, state in zip(panes, states, strict=True):
        tell(home, pane, state)
    return panes


@pytest.fixture
def daemon(home: Home) -> subprocess.Popen[str]:
    return home.start()


def test_what_is_so_already_is_said_at_once(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    done = home.run("wait", pane, "--for", "idle,running")
    place = home.panes()[pane]["ref"].removeprefix("pane:")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"claude in {place} is running\n", "")
    content = json.loads(home.run("wait", pane, "--for", "idle,running", "--json").stdout)
    assert (content["result"], content["states"], content["needs_you"]) == ("reached", ["idle", "running"], [])
    assert content["items"] == [home.panes()[pane]]


def test_it_ends_when_the_state_is_reached(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    waiting = Waiting(home, home.panes()[pane]["ref"], "--for", "completed")
    tell(home, pane, "idle")
    assert not waiting.is_over
    tell(home, pane, "completed")
    status, out, complaints = waiting.ended()
    assert (status, out.endswith("is completed\n"), out.count("\n"), complaints) == (0, True, 1, "")


def test_a_runtime_can_be_waited_for(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    waiting = Waiting(home, f"runtime:{home.panes()[pane]['runtime_id']}", "--for", "completed", "--json")
    # It stays who it is wherever its pane is moved to.
    home.tmux("new-session", "-d", "-s", "elsewhere", "sleep 3600")
    home.tmux("move-window", "-s", pane, "-t", "elsewhere:9")
    wait_until(lambda: home.panes()[pane]["identity"]["session_name"] == "elsewhere", "the move")
    tell(home, pane, "completed")
    status, content = waiting.result()
    assert (status, content["items"][0]["identity"]["session_name"]) == (0, "elsewhere")


def test_time_runs_out(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    done = home.run("wait", pane, "--for", "completed", "--timeout", "100ms", "--json")
    content = json.loads(done.stdout)
    assert (done.returncode, content["result"]) == (124, "timed_out")
    assert content["items"] == [home.panes()[pane]]
    done = home.run("wait", pane, "--for", "completed", "--timeout", "0s")
    assert (done.returncode, done.stdout.startswith("timed out"), done.stderr) == (124, True, "")
    for patience in ("0s", "3650d"):
        assert home.run("wait", pane, "--for", "running", "--timeout", patience).returncode == 0


def test_another_one_that_begins_to_wait_ends_it(home: Home, daemon: object):
    pane, other, waits_already = agents(home, "running", "running", "waiting_input")
    waiting = Waiting(home, pane, "--for", "completed", "--json")
    # What one does that waited before does not count.
    tell(home, waits_already, "waiting_approval")
    tell(home, other, "error")
    assert not waiting.is_over
    tell(home, other, "waiting_approval", attention={"kind": "approval", "summary": "rm -rf /"})
    status, content = waiting.result()
    assert (status, content["result"]) == (10, "other_needs_you")
    assert [item["identity"]["pane_id"] for item in content["needs_you"]] == [other]
    assert [item["identity"]["pane_id"] for item in content["items"]] == [pane]


@pytest.mark.parametrize("who", ["ref", "--all", "--any"])
@pytest.mark.parametrize("state", ["waiting_approval", "waiting_input"])
def test_the_one_that_is_waited_for_ends_it_when_it_asks_itself(home: Home, daemon: object, who: str, state: str):
    (pane,) = agents(home, "running")
    waiting = Waiting(home, pane if who == "ref" else who, "--for", "completed,error", "--timeout", "60s")
    tell(home, pane, state, attention={"kind": "approval", "summary": "rm -rf important"})
    status, out, _ = waiting.ended()
    assert (status, out) == (10, f"needs you: claude in host/work/@0/{pane} is {state}: rm -rf important\n")
    # Also if it asked before it was waited for: nothing but an answer would end that.
    done = home.run("wait", pane if who == "ref" else who, "--for", "completed,error", "--timeout", "60s", "--json")
    assert (done.returncode, json.loads(done.stdout)["needs_you"][0]["identity"]["pane_id"]) == (10, pane)
    # Unless that is what is waited for, or nobody wants to hear of it.
    done = home.run("wait", pane if who == "ref" else who, "--for", f"completed,{state}", "--timeout", "60s")
    assert done.returncode == 0
    done = home.run("wait", pane if who == "ref" else who, "--for", "completed", "--timeout", "0s", "--ignore-others")
    assert done.returncode == 124


def test_any_waits_on_while_one_that_asked_before_does_not_stop_the_others(home: Home, daemon: object):
    _asks, works = agents(home, "waiting_approval", "running")
    waiting = Waiting(home, "--any", "--for", "completed")
    tell(home, works, "completed")
    assert waiting.ended()[0] == 0


def test_one_that_waits_anew_counts(home: Home, daemon: object):
    pane, other = agents(home, "running", "waiting_approval")
    waiting = Waiting(home, pane, "--for", "completed")
    tell(home, other, "running")
    tell(home, other, "waiting_approval")
    status, out, _ = waiting.ended()
    assert (status, out.startswith("needs you: claude in ")) == (10, True)


def test_others_can_be_ignored(home: Home, daemon: object):
    pane, other = agents(home, "running", "running")
    waiting = Waiting(home, pane, "--for", "completed", "--ignore-others")
    tell(home, other, "waiting_approval")
    assert not waiting.is_over
    tell(home, pane, "completed")
    assert waiting.ended()[0] == 0


def test_an_agent_that_ends_ends_it(home: Home, daemon: object):
    pane, _ = agents(home, "running", "running")
    waiting = Waiting(home, pane, "--for", "completed", "--json")
    home.tmux("kill-pane", "-t", pane)
    status, out, complaints = waiting.ended()
    assert (status, json.loads(out)["error"]["code"]) == (5, "E_REF_NOT_FOUND")
    assert "has ended" in complaints


def test_an_agent_that_is_replaced_ends_it(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    before = home.panes()[pane]["runtime_id"]
    waiting = Waiting(home, pane, "--for", "unknown,completed")
    home.tmux("respawn-pane", "-k", "-t", pane, "sleep 3601")
    wait_until(lambda: home.panes()[pane]["runtime_id"] != before, "the next one")
    assert waiting.ended()[0] == 5, "the next one is unknown, and not who was meant"


def test_all_and_any(home: Home, daemon: object):
    first, second = agents(home, "running", "running")
    of_all, of_any = Waiting(home, "--all", "--for", "completed,idle"), Waiting(home, "--any", "--for", "completed")
    tell(home, first, "completed")
    status, out, _ = of_any.ended()
    assert (status, out.count("\n"), first in out) == (0, 1, True)
    assert not of_all.is_over
    tell(home, second, "idle")
    assert of_all.ended() == (0, "2 agents: 1 completed, 1 idle\n", "")


def test_with_all_one_of_them_that_asks_ends_it(home: Home, daemon: object):
    first, _ = agents(home, "running", "running")
    waiting = Waiting(home, "--all", "--for", "completed", "--json")
    tell(home, first, "waiting_input")
    status, content = waiting.result()
    assert (status, len(content["items"]), content["needs_you"][0]["identity"]["pane_id"]) == (10, 2, first)
    # Unless that is what is waited for.
    assert home.run("wait", "--any", "--for", "waiting_input").returncode == 0


def test_filters_choose_who_is_waited_for(home: Home, daemon: object):
    here, there = agents(home, "running", "completed")
    home.tmux("new-session", "-d", "-s", "a b/c", "sleep 3600")
    home.tmux("move-window", "-s", there, "-t", "=a b/c:9")
    wait_until(lambda: home.panes()[there]["identity"]["session_name"] == "a b/c", "the move")
    at_once = ("--all", "--for", "completed", "--timeout", "0s")
    assert home.run("wait", *at_once).returncode == 124
    assert home.run("wait", *at_once, "--session", "a b/c").returncode == 0
    assert home.run("wait", *at_once, "--target-session", "host/a%20b%2fc").returncode == 0
    assert home.run("wait", *at_once, "--target", "host", "--agent", "claude").returncode == 124
    assert home.state_of(here) == "running"


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["--for", "idle"], "E_USAGE", 2),
        (["--all"], "E_USAGE", 2),
        (["--all", "--any", "--for", "idle"], "E_USAGE", 2),
        (["%0", "--all", "--for", "idle"], "E_USAGE", 2),
        (["%0", "--for", "idle", "--agent", "claude"], "E_USAGE", 2),
        (["%0", "--for", "busy"], "E_USAGE", 2),
        (["%0", "--for", ","], "E_USAGE", 2),
        (["%0", "--for", "idle", "--timeout", "5"], "E_USAGE", 2),
        (["nonsense", "--for", "idle"], "E_REF_INVALID", 2),
        (["%99", "--for", "idle"], "E_REF_NOT_FOUND", 5),
        (["pane:host/work/@0/%99", "--for", "idle"], "E_REF_NOT_FOUND", 5),
        (["runtime:0123456789abcdef", "--for", "idle"], "E_REF_NOT_FOUND", 5),
        (["%0", "--for", "unknown"], "E_REF_NOT_FOUND", 5),
        (["--all", "--for", "idle"], "E_NOT_FOUND", 5),
        (["--all", "--for", "idle", "--target", "vm9"], "E_TARGET_NOT_FOUND", 5),
    ],
)
def test_what_cannot_be_waited_for_is_refused(home: Home, words: list[str], code: str, status: int):
    assert home.pane(agent=None) == "%0"
    home.start()
    wait_until(lambda: "%0" in home.panes(), "the pane")
    done = home.run("wait", *words, "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (status, code), done


def test_it_outlives_the_daemon(home: Home, daemon: subprocess.Popen[str]):
    pane, other = agents(home, "running", "waiting_approval")
    waiting = Waiting(home, pane, "--for", "completed", "--json")
    home.end(daemon)
    second = home.start()
    wait_until(lambda: home.health()["streams"] == 1, "its stream")
    second.kill()
    second.communicate()
    home.start()
    wait_until(lambda: home.health()["streams"] == 1, "its stream")
    assert not waiting.is_over, "the other one has waited all the time"
    tell(home, pane, "completed")
    status, content = waiting.result()
    assert (status, content["items"][0]["state"]) == (0, "completed")
    assert home.state_of(other) == "waiting_approval"


def test_without_a_daemon_time_runs_out_all_the_same(home: Home, daemon: subprocess.Popen[str]):
    (pane,) = agents(home, "running")
    waiting = Waiting(home, pane, "--for", "completed", "--timeout", "2s")
    home.end(daemon)
    status, out, complaints = waiting.ended()
    assert (status, out.startswith("timed out")) == (124, True)
    assert "waiting for it" in complaints
    assert home.lock_holder() is None, "who stopped it had a reason"


def test_that_nobody_reads_the_result_changes_no_status(home: Home, daemon: object):
    (pane,) = agents(home, "running")
    command = f'"{AGTMUX}" wait {pane} --for completed --timeout 500ms | true; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], env=home.env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("124\n", "")
    closed = f'"{AGTMUX}" wait {pane} --for running >&-'
    assert subprocess.run(["bash", "-c", closed], env=home.env, timeout=PATIENCE).returncode == 0
