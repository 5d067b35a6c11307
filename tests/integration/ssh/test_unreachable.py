"""Every action on a target that cannot be reached says just that, and does nothing there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.ssh.test_send import RemotePuppet
from support.home import Home, wait_until
from support.sshd import Sshd
from support.targets import HASTY, add, health, seen

Vms = Callable[..., list[Sshd]]

# After the first failure it is not tried again while the test runs, so that it stays degraded.
PATIENT = """
[targets]
connect_timeout = "2s"
command_timeout = "2s"
retry_after = ["5m"]
longest_pause = "5m"
"""
# What a user types, for each action there is; {ref} is the pane, {name} its agent.
COMMANDS = {
    "send": ("send", "{ref}", "--text", "hello", "--enter", "--force-stale"),
    "approve": ("approve", "{ref}"),
    "deny": ("deny", "{ref}", "--reason", "not now"),
    "kill": ("kill", "{ref}", "--yes"),
    "kill-signal": ("kill", "{ref}", "--mode", "signal", "--signal", "TERM", "--yes"),
    "view-output": ("view-output", "{ref}"),
    "attach": ("attach", "{ref}", "--print"),
    "stop": ("stop", "{ref}", "--yes"),
    "launch": ("launch", "claude", "--target", "vm1", "--cwd", "/"),
    "message": ("message", "send", "{name}", "hello", "--now"),
}


@pytest.fixture
def lost(home: Home, vms: Vms) -> Callable[[str], RemotePuppet]:
    """An agent that waits on a VM that is off by now."""

    def lose(wanted: str) -> RemotePuppet:
        # Nothing shows a person where tests run.
        outside = "\n[launch]\ntrust_outside = true\n"
        home.configure((PATIENT if wanted == "degraded" else HASTY) + outside)
        [vm] = vms(1)
        puppet = RemotePuppet(home, vm, home.folder)
        home.pane()
        home.start()
        add(home, "vm1")
        puppet.tell("ask d1 touch label.txt")
        key = ("vm1", puppet.pane)
        wait_until(lambda: (seen(home).get(key, {}).get("attention") or {}).get("fingerprint"), "the dialog")
        vm.stop()
        wait_until(lambda: health(home, "vm1") == wanted, f"it to be {wanted}")
        return puppet

    return lose


@pytest.mark.parametrize("how", ["degraded", "down"])
def test_every_action_says_that_the_target_is_unreachable(
    home: Home, lost: Callable[[str], RemotePuppet], how: str
) -> None:
    """Not that the agent has ended: nobody knows that, and it would make people start another."""
    puppet = lost(how)
    pane = seen(home)["vm1", puppet.pane]
    before = puppet.given()
    told = {}
    for action, words in COMMANDS.items():
        command = [word.format(ref=pane["ref"], name=pane["name"]) for word in words]
        done = home.run(*command)
        # Of a message its status is told, and not an error.
        is_said = "E_TARGET_UNREACHABLE" in done.stderr or (action == "message" and "refused" in done.stdout)
        told[action] = (done.returncode, is_said, done.stdout, done.stderr)
    assert {action: each for action, each in told.items() if each[:2] != (6, True)} == {}
    assert puppet.given() == before
    assert seen(home)["vm1", puppet.pane]["runtime_id"] == pane["runtime_id"]


def test_a_message_waits_for_a_target_that_cannot_be_reached(home: Home, lost: Callable[[str], RemotePuppet]) -> None:
    puppet = lost("down")
    name = seen(home)["vm1", puppet.pane]["name"]
    done = home.run("message", "send", name, "hello")
    assert done.returncode == 0, done.stderr

    def reasons() -> set[str]:
        return {each["reason"] for each in home.ask("GET", "/v1/messages").json["items"]}

    wait_until(lambda: reasons() == {"unreachable"}, "why it waits")
