"""The real agents with the bridge that `agtmux mcp register` gave them: they call every tool and get right answers."""

from __future__ import annotations

import json
import re
import time
from importlib import import_module

import pytest

from agents import codex
from agents.bench import Stage
from agents.driven import PATIENCE, TARGET, Driven
from agents.install import PINNED
from agtmux.bridge.tools import TOOLS
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
EVERY = [(name, versions[-1]) for name, versions in PINNED.items()]
# How the model has to call a tool, where that is not by its own name: Copilot has a list_agents itself.
NAMES = {"claude": "mcp__agtmux__{}", "copilot": "agtmux-{}"}
CALLS = {"list_agents": {}, "get_agent": {"agent": "you"}}


class Bridged(Driven):
    def _prepared(self, stage: Stage) -> None:
        super()._prepared(stage)
        assert self.home is not None
        done = self.home.run("mcp", "register", "--agent", self.agent.NAME)
        assert done.returncode == 0 and "registered now" in done.stdout, done

    def heard(self) -> str:
        """All that the model was told, without the quoting of text within text."""
        return "".join(json.dumps(exchange.body) for exchange in self.pane.server.main).replace("\\", "")

    def call(self, tool: str) -> None:
        name = NAMES.get(self.agent.NAME, "{}").format(tool)
        turns = len(self.pane.server.main)
        self.say(f"Look around. do:tool{{{{{name}|{json.dumps(CALLS[tool])} }}}}")
        deadline = time.monotonic() + PATIENCE
        # Once more with what the tool gave.
        while len(self.pane.server.main) < turns + 2:
            assert time.monotonic() < deadline, self.pane.screen()
            if re.search(self.manners.dialog, self.pane.screen()):
                self.pane.settle(0.3)
                self.press(*self.manners.approve)
                self.pane.wait_until(lambda: not re.search(self.manners.dialog, self.pane.screen()), "the answer")
            time.sleep(0.1)
        self.agent.ready(self.pane)


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_an_agent_calls_every_tool_and_is_told_who_it_is(name: str, version: str) -> None:
    """gwt FR-007, FR-008, FR-021."""
    assert set(CALLS) == set(TOOLS)
    with Bridged(import_module(f"agents.{name}"), version, hooks=False) as its:
        item = its.expect("idle").item
        assert item is not None
        for tool in TOOLS:
            its.call(tool)
            told = its.heard()
            print(f"{name} {version} {tool}:", *re.findall(r'"you": ?[^}]*}', told)[-1:])
            assert re.search(rf'"you": ?{{"ref": ?"{re.escape(item["ref"])}"', told), told[-3000:]
            assert "E_" not in told
        assert re.search(r'"is_you": ?true', its.heard())
        assert f'"runtime_id":"{item["runtime_id"]}"' in its.heard().replace('": "', '":"')
        # Taken back, it stays so while the agent goes on, which has its bridge.
        assert its.home is not None
        assert "not registered now" in its.home.run("mcp", "unregister", "--agent", name).stdout
        turns = its.heard().count('"is_you"')
        its.call("list_agents")
        assert its.heard().count('"is_you"') > turns
        assert "not registered (" in its.home.run("mcp", "status", "--agent", name).stdout


class WithServer(Bridged):
    """As users of Codex have it who have not switched its app server off, which starts the bridges of all panes."""

    def _prepared(self, stage: Stage) -> None:
        settings = stage.home / ".codex" / "config.toml"
        settings.write_text(settings.read_text().replace("daemon_auto_start = false\n", ""))
        super()._prepared(stage)


def test_who_shares_a_process_with_other_panes_is_nobody_rather_than_one_of_them() -> None:
    with WithServer(codex, PINNED["codex"][-1], hooks=False) as its:
        first = its.expect("idle").item
        assert first is not None and its.home is not None
        its.call("list_agents")
        pane = its.pane.format("#{pane_id}")
        its.pane.tmux("split-window", "-b", "-t", pane, "-c", str(its.pane.stage.project), *its.again())
        second = its.pane.format("#{pane_id}")
        assert second != pane
        wait_until(lambda: second in _at_rest(its), "the second one's prompt", 60)
        its.pane.settle()
        its.call("list_agents")
        told = re.findall(r'"you": ?(null|{[^}]*}), ?"you_unknown": ?(null|"[^"]*")', its.heard())
        print(set(told))
        assert told and {you for you, _ in told} == {"null"}
        assert all("several panes" in why or "does not run in a pane" in why for _, why in told)


def _at_rest(its: Driven) -> list[str]:
    assert its.home is not None
    items = its.home.ask("GET", f"/v1/panes?target={TARGET}").json["items"]
    return [item["identity"]["pane_id"] for item in items if item["state"] in ("idle", "completed")]
