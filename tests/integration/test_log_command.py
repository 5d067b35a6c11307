"""`agtmux log actions`: who did what to which agent, and what it did then."""

import json
from typing import Any

import pytest

from support.home import Home, event, wait_until


@pytest.fixture
def panes(home: Home) -> list[str]:
    made = [home.pane(), home.pane(agent="codex")]
    home.start()
    wait_until(lambda: set(made) <= set(home.panes()), "the panes")
    for pane in made:
        assert home.run("view-output", pane).returncode == 0
    return made


def listed(home: Home, *words: str) -> list[dict[str, Any]]:
    done = home.run("log", "actions", "--json", *words)
    assert done.returncode == 0, done
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return items


def test_an_action_is_told_with_the_agent_its_place_and_who_asked(home: Home, panes: list[str]):
    place = home.panes()[panes[1]]["ref"].removeprefix("pane:")
    table = home.run("log", "actions").stdout.splitlines()
    assert len(table) == 3
    assert table[1].split()[2:7] == ["view-output", "done", "cli", "codex", place]
    # Also once it is gone.
    home.tmux("kill-pane", "-t", panes[1])
    wait_until(lambda: panes[1] not in home.panes(), "its end")
    assert home.run("log", "actions").stdout.splitlines() == table
    assert [item["agent_type"] for item in listed(home)] == ["codex", "claude"]


def test_one_action_is_told_with_its_events(home: Home, panes: list[str]):
    action = listed(home)[1]
    said = home.ask("POST", "/v1/events", event(panes[0], "claude.UserPromptSubmit", raw_payload={}))
    assert said.json["status"] == "applied"
    (item,) = listed(home, "--action", action["action_id"][:12])
    assert item == action | {"events": item["events"]}
    # Its screen may have been seen meanwhile.
    events = [(each["relation"], each["event_type"]) for each in item["events"] if each["source"] != "poller"]
    assert events == [("own", "action.view-output"), ("followed", "claude.UserPromptSubmit")]
    lines = home.run("log", "actions", "--action", action["action_id"]).stdout.splitlines()
    assert lines[0] == f"view-output {action['action_id']}"
    assert "done, asked for by cli at" in lines[1]
    assert lines[2] == f"  claude in {action['ref'].removeprefix('pane:')}, runtime {action['runtime_id']}"
    assert [line for line in lines if "its hook reported claude.UserPromptSubmit (soon after it" in line]
    assert [line for line in lines if "agtmux noted action.view-output (this action itself)" in line]
    # It is no signal: what decides is the agent's own report.
    explained = json.loads(home.run("explain", panes[0], "--json").stdout)
    assert "claude.UserPromptSubmit" in {link["event_type"] for link in explained["evidence"]}
    assert not [link for link in explained["evidence"] if link["event_type"].startswith("action.")]


def test_filters_choose(home: Home, panes: list[str]):
    first, second = home.panes()[panes[0]], home.panes()[panes[1]]
    assert [item["agent_type"] for item in listed(home, "--ref", panes[0])] == ["claude"]
    assert [item["agent_type"] for item in listed(home, "--ref", second["ref"])] == ["codex"]
    assert [item["agent_type"] for item in listed(home, "--ref", f"runtime:{first['runtime_id']}")] == ["claude"]
    assert len(listed(home, "--type", "view-output", "--since", "1h")) == 2
    assert listed(home, "--type", "deny") == []
    assert listed(home, "--since", "1us") == []
    assert home.run("log", "actions", "--type", "deny").stdout == "nothing fits what was asked for\n"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--action", "0" * 32], 5, "E_NOT_FOUND"),
        (["--action", "0"], 2, "E_USAGE"),
        (["--action", "0" * 32, "--type", "deny"], 2, "E_USAGE"),
        (["--type", "nonsense"], 2, "E_USAGE"),
        (["--since", "yesterday"], 2, "E_USAGE"),
        (["--ref", "nonsense"], 2, "E_REF_INVALID"),
        (["--limit", "0"], 2, "E_USAGE"),
    ],
)
def test_what_cannot_be_found_is_said(home: Home, words: list[str], status: int, code: str):
    home.start()
    done = home.run("log", "actions", "--json", *words)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (status, code), done
    assert home.ask("GET", "/v1/actions?shoe=1").error["code"] == "E_USAGE"
