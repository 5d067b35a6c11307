"""Waits that hooks do not tell of, or tell wrong, on the newest real agents: they are shown, and what answers them
arrives."""

from __future__ import annotations

import json

import pytest

from agents import claude, copilot, gemini
from agents.driven import Driven
from agents.install import NEWEST

pytestmark = [pytest.mark.timeout(600), pytest.mark.agents]
HOOKS = pytest.mark.parametrize("hooks", [True, False], ids=["hooks", "none"])
UNCHECKED = "Send it. do:bash{{curl -X POST http://labels.invalid/send}}"


@HOOKS
def test_auto_mode_that_cannot_check_an_action_waits_and_the_action_can_be_approved(hooks: bool) -> None:
    with Driven(claude, NEWEST["claude"], hooks=hooks, wish="auto") as its:
        assert its.home is not None
        its.expect("idle")
        its.say(UNCHECKED)
        its.pane.wait_for("Auto mode can.t check")
        its.expect("waiting_input", "waiting_approval")
        its.holds("waiting_input", "waiting_approval", seconds=3)
        its.press("Enter")
        its.pane.wait_for("Do you want to proceed")
        item = its.expect("waiting_approval").item
        assert item is not None and "curl -X POST" in item["attention"]["summary"]
        done = its.home.run("approve", item["ref"])
        assert (done.returncode, done.stderr) == (0, ""), done
        its.pane.wait_until(lambda: len(its.pane.server.main) == 2, "the result at the model")
        its.expect("completed", "idle")


@pytest.mark.parametrize("wish", ["few-colours", "no-colours", ""])
@HOOKS
def test_the_reason_of_a_denial_gets_to_gemini_whatever_colours_it_has(hooks: bool, wish: str) -> None:
    with Driven(gemini, NEWEST["gemini"], hooks=hooks, wish=wish) as its:
        assert its.home is not None
        its.expect("idle")
        its.say("Make a label. do:bash{{touch label.txt}}")
        item = its.expect("waiting_approval").item
        its.pane.wait_for(its.manners.dialog)
        its.pane.settle()
        assert item is not None
        done = its.home.run("deny", item["ref"], "--reason", "print it on paper instead")
        assert (done.returncode, done.stdout) == (0, "denied: touch label.txt\n"), done
        its.pane.wait_until(
            lambda: "print it on paper instead" in json.dumps(its.pane.server.main[-1].body), "the reason at the model"
        )
        assert not (its.pane.stage.project / "label.txt").exists()


@HOOKS
def test_a_field_of_a_form_is_waited_for_by_a_daemon_that_has_not_seen_it_before(hooks: bool) -> None:
    """Copilot's session file says that it works meanwhile."""
    with Driven(copilot, NEWEST["copilot"], hooks=hooks, wish="tools") as its:
        assert its.timeline is not None
        its.expect("idle")
        its.say("Weigh it. do:tool{{weigh_parcel|{} }}")
        copilot.approve_if_asked(its.pane)
        its.pane.wait_for("(?i)needs information")
        its.expect("waiting_input")
        for key in ("12", "Enter"):
            its.pane.keys(key)
            its.pane.settle()
            before = len(its.timeline.shown)
            its.restart()
            its.holds("waiting_input", seconds=4)
            states = {each.state for each in its.timeline.shown[before:]}
            assert states == {"waiting_input"}, its.timeline.shown[before:]


@HOOKS
def test_a_page_that_a_server_wants_opened_is_waited_for_in_copilot(hooks: bool) -> None:
    with Driven(copilot, NEWEST["copilot"], hooks=hooks, wish="tools") as its:
        its.expect("idle")
        its.say("Pay it. do:tool{{pay_postage|{} }}")
        copilot.approve_if_asked(its.pane)
        its.pane.wait_for("(?i)wants you to visit")
        its.expect("waiting_input")
        its.holds("waiting_input", seconds=6)
