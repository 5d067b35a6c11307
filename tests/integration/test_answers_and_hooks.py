"""An answer is for what was looked at, whichever way it goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.home import Home, wait_until
from support.puppets import Puppet
from support.requests import Request, asking


def test_an_answer_to_the_dialog_on_the_screen_is_not_given_to_another_question(home: Home) -> None:
    """Two parts of one session ask at once: the first dialog is on the screen, the second one's hook waits."""
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    item = puppet.ask("d1", "touch label.txt")
    fingerprint = item["attention"]["fingerprint"]
    with asking(home, puppet.pane, "rm -rf /") as hook:
        wait_until(lambda: "rm -rf" in home.panes()[puppet.pane]["attention"]["summary"], "the second question")
        done = home.run("approve", puppet.pane, "--if-dialog", fingerprint, "--partial")
        assert done.returncode == 4, done
        puppet.tell("answer")
        assert b"allow" not in hook.ended(), done
    # Neither is a key pressed at the first, as what is shown is the second.
    assert puppet.given() == []


@pytest.mark.parametrize("trial", range(4))
def test_an_answer_to_the_last_dialog_is_not_given_to_the_next_question(home: Home, trial: int) -> None:
    """The user answers the first in its pane, and the next one's hook comes before the next look at the screen."""
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    item = puppet.ask("d1", "touch label.txt")
    asked = {"ref": f"runtime:{item['runtime_id']}", "if_runtime": item["runtime_id"], "if_state": item["state"]}
    # As `pick` asks for it.
    asked |= {"if_dialog": item["attention"]["fingerprint"], "request_ref": "r"}
    with asking(home, puppet.pane, "rm -rf /") as hook:
        wait_until(lambda: "rm -rf" in home.panes()[puppet.pane]["attention"]["summary"], "the next question")
        puppet.tell("ask d2 rm -rf /")
        answer = home.ask("POST", "/v1/actions/approve", asked)
        # One that was handed over would have ended it.
        puppet.tell("answer")
        assert b'"allow"' not in hook.ended(), answer


@pytest.mark.parametrize(
    ("command", "why"),
    [('git push --token="x$(touch x)"', "hidden secret"), ("ls \u202e# x", "cannot be shown")],
)
def test_a_description_does_not_make_a_request_whole(home: Home, command: str, why: str) -> None:
    """As Claude reports every command: with a line about it, which the model writes too."""
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    with asking(home, puppet.pane, command, description="Push the labels") as hook:
        shown = puppet.wait_for("waiting_approval")["attention"]
        assert not shown["whole"] and not shown["brief"]
        done = home.run("approve", puppet.pane)
        assert done.returncode == 4 and why in done.stderr, done
        assert hook.said() == b""
        # The second step is the user's own.
        assert b'"allow"' in _after(hook, lambda: home.run("approve", puppet.pane, "--partial"))


def test_a_tool_of_a_server_is_not_shown_as_the_command_it_is_called_with(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    with asking(home, puppet.pane, "ls", tool="mcp__prod__drop"):
        shown = puppet.wait_for("waiting_approval")["attention"]
        assert (shown["summary"], shown["brief"]) == ("mcp__prod__drop command: ls", False)


def _after(hook: Request, act: Callable[[], object]) -> bytes:
    act()
    return hook.ended()
