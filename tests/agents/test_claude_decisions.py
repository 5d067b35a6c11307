"""Claude Code's dialogs answered without a key, and by hand while somebody could have answered them from elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agents import claude_setup
from agents.bench import AgentPane, Launch, Stage
from agents.claude_actions import say
from agents.install import PINNED, install
from agtmux.actions.decisions import Handed, Waiting
from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.install.plan import install_hooks
from agtmux.agents.registry import Registry
from agtmux.domain.panes import Target, TargetKind
from agtmux.domain.runtimes import TargetId
from support.home import COMMANDS, Home
from support.inside import InsideDaemon

# The first run of a version fetches it.
pytestmark = pytest.mark.timeout(900)
VERSIONS = pytest.mark.parametrize("version", PINNED["claude"])
EVERY = pytest.mark.agents

NEWEST = PINNED["claude"][-1]
DIALOG = r"1\. Yes"
ASK = "Make a label. do:bash{{touch label.txt}}"
PLAN = "Plan it. do:planfile{{# Labels first}} then:plan{{# Labels first}}"


class Reporting:
    """Claude Code as it is after `agtmux hooks install`."""

    NAME = claude_setup.NAME
    PROTOCOLS = claude_setup.PROTOCOLS
    ready = staticmethod(claude_setup.ready)

    def prepare(self, stage: Stage) -> Launch:
        launch = claude_setup.prepare(stage)
        sheet = Registry.load().sheet(self.NAME)
        files, backups = LocalFiles({"HOME": str(stage.home)}), Backups(stage.folder / "backups")
        install_hooks(sheet, files, str(COMMANDS / "agtmux-hook"), backups, version=stage.version)
        return replace(launch, env=launch.env | {"AGTMUX_STATE_DIR": str(stage.folder / "state")})


@dataclass
class Scene:
    pane: AgentPane
    daemon: InsideDaemon

    def ask(self, prompt: str = ASK) -> Waiting:
        """Until the dialog is there and its hook waits."""
        say(prompt)(self.pane)
        self.pane.wait_for(DIALOG)
        self.pane.wait_until(self.waiting, "the hook to wait")
        question = self.waiting()
        assert question is not None
        assert self.state() == "waiting_approval"
        # For those who answer by hand: a dialog that is still being drawn takes no key.
        self.pane.settle()
        return question

    def waiting(self) -> Waiting | None:
        world, decisions = self.daemon.service.world, self.daemon.service.decisions
        return self.daemon.ask(lambda: next(filter(None, map(decisions.waiting, list(world.by_runtime))), None))

    def decide(self, question: Waiting, *, allow: bool, message: str = "") -> Handed:
        decide = self.daemon.service.decisions.decide
        return self.daemon.call(decide(question.runtime_id, question.event_id, allow=allow, message=message))

    def state(self) -> str:
        records = self.daemon.service.world.records
        return self.daemon.ask(lambda: next((str(each.row.state) for each in records.values()), ""))

    def becomes(self, *states: str) -> None:
        self.pane.wait_until(lambda: self.state() in states, " or ".join(states))

    def nobody_waits(self) -> None:
        decisions = self.daemon.service.decisions
        self.pane.wait_until(lambda: self.daemon.ask(lambda: decisions.waiter_count) == 0, "no waiter")
        self.pane.wait_until(lambda: not hooks(self.pane), "no hook")

    @property
    def label(self) -> Path:
        return self.pane.stage.project / "label.txt"


def hooks(pane: AgentPane) -> list[int]:
    """The hooks that run for that agent, or did before it was killed."""
    pids = ",".join(map(str, pane.processes())) or "0"
    listed = subprocess.run(["ps", "-o", "pid=,command=", "-p", pids], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "agtmux-hook" in line]


def told_to_the_model(pane: AgentPane) -> list[object]:
    """What came of the tools it called, in its own words."""
    blocks = [block for message in pane.server.main[-1].body["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if isinstance(block, dict) and block["type"] == "tool_result"]


@contextlib.contextmanager
def a_pane(version: str, *wishes: str) -> Iterator[AgentPane]:
    pane = AgentPane(Reporting(), install("claude", version), version, wishes=frozenset(wishes))
    with contextlib.closing(pane):
        yield pane


@contextlib.contextmanager
def a_scene(version: str, *wishes: str) -> Iterator[Scene]:
    with a_pane(version, *wishes) as pane, pytest.MonkeyPatch.context() as patch:
        for name, value in Home(pane.stage.folder).env.items():
            patch.setenv(name, value)
        with InsideDaemon(pane.stage.folder / "state") as daemon:
            pane.start()
            target = Target(TargetId("bench"), TargetKind.LOCAL, tmux_socket=str(pane.stage.socket))
            daemon.call(daemon.service.fleet.add(target))
            claude_setup.ready(pane)
            yield Scene(pane, daemon)


def is_allowed_without_a_key(version: str) -> None:
    with a_scene(version) as scene:
        question = scene.ask()
        assert question.attention is not None
        assert question.attention.summary == "touch label.txt"
        assert not scene.label.exists()
        assert scene.decide(question, allow=True) is Handed.HANDED_OVER
        scene.pane.wait_until(scene.label.exists, "the label")
        scene.pane.wait_until(lambda: not re.search(DIALOG, scene.pane.screen()), "the end of the dialog")
        scene.becomes("completed", "idle")
        scene.nobody_waits()


def test_the_newest_version_takes_an_approval_without_a_key() -> None:
    is_allowed_without_a_key(NEWEST)


@EVERY
@VERSIONS
def test_an_approval_without_a_key(version: str) -> None:
    is_allowed_without_a_key(version)


@EVERY
@VERSIONS
def test_a_refusal_and_its_reason_reach_the_model(version: str) -> None:
    with a_scene(version) as scene:
        question = scene.ask()
        assert scene.decide(question, allow=False, message="not on a friday") is Handed.HANDED_OVER
        scene.becomes("completed", "idle")
        assert told_to_the_model(scene.pane) == ["not on a friday"]
        assert not scene.label.exists()
        scene.nobody_waits()


@EVERY
@VERSIONS
@pytest.mark.parametrize("allow", [True, False])
def test_a_plan_is_decided_without_a_key(version: str, allow: bool) -> None:
    with a_scene(version, "plan") as scene:
        question = scene.ask(PLAN)
        assert question.attention is not None
        assert question.attention.kind == "plan"
        assert scene.decide(question, allow=allow, message="labels last") is Handed.HANDED_OVER
        scene.becomes("completed", "idle")
        outcome = str(told_to_the_model(scene.pane)[-1])
        assert ("User has approved your plan" if allow else "labels last") in outcome
        scene.pane.wait_until(lambda: ("plan mode on" in scene.pane.screen()) is not allow, "the mode")


@EVERY
@VERSIONS
@pytest.mark.parametrize("lasting", [False, True], ids=["a moment", "lasting"])
def test_the_user_is_first_in_the_dialog(version: str, lasting: bool) -> None:
    command = "touch label.txt && tail -f README.md" if lasting else "touch label.txt"
    with a_scene(version) as scene:
        question = scene.ask(f"Make a label. do:bash{{{{{command}}}}}")
        assert hooks(scene.pane)
        scene.pane.keys("Enter")
        scene.pane.wait_until(scene.label.exists, "the label")
        # No hook tells that the dialog is gone before the tool is done; the screen does.
        scene.nobody_waits()
        scene.becomes("running" if lasting else "completed")
        assert scene.decide(question, allow=False) is Handed.NOBODY_WAITS


@EVERY
@VERSIONS
def test_the_user_leaves_the_dialog_with_escape(version: str) -> None:
    with a_scene(version) as scene:
        question = scene.ask()
        scene.pane.keys("Escape")
        scene.nobody_waits()
        scene.becomes("idle")
        assert scene.decide(question, allow=True) is Handed.NOBODY_WAITS
        assert not scene.label.exists()


@EVERY
@VERSIONS
def test_the_next_question_is_not_answered_with_the_last_ones_answer(version: str) -> None:
    with a_scene(version) as scene:
        first = scene.ask()
        scene.pane.keys("Enter")
        scene.nobody_waits()
        scene.becomes("completed", "idle")
        second = scene.ask("Make another. do:bash{{touch second.txt}}")
        assert scene.decide(first, allow=True) is Handed.NOBODY_WAITS
        assert re.search(DIALOG, scene.pane.screen())
        assert scene.decide(second, allow=False) is Handed.HANDED_OVER
        scene.becomes("completed", "idle")
        assert not (scene.pane.stage.project / "second.txt").exists()


@EVERY
@VERSIONS
def test_a_question_is_left_to_the_user(version: str) -> None:
    with a_scene(version) as scene:
        say("Ask me. do:ask{{Which parcel goes first?|Red|Blue}}")(scene.pane)
        scene.pane.wait_for("Which parcel goes first")
        scene.becomes("waiting_input")
        scene.nobody_waits()
        scene.pane.settle()
        scene.pane.keys("Enter")
        scene.becomes("completed", "idle")


@EVERY
@VERSIONS
def test_the_dialog_works_by_hand_when_the_daemon_was_killed(version: str) -> None:
    with a_pane(version) as pane:
        home = Home(pane.stage.folder)
        with contextlib.closing(home):
            daemon = home.start()
            pane.start()
            target = {"name": "bench", "tmux_socket": str(pane.stage.socket)}
            assert home.ask("POST", "/v1/targets", target).status == 200
            claude_setup.ready(pane)
            say(ASK)(pane)
            pane.wait_for(DIALOG)
            pane.wait_until(lambda: home.health()["waiting_hooks"] == 1, "the hook to wait")
            assert hooks(pane)
            pane.settle()
            os.kill(daemon.pid, signal.SIGKILL)
            pane.wait_until(lambda: not hooks(pane), "no hook")
            assert re.search(DIALOG, pane.screen())
            pane.keys("Enter")
            pane.wait_until((pane.stage.project / "label.txt").exists, "the label")
            pane.wait_for("All done")


@EVERY
@VERSIONS
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_nothing_is_left_of_an_agent_that_was_killed(version: str, number: int) -> None:
    with a_scene(version) as scene:
        question = scene.ask()
        os.kill(scene.pane.foreground(), number)
        scene.nobody_waits()
        scene.becomes("unknown")
        assert scene.decide(question, allow=True) is Handed.NOBODY_WAITS
