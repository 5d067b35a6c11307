"""Typing on another machine: the same probe, the same checks, word for word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from support.home import Home, wait_until
from support.puppets import PROGRAM, Puppet
from support.sshd import Sshd
from support.targets import add, seen

Vms = Callable[..., list[Sshd]]


class RemotePuppet(Puppet):
    """One in a pane over there."""

    def __init__(self, home: Home, vm: Sshd, folder: Path) -> None:
        self.home, self.name, self.folder = home, "one", folder
        self.pane = vm.pane(
            agent=None, command=f'bash -c \'exec -a claude "{sys.executable}" "{PROGRAM}" one {folder}\''
        )
        wait_until(self.log, "the puppet")


def test_a_text_and_an_answer_get_there_and_no_further(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    puppet = RemotePuppet(home, vm, home.folder)
    home.pane()
    home.start()
    add(home, "vm1")
    key = ("vm1", puppet.pane)
    wait_until(lambda: seen(home).get(key, {}).get("state") == "idle", "its prompt")
    ref = seen(home)[key]["ref"]
    text = "-x 'it\"s' $(date) `date` #{pane_id}\n\n日本語 👩‍💻; kill-server"
    done = home.run("send", ref, "--stdin", "--enter", stdin=None, input=text)
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == [text]
    long = "\n".join("x" * 99 for _ in range(10_000))
    puppet.tell("reset")
    wait_until(lambda: seen(home)[key]["state"] in ("idle", "completed"), "its prompt")
    done = home.run("send", ref, "--stdin", "--enter", "--force-stale", stdin=None, input=long)
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == [text, long]
    puppet.tell("reset")
    puppet.tell("ask d1 touch label.txt")
    wait_until(lambda: (seen(home)[key]["attention"] or {}).get("fingerprint"), "the dialog")
    done = home.run("send", ref, "--text", "1", "--enter", "--force-stale")
    assert done.returncode == 4 and "E_DIALOG_OPEN" in done.stderr
    before = len(puppet.given())
    done = home.run("approve", ref)
    assert done.returncode == 0, done.stderr
    assert puppet.given()[before:] == [("key", "1")]
    assert vm.tmux("list-buffers") == ""


def test_one_that_is_not_there_any_more_is_typed_at_by_nobody(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    puppet = RemotePuppet(home, vm, home.folder)
    vm.pane(agent=None)
    home.pane()
    home.start()
    add(home, "vm1")
    key = ("vm1", puppet.pane)
    wait_until(lambda: seen(home).get(key, {}).get("state") == "idle", "its prompt")
    item = seen(home)[key]
    vm.tmux("respawn-pane", "-k", "-t", puppet.pane, "cat")
    asked = {"request_ref": "late", "ref": f"runtime:{item['runtime_id']}", "text": "hello", "enter": True}
    answer = home.ask("POST", "/v1/actions/send", asked)
    assert answer.status in (404, 409), answer
    assert vm.tmux("capture-pane", "-p", "-t", puppet.pane).strip() == ""
