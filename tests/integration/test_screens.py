"""States that only the screen tells: real panes that show recorded screens of real agents."""

import json
from pathlib import Path

import pytest

from support.home import Home, wait_until

CORPUS = Path(__file__).parents[1] / "corpus"


def recorded(agent: str, state: str, kind: str) -> Path:
    """The first case of that agent that fits, at a size that fits the pane."""
    for path in sorted(CORPUS.glob(f"{agent}/*/{kind}*-80x24/case.json"), reverse=True):
        label = json.loads(path.read_text("utf-8"))
        if label["state"] == state:
            return path.parent / "screen.ansi"
    raise AssertionError(f"nothing recorded of {agent} {state} {kind}")


def showing(home: Home, agent: str, screen: Path) -> str:
    pane = home.tmux("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "24", f"cat '{screen}'; sleep 3600")
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", agent)
    return pane


@pytest.mark.parametrize(
    ("agent", "state", "kind"),
    [
        ("claude", "waiting_approval", "approval-bash"),
        ("claude", "idle", "idle-start"),
        ("codex", "waiting_approval", "approval-bash"),
        ("codex", "error", "error"),
        ("copilot", "waiting_approval", "approval-bash"),
        ("gemini", "waiting_approval", "approval-bash"),
    ],
)
def test_what_an_agent_does_is_seen_without_any_hook(home: Home, agent: str, state: str, kind: str) -> None:
    pane = showing(home, agent, recorded(agent, state, kind))
    home.start()
    wait_until(lambda: home.state_of(pane) == state, f"{state} of {agent}")
    item = home.panes()[pane]
    assert item["source"] == "poller"
    assert (item["attention"] is not None) == (state != "idle")


def test_a_dialog_that_was_answered_is_seen_to_be_gone(home: Home) -> None:
    waiting = recorded("claude", "waiting_approval", "approval-bash")
    idle = recorded("claude", "idle", "idle-start")
    pane = home.tmux(
        *("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "24"),
        f"cat '{waiting}'; read x; clear; cat '{idle}'; sleep 3600",
    )
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
    home.start()
    wait_until(lambda: home.state_of(pane) == "waiting_approval", "the dialog")
    home.tmux("send-keys", "-t", pane, "Enter")
    wait_until(lambda: home.state_of(pane) == "completed", "the prompt after a turn")


def test_a_hook_that_nothing_follows_is_overruled_by_what_is_seen(home: Home) -> None:
    """An interrupt fires no hook: what was told stays `running` for ever if nobody looks."""
    pane = showing(home, "claude", recorded("claude", "idle", "idle-start"))
    home.start()
    wait_until(lambda: home.state_of(pane) == "idle", "the prompt")
    answer = home.ask("POST", "/v1/events", _told(pane))
    assert answer.json["status"] == "applied"
    assert home.state_of(pane) == "running"
    wait_until(lambda: home.state_of(pane) == "idle", "the prompt, seen again")
    reasons = {link["role"]: link["source"] for link in _explained(home, pane)}
    assert reasons == {"decides": "poller", "overruled": "hook"}


def _told(pane: str) -> dict:
    from support.home import event

    return event(pane, "state.running")


def _explained(home: Home, pane: str) -> list[dict]:
    ref = home.panes()[pane]["ref"]
    done = home.run("explain", ref, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["evidence"]
