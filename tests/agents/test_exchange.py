"""Two real agents with the bridge: one asks the other, which answers, and nobody presses a key in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agents.bench import AgentPane, Launch, Stage
from agents.driven import TARGET, Driven
from agents.install import PINNED, install
from agents.model.server import ModelProtocol
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
PAIRS = [*((name, name) for name in PINNED), ("claude", "codex")]
SEND = {"claude": "mcp__agtmux__send_message", "copilot": "agtmux-send_message"}
# Only in the prompt of the one that asks.
MARK = "Ask the other one."
QUESTION = "How many labels are there?"
ANSWER = "There are 4711 labels."


def _settings(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))


def _allow_claude(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    _settings(path, lambda settings: settings["permissions"]["allow"].append("mcp__agtmux"))


def _allow_codex(home: Path) -> None:
    with (home / ".codex" / "config.toml").open("a") as settings:
        settings.write('\n[mcp_servers.agtmux.tools.send_message]\napproval_mode = "approve"\n')


def _allow_gemini(home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    _settings(path, lambda settings: settings["mcpServers"]["agtmux"].update(trust=True))


# What their users have said before: that this server's tools need not be asked about.
ALLOW = {"claude": _allow_claude, "codex": _allow_codex, "gemini": _allow_gemini}
ARGUMENTS = {"copilot": ("--allow-tool", "agtmux")}


class Couple:
    """Two agents in one home, as the bench knows one."""

    def __init__(self, first: str, second: str) -> None:
        self.NAME = first
        self.first, self.second = import_module(f"agents.{first}"), import_module(f"agents.{second}")
        self.agents = [self.first] if first == second else [self.first, self.second]
        self.PROTOCOLS: tuple[ModelProtocol, ...] = tuple(each for one in self.agents for each in one.PROTOCOLS)
        self.launches: dict[str, Launch] = {}

    def prepare(self, stage: Stage) -> Launch:
        for one in self.agents:
            version = PINNED[one.NAME][-1]
            executable = install(one.NAME, version)
            launch = one.prepare(replace(stage, executable=executable, version=version))
            self.launches[one.NAME] = replace(launch, arguments=(*launch.arguments, *ARGUMENTS.get(one.NAME, ())))
            if one is not self.first:
                (stage.folder / "bin" / one.NAME).symlink_to(executable)
        env = {name: value for each in self.launches.values() for name, value in each.env.items()}
        return replace(self.launches[self.NAME], env=env)

    def ready(self, pane: AgentPane) -> None:
        self.first.ready(pane)


class Paired(Driven):
    """The first in the window that the bench looks at, the second in another."""

    def __init__(self, first: str, second: str) -> None:
        self.couple = Couple(first, second)
        super().__init__(self.couple, PINNED[first][-1], hooks=False)  # type: ignore[arg-type]

    def _prepared(self, stage: Stage) -> None:
        super()._prepared(stage)
        assert self.home is not None
        for one in self.couple.agents:
            done = self.home.run("mcp", "register", "--agent", one.NAME)
            assert done.returncode == 0 and "registered now" in done.stdout, done
            ALLOW.get(one.NAME, lambda _: None)(stage.home)

    def begin(self) -> tuple[str, str]:
        """Both are there and at rest; what they are called."""
        second = self.couple.second
        one = self.pane.format("#{pane_id}")
        words = self.again(second.NAME, *self.couple.launches[second.NAME].arguments)
        self.pane.tmux("new-window", "-c", str(self.pane.stage.project), *words)
        two = self.pane.format("#{pane_id}")
        assert one != two
        second.ready(self.pane)
        self.pane.tmux("select-window", "-t", one)
        wait_until(lambda: self.states() == {one: "idle", two: "idle"}, "both at rest", 60)
        names = [
            f"{each}-{pane.removeprefix('%')}@{TARGET}" for each, pane in ((self.couple.NAME, one), (second.NAME, two))
        ]
        return names[0], names[1]

    def states(self) -> dict[str, str]:
        assert self.home is not None
        items = self.home.ask("GET", f"/v1/panes?target={TARGET}").json["items"]
        return {item["identity"]["pane_id"]: item["state"] for item in items}

    def messages(self) -> list[dict[str, Any]]:
        """The oldest first."""
        assert self.home is not None
        return list(reversed(self.home.ask("GET", "/v1/messages").json["items"]))

    def heard(self, *, is_first: bool) -> str:
        """All that the model of one of them has before it."""
        bodies = [json.dumps(each.body, ensure_ascii=False) for each in self.pane.server.main]
        return next((body for body in reversed(bodies) if (MARK in body) is is_first), "")


def _tool(agent: str, **arguments: Any) -> str:
    return f"{SEND.get(agent, 'send_message')}|{json.dumps(arguments)} "


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_one_asks_the_other_which_answers_and_nobody_presses_a_key(first: str, second: str) -> None:
    """gwt FR-009, FR-021; orchestrator: replies, correlation, task flow."""
    with Paired(first, second) as its:
        one, two = its.begin()
        reply = _tool(second, to=one, content=ANSWER, type="task_complete", reply_to="$message_id")
        asked = _tool(first, to=two, content=f"{QUESTION} do:tool(({reply}))", type="task_request", task_id="t1")
        its.say(f"{MARK} do:tool{{{{{asked}}}}}")

        def is_over() -> bool:
            return [each["status"] for each in its.messages()] == ["delivered"] * 2 and not its.pane.server.busy

        try:
            wait_until(is_over, "the request and the reply", 90)
            # With who has sent it: the words alone are in what was asked, too.
            told = f"[agtmux msg from {two}]: {ANSWER}"
            wait_until(lambda: told in its.heard(is_first=True), "the answer at the model", 60)
            wait_until(lambda: set(its.states().values()) <= {"idle", "completed"}, "both at rest", 60)
        except AssertionError as error:
            screens = [its.pane.tmux("capture-pane", "-p", "-t", pane) for pane in its.states()]
            raise AssertionError(
                f"{error}: {its.messages()}\n{its.pane.server.failures}\n{'='.join(screens)}"
            ) from None

        request, answer = its.messages()
        print(
            *((each["from_agent"], each["to_agent"], each["type"], each["duration_ms"]) for each in (request, answer))
        )
        assert (request["from_agent"], request["to_agent"], request["type"]) == (one, two, "task_request")
        assert (answer["from_agent"], answer["to_agent"], answer["type"]) == (two, one, "task_complete")
        assert {request["via"], answer["via"]} == {"typed"} and request["settled_at"] < answer["settled_at"]
        assert answer["reply_to"] == request["message_id"]
        assert {answer["task_id"], request["task_id"]} == {"t1"}
        assert answer["correlation_id"] == request["correlation_id"]
        assert its.heard(is_first=False).count(f"[agtmux msg from {one}]: {QUESTION}") == 1
        assert its.heard(is_first=True).count(f"[agtmux msg from {two}]: {ANSWER}") == 1
        assert f"in reply to {request['message_id']}, task t1)" in its.heard(is_first=True)
        # Nobody was asked anything on the way.
        assert its.timeline is not None
        assert not [each for each in its.timeline.shown if each.state.startswith("waiting")]
