"""Every state of every agent, reached, held and left, with its hooks and without any, on the real programs."""

from __future__ import annotations

import importlib
import os
import signal
import time

import pytest

from agents.driven import Driven
from agents.install import PINNED

pytestmark = pytest.mark.timeout(900)

WAYS = [
    pytest.param(agent, version, hooks, id=f"{agent}-{version}-{'hooks' if hooks else 'no-hooks'}")
    for agent, versions in PINNED.items()
    for version in versions
    for hooks in (True, False)
]
SMOKE = [pytest.param(agent, versions[-1], id=f"{agent}-{versions[-1]}") for agent, versions in PINNED.items()]

# A turn that is over was seen to end if it was seen at all.
OVER = ("completed", "idle")


def driven(agent: str, version: str, hooks: bool) -> Driven:
    return Driven(importlib.import_module(f"agents.{agent}"), version, hooks=hooks)


@pytest.mark.parametrize(("agent", "version"), SMOKE)
def test_a_real_agent_is_seen_to_work_to_ask_and_to_finish(agent: str, version: str, measured) -> None:
    with driven(agent, version, hooks=True) as its:
        its.expect("idle")
        its.say("Make a label. do:bash{{touch label.txt}}")
        asked = its.expect("waiting_approval")
        assert asked.item is not None
        assert "touch label.txt" in asked.item["attention"]["summary"]
        assert not (its.pane.stage.project / "label.txt").exists()
        its.approve()
        its.expect("completed")
        assert (its.pane.stage.project / "label.txt").exists()
        measured[f"{agent} hook → shown"] += its.hook_delays()


@pytest.mark.agents
@pytest.mark.parametrize(("agent", "version", "hooks"), WAYS)
def test_every_state_is_reached_held_and_left(agent: str, version: str, hooks: bool, measured) -> None:
    def note(what: str, since: float, shown: float) -> None:
        measured[f"{agent} {'with' if hooks else 'without'} hooks: {what}"].append(shown - since)

    with driven(agent, version, hooks) as its:
        manners, project = its.manners, its.pane.stage.project
        its.expect("idle")
        its.holds("idle", seconds=1.5)

        its.say("Tell me. do:slow{{4}}")
        its.expect("running", limit=3)
        its.holds("running", seconds=1.5)
        its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
        its.expect("completed", limit=5)
        its.expect("idle", limit=12)

        its.say("Make a label. do:bash{{touch one.txt}}")
        its.expect("waiting_approval")
        its.holds("waiting_approval", seconds=4)
        assert its.now.item is not None and its.now.item["attention"]["kind"] == "approval"
        assert "touch one.txt" in its.now.item["attention"]["summary"]
        its.approve()
        its.expect(*OVER, limit=10)
        assert (project / "one.txt").exists()

        its.say("Make a label. do:bash{{touch two.txt}}")
        its.expect("waiting_approval")
        its.holds("waiting_approval", seconds=2)
        pressed = its.deny()
        note("denied", pressed, its.expect("idle", limit=6).at)
        its.pane.settle()
        its.expect("idle", limit=5)
        its.holds("idle", seconds=1.5)
        assert not (project / "two.txt").exists()

        its.say("Tell me. do:slow{{60}}")
        its.expect("running", limit=3)
        its.holds("running", seconds=3)
        pressed = its.interrupt()
        stopped = its.expect("idle", limit=6)
        note("interrupted", pressed, stopped.at)
        its.holds("idle", seconds=1.5)
        assert its.now.item is not None and its.now.item["reason_code"] == "interrupted"

        its.say(f"Wait for it. do:bash{{{{{manners.lasting}}}}}")
        if manners.lasting_asks:
            its.expect("waiting_approval")
            its.approve()
        its.expect("running", limit=10)
        its.pane.wait_until(lambda: its.pane.runs(manners.lasting.split()[0]), "the tool's process")
        its.expect("running", limit=5)
        its.holds("running", seconds=2.5)
        pressed = its.interrupt()
        # Without hooks to tell of the end of a turn, there is no telling how it ended where the screen does not say.
        rest = ("idle",) if hooks else OVER
        note("interrupted at a tool", pressed, its.expect(*rest, limit=8).at)
        its.holds(*rest, seconds=1.5)

        its.say("Ask me. do:ask{{Which parcel goes first?|Red|Blue}}")
        its.expect("waiting_input")
        its.holds("waiting_input", seconds=3)
        assert its.now.item is not None and its.now.item["attention"]["kind"] == "question"
        assert "Which parcel goes first?" in its.now.item["attention"]["summary"]
        its.choose()
        its.expect(*OVER, limit=10)

        its.say(f"Fail. do:error{{{{{manners.error}}}}}")
        failed = time.time()
        shown = its.expect("error", limit=15)
        note("failed", failed, shown.at)
        its.holds("error", seconds=2)

        its.say("Go on. do:slow{{3}}")
        its.expect("running", limit=3)
        its.expect("completed", limit=8)

        os.killpg(its.pane.foreground(), signal.SIGKILL)
        its.expect("none", limit=6)
        if hooks:
            measured[f"{agent} with hooks: hook → shown"] += its.hook_delays()
