"""An answer is for what was looked at, whichever way it goes."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from support.home import COMMANDS, Home, wait_until
from support.puppets import Puppet


def hook(home: Home, pane: str, command: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    words = [COMMANDS / "agtmux-hook", "claude", "PermissionRequest", "--wait"]
    made = subprocess.Popen(words, env=home.env | home.tmux_variables(pane), stdin=pipe, stdout=pipe, stderr=pipe)
    assert made.stdin is not None
    made.stdin.write(json.dumps({"tool_name": "Bash", "tool_input": {"command": command}}).encode())
    made.stdin.close()
    made.stdin = None
    return made


def test_an_answer_to_the_dialog_on_the_screen_is_not_given_to_another_question(home: Home) -> None:
    """Two parts of one session ask at once: the first dialog is on the screen, the second one's hook waits."""
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    item = puppet.ask("d1", "touch label.txt")
    fingerprint = item["attention"]["fingerprint"]
    waits = hook(home, puppet.pane, "rm -rf /")
    try:
        wait_until(lambda: "rm -rf" in home.panes()[puppet.pane]["attention"]["summary"], "the second question")
        time.sleep(2)
        print(home.panes()[puppet.pane]["attention"])
        done = home.run("approve", puppet.pane, "--if-dialog", fingerprint, "--json")
        print(done)
        time.sleep(1)
        said = b"" if waits.poll() is None else waits.communicate()[0]
        assert b"allow" not in said, (said, done.stdout, home.tmux("capture-pane", "-pt", puppet.pane))
    finally:
        if waits.poll() is None:
            waits.kill()
        waits.communicate()


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
    waits = hook(home, puppet.pane, "rm -rf /")
    try:
        wait_until(lambda: "rm -rf" in home.panes()[puppet.pane]["attention"]["summary"], "the next question")
        puppet.tell("ask d2 rm -rf /")
        answer = home.ask("POST", "/v1/actions/approve", asked)
        time.sleep(0.3)
        said = b"" if waits.poll() is None else waits.communicate()[0]
        assert b'"allow"' not in said, answer
    finally:
        if waits.poll() is None:
            waits.kill()
        waits.communicate()
