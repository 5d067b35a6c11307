"""The real agents with the bridge that `agtmux mcp register` gave them: they call every tool and get right answers."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agents import codex
from agents.bench import Stage
from agents.driven import PATIENCE, TARGET, Driven
from agents.install import PINNED
from agtmux.bridge.tools import TOOLS
from support.home import wait_until
from support.parrots import git, write_program, write_sheet

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
EVERY = [(name, versions[-1]) for name, versions in PINNED.items()]
# How the model has to call a tool, where that is not by its own name: Copilot has a list_agents itself.
NAMES = {"claude": "mcp__agtmux__{}", "copilot": "agtmux-{}"}
# Whoever looks at its settings again while it runs, and lets go of a server that is not there any more.
WATCHFUL = {"copilot"}
# In this order, with what the model must be told then: `helper` is launched, written to, looked at and stopped.
CALLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("list_agents", {}, '"is_you":true'),
    ("get_agent", {"agent": "you"}, '"evidence":['),
    (
        "launch_agent",
        {"agent": "parrot", "branch": "labels", "role": "helper", "prompt": "print labels"},
        '/parcels.worktrees/labels","branch":"labels","is_new_worktree":true',
    ),
    ("send_message", {"to": "helper", "content": "print two more"}, '"to":"helper","status":"delivered"'),
    ("broadcast_message", {"content": "main is red"}, '"sent_count":1'),
    ("read_messages", {"include_delivered": True}, '"content":"what is new?"'),
    ("wait_for_messages", {"timeout_seconds": 60}, '"content":"main is green"'),
    ("get_changed_files", {"agent": "helper"}, '"path":"label.py","status":"modified"'),
    ("get_worktree_diff", {"agent": "helper"}, "+weight = 2"),
    ("stop_agent", {"agent": "helper"}, '"ended_by":"asked"'),
)
# What is refused is told in words, with what to do next.
REFUSED = (
    ("send_message", {"to": "nobody-9", "content": "hello"}, "E_REF_NOT_FOUND: no agent is called 'nobody-9'"),
    ("stop_agent", {"agent": "you"}, "E_FORBIDDEN"),
)


class Bridged(Driven):
    def _prepared(self, stage: Stage) -> None:
        # Another agent to launch, which needs neither account nor settings.
        write_program(stage.folder / "parrots")
        write_sheet(stage.home / "config", stage.folder / "parrots")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Begin")):
            git(stage.project, *words)
        super()._prepared(stage)
        assert self.home is not None
        done = self.home.run("mcp", "register", "--agent", self.agent.NAME)
        assert done.returncode == 0 and "registered now" in done.stdout, done

    @property
    def name(self) -> str:
        return f"{self.agent.NAME}-0@{TARGET}"

    def bridges(self) -> list[int]:
        """The processes of its own."""
        found = []
        for pid in self.pane.processes():
            with contextlib.suppress(OSError):
                if b"agtmux-mcp" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def parroted(self) -> list[str]:
        """What the agent was told that it has launched."""
        (log,) = (self.pane.stage.folder / "parrots").glob("*.log")
        lines = (json.loads(line) for line in log.read_text().splitlines())
        return [line["data"] for line in lines if line["what"] == "submit"]

    def heard(self) -> str:
        """All that the model was told, without the quoting of text within text."""
        return "".join(json.dumps(exchange.body) for exchange in self.pane.server.main).replace("\\", "")

    def told(self) -> str:
        """What the model has before it now, however its agent writes JSON."""
        last = json.dumps(self.pane.server.main[-1].body).replace("\\", "")
        return last.replace('": ', '":').replace(', "', ',"')

    def call(
        self, tool: str, arguments: dict[str, Any] | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> str:
        """What the model has before it then. `meanwhile` is called again and again while the tool is at work."""
        name = NAMES.get(self.agent.NAME, "{}").format(tool)
        turns = len(self.pane.server.main)
        self.say(f"Look around. do:tool{{{{{name}|{json.dumps(arguments or {})} }}}}")
        deadline = time.monotonic() + 2 * PATIENCE
        # Once more with what the tool gave.
        while len(self.pane.server.main) < turns + 2:
            assert time.monotonic() < deadline, self.pane.screen()
            if re.search(self.manners.dialog, self.pane.screen()):
                self.pane.settle(0.3)
                self.press(*self.manners.approve)
                self.pane.wait_until(lambda: not re.search(self.manners.dialog, self.pane.screen()), "the answer")
            elif not self.pane.server.busy:
                meanwhile()
            time.sleep(0.1)
        self.agent.ready(self.pane)
        return self.told()

    def write(self, text: str) -> None:
        """A message of its user's, to the end of what comes of it."""
        assert self.home is not None
        done = self.home.run("message", "send", self.name, text, "--wait", "10s", "--json")
        assert done.returncode == 0, f"{done}\n{self.pane.screen()}"
        self.pane.wait_until(lambda: not self.pane.server.busy, "the end of the turn")

    def news(self) -> None:
        """Until it has fetched one: what comes before it waits is typed."""
        assert self.home is not None
        if all(item["via"] != "pulled" for item in self.home.ask("GET", "/v1/messages").json["items"]):
            self.write("main is green")


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_an_agent_calls_every_tool_and_is_told_who_it_is(name: str, version: str) -> None:
    """gwt FR-007 to FR-014, FR-021."""
    assert {tool for tool, _, _ in CALLS} == set(TOOLS)
    with Bridged(import_module(f"agents.{name}"), version, hooks=False) as its:
        item = its.expect("idle").item
        assert item is not None and its.home is not None
        # Another one is launched beside it.
        its.pane.only_pane = its.pane.format("#{pane_id}")
        tree = its.pane.stage.folder / "parcels.worktrees" / "labels"
        for tool, arguments, tells in CALLS:
            if tool == "read_messages":
                its.write("what is new?")
                its.agent.ready(its.pane)
            if tool == "get_changed_files":
                (tree / "label.py").write_text("weight = 2\n")
            told = its.call(tool, arguments, its.news if tool == "wait_for_messages" else lambda: None)
            assert "E_" not in told, told[told.index("E_") - 300 :][:900]
            assert tells in told, f"{tool}: {told[-3000:]}"
            print(f"{name} {version} {tool}: {tells}")
        you = f'"you":{{"name":"{its.name}","ref":"{item["ref"]}","runtime_id":"{item["runtime_id"]}"'
        assert told.count(you) == 2, told[-3000:]
        *messages, end = its.parroted()
        written = [
            f"[agtmux msg from {its.name}]: {text}" for text in ("print labels", "print two more", "main is red")
        ]
        assert (messages, end) == (written, "/exit")
        for tool, arguments, tells in REFUSED:
            told = its.call(tool, arguments)
            assert tells in told, f"{tool}: {told[-3000:]}"
        # Taken back, it stays so while the agent goes on, which has its bridge.
        assert its.bridges()
        assert "not registered now" in its.home.run("mcp", "unregister", "--agent", name).stdout
        if name in WATCHFUL:
            wait_until(lambda: not its.bridges(), "the end of its bridge")
            its.say("Hello.")
            assert "agtmux-list_agents" not in json.dumps(its.pane.server.main[-1].body["tools"])
        else:
            assert its.call("list_agents").count(you) == 3
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
        assert all("several panes" in why and "daemon_auto_start" in why for _, why in told)


def _at_rest(its: Driven) -> list[str]:
    assert its.home is not None
    items = its.home.ask("GET", f"/v1/panes?target={TARGET}").json["items"]
    return [item["identity"]["pane_id"] for item in items if item["state"] in ("idle", "completed")]
