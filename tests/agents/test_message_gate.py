"""Messages to real agents that ask, are written to, work or rest: never into a dialog or a draft, and then once."""

from __future__ import annotations

import re
import time
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from agents.driven import Driven
from agents.install import PINNED
from agents.mail import Letterbox, heard
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
EVERY = [(name, versions[-1]) for name, versions in PINNED.items()]
each_agent = pytest.mark.parametrize(("name", "version"), EVERY)
# With its hooks agtmux knows of a dialog at once, without them from the screen.
both_ways = pytest.mark.parametrize("hooks", [True, False], ids=["hooks", "no-hooks"])
# Whose answer would be cut short by what is typed meanwhile.
STEERED = {"codex"}
# Longer than the first four pauses of whoever waits to deliver it.
LONG = 5.0
# Claude says these at the right, one after the other.
HINTS = ("tmux detected", "/effort")


def agent(name: str) -> ModuleType:
    return import_module(f"agents.{name}")


def _waits(box: Letterbox, message: dict[str, Any], reason: str) -> None:
    """Nothing of it is to be seen, for as long as one watches, and the model has not heard of it."""
    shown = _steady(box.its.pane.screen())
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        now = box.find(message)
        assert (now["status"], now["reason"]) == ("queued", reason), now
        assert _steady(box.its.pane.screen()) == shown
        time.sleep(0.1)
    assert box.told(message) == 0


def _steady(screen: str) -> str:
    """Without what blinks beside a tool that waits, a clock that goes on, and hints that come and go by themselves."""
    lines = (line for line in screen.splitlines() if not any(hint in line for hint in HINTS))
    return re.sub(r" *\b\d+s\b", "", "\n".join(lines).replace("●", " "))


@each_agent
@both_ways
def test_one_that_rests_has_it_at_once_and_once(name: str, version: str, hooks: bool) -> None:
    with Driven(agent(name), version, hooks=hooks) as its:
        its.expect("idle")
        box = Letterbox(its)
        texts = ["are the labels printed?", "1", "/exit", "!touch shouted.txt", "two\n\n\nlines\n\n  2. and another"]
        sent = []
        for text in texts:
            sent.append(box.send(text, "--wait", "10s"))
            assert sent[-1]["status"] == "delivered", f"{sent[-1]}\n{its.pane.screen()}"
            box.arrives(sent[-1])
            box.rests()
        box.came_once(*sent)
        assert not (its.pane.stage.project / "shouted.txt").exists()


@each_agent
@both_ways
def test_it_never_lands_in_a_dialog(name: str, version: str, hooks: bool) -> None:
    with Driven(agent(name), version, hooks=hooks) as its:
        its.expect("idle")
        box = Letterbox(its)
        its.say("Make it. do:bash{{touch label.txt}}")
        its.expect("waiting_approval")
        its.pane.wait_for(its.manners.dialog)
        its.pane.settle()
        turns = len(its.pane.server.main)
        sent = [box.send("yes"), box.send("1\n\ny", "--priority", "urgent")]
        for each in sent:
            assert (each["status"], each["reason"]) == ("queued", "dialog_open"), each
        _waits(box, sent[1], "dialog_open")
        assert len(its.pane.server.main) == turns
        assert not (its.pane.stage.project / "label.txt").exists()
        its.approve()
        wait_until((its.pane.stage.project / "label.txt").exists, "the label")
        for each in sent:
            box.arrives(each)
        box.came_once(*sent)


@each_agent
@both_ways
def test_it_never_joins_a_draft(name: str, version: str, hooks: bool) -> None:
    with Driven(agent(name), version, hooks=hooks) as its:
        its.expect("idle")
        box = Letterbox(its)
        its.pane.paste("half a thought")
        its.pane.wait_for("half a thought")
        its.pane.settle()
        sent = box.send("hello")
        assert (sent["status"], sent["reason"]) == ("queued", "draft_present"), sent
        _waits(box, sent, "draft_present")
        assert not its.pane.server.main
        # Its user goes on where nothing has changed.
        its.say(" and the rest")
        assert "half a thought and the rest" in heard(its)
        box.arrives(sent)
        box.came_once(sent)


@each_agent
@both_ways
def test_one_that_works_has_it_in_its_turn(name: str, version: str, hooks: bool) -> None:
    with Driven(agent(name), version, hooks=hooks) as its:
        its.expect("idle")
        box = Letterbox(its)
        its.say("Write. do:slow{{12}}")
        its.expect("running")
        turn = its.pane.server.main[-1]
        sent = box.send("meanwhile this", "--wait", "1s" if name in STEERED else "9s")
        if name in STEERED:
            assert (sent["status"], sent["reason"]) == ("queued", "busy"), sent
            while turn.open:
                assert box.find(sent)["status"] == "queued" or not turn.open
                assert "meanwhile this" not in its.pane.screen() or not turn.open
                time.sleep(0.1)
        else:
            assert sent["status"] == "delivered", f"{sent}\n{its.pane.screen()}"
        box.arrives(sent)
        assert not turn.aborted
        box.came_once(sent)


@pytest.mark.parametrize("name", sorted(STEERED))
def test_what_is_urgent_interrupts_one_that_works(name: str) -> None:
    with Driven(agent(name), PINNED[name][-1], hooks=False) as its:
        its.expect("idle")
        box = Letterbox(its)
        its.say("Write. do:slow{{20}}")
        its.expect("running")
        turn = its.pane.server.main[-1]
        sent = box.send("stop, main is red", "--priority", "urgent", "--wait", "10s")
        # Not after the turn, but into it: that goes on, or was cut short for it.
        assert sent["status"] == "delivered", f"{sent}\n{its.pane.screen()}"
        assert turn.open or turn.aborted, its.pane.screen()
        box.arrives(sent)
        box.came_once(sent)
