"""`agtmux hooks install --agent tmux`: the server wakes the daemon, what others have set stays, and it goes again."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.home import Home, is_alive, wait_until
from support.probe import ProbeProcess
from support.processes import processes, read_text, with_descendants
from support.sshd import Sshd
from support.targets import add

TURNING = "i=0; while :; do i=$((i+1)); printf '\\033]2;turn %d\\007' $i; sleep 0.02; done"
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")


def everything(server: Any) -> list[str]:
    """All hooks and options that a server has, as it tells them."""
    kinds = (["show-hooks", "-g"], ["show-hooks", "-gw"], ["show-options", "-g"], ["show-options", "-gw"])
    return [server.tmux(*words) for words in (*kinds, ["show-options", "-s"])]


def hooks(home: Home, action: str, *words: str) -> dict[str, Any]:
    done = home.run("hooks", action, "--agent", "tmux", "--json", *words)
    assert done.returncode == 0, done
    (item,) = json.loads(done.stdout)["items"]
    return dict(item)


def waits(pid: int) -> bool:
    """Whether something below that process waits to be woken."""
    return any("wait-for" in read_text(f"/proc/{each}/cmdline") for each in with_descendants({pid}, processes()))


OTHERS = [
    ("set-hook", "-g", "pane-title-changed", "display-message 'somebody else'"),
    ("set-hook", "-g", "window-linked[7]", 'run-shell "echo #{x} \\"q\\" ; true"'),
    ("set-hook", "-ga", "pane-exited", "wait-for -S another"),
    ("set-hook", "-ga", "pane-exited", "wait-for -S agtmux-wake2"),
    ("set-option", "-g", "@mine", "1"),
]


@pytest.mark.parametrize("others", [[], OTHERS], ids=["alone", "beside others"])
def test_they_come_and_go_and_nothing_else_changes(home: Home, others: list[tuple[str, ...]]) -> None:
    home.pane()
    for words in others:
        home.tmux(*words)
    before = everything(home)
    home.start()
    assert hooks(home, "status")["already_there"] == []
    added = hooks(home, "install")["added"]
    assert {"pane-title-changed", "pane-exited", "@agtmux_wake"} <= set(added)
    installed = everything(home)
    assert installed != before
    for line in "\n".join(before).splitlines():
        assert line in "\n".join(installed).splitlines() or "[" not in line
    again = hooks(home, "install")
    assert (again["changed"], again["already_there"]) == (False, added)
    assert everything(home) == installed
    assert hooks(home, "status")["already_there"] == added
    assert hooks(home, "uninstall")["removed"] == added
    assert everything(home) == before
    assert not hooks(home, "uninstall")["changed"]
    assert hooks(home, "status")["already_there"] == []


@needs_proc
def test_a_title_is_seen_as_soon_as_it_changes(home: Home) -> None:
    pane = home.pane(command="cat")
    daemon = home.start()
    hooks(home, "install")
    wait_until(lambda: waits(daemon.pid), "the daemon to wait")
    home.tmux("select-pane", "-t", pane, "-T", "a new title")
    wait_until(lambda: home.panes()[pane]["title"] == "a new title", "the title", 3)
    hooks(home, "uninstall")
    wait_until(lambda: not waits(daemon.pid), "the end of the waiting")


def test_a_new_server_is_told_again_and_after_uninstall_no_more(home: Home) -> None:
    home.pane()
    daemon = home.start()
    added = hooks(home, "install")["added"]

    def begin_anew() -> None:
        pid = int(home.tmux("display-message", "-p", "#{pid}"))
        home.tmux("kill-server")
        wait_until(lambda: not is_alive(pid), "the end of the server")
        home.tmux("new-session", "-d", "-s", "work", "sleep 3600")

    begin_anew()
    wait_until(lambda: home.tmux("show-options", "-gqv", "@agtmux_wake") == "agtmux-wake", "the new server to be told")
    assert hooks(home, "status")["already_there"] == added
    # Another daemon knows of it too.
    home.end(daemon)
    begin_anew()
    home.start()
    wait_until(lambda: home.tmux("show-options", "-gqv", "@agtmux_wake") == "agtmux-wake", "the next server to be told")
    # Without a name: all of agtmux's.
    assert home.run("hooks", "uninstall").returncode == 0
    begin_anew()
    item = hooks(home, "status")
    assert (item["already_there"], item["missing"], item["warnings"]) == ([], [], []), "nor is it wanted"


def test_no_server_is_started_for_it(home: Home) -> None:
    home.start()
    item = hooks(home, "install")
    assert (item["added"], item["warnings"]) == ([], ["No tmux server is running there; the next one is told."])
    assert subprocess.run(["tmux", "list-sessions"], env=home.env, capture_output=True).returncode != 0
    home.pane()
    wait_until(lambda: home.tmux("show-options", "-gqv", "@agtmux_wake") == "agtmux-wake", "the server to be told")
    home.tmux("kill-server")
    assert hooks(home, "uninstall")["removed"] == []


def test_a_channel_of_somebody_else_is_left_alone(home: Home) -> None:
    home.pane()
    home.tmux("set-option", "-g", "@agtmux_wake", "stir")
    before = everything(home)
    home.start()
    done = home.run("hooks", "install", "--agent", "tmux")
    assert (done.returncode, "is set to 'stir'" in done.stderr) == (2, True), done
    assert hooks(home, "uninstall")["removed"] == []
    assert everything(home) == before


def test_each_target_has_its_own(home: Home, vms: Any) -> None:
    [vm] = vms(1)
    vm.pane()
    home.pane()
    before = everything(home), everything(vm)
    home.start()
    add(home, "vm1")
    item = hooks(home, "install", "--target", "vm1")
    assert item["added"] and item["path"].startswith(str(vm.folder))
    assert everything(home) == before[0]
    assert vm.tmux("show-options", "-gqv", "@agtmux_wake") == "agtmux-wake"
    assert_woken_by(vm)
    hooks(home, "uninstall", "--target", "vm1")
    assert (everything(home), everything(vm)) == before
    assert home.run("target", "remove", "vm1", "--yes").returncode == 0
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def assert_woken_by(vm: Sshd) -> None:
    wait_until(lambda: any("wait-for" in line for line in vm.leftovers().get("processes", [])), "the probe to wait")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only tmux itself speaks up")
def test_a_title_that_turns_all_the_time_makes_no_flood(home: Home) -> None:
    home.pane(command="cat")
    home.tmux("set-hook", "-ga", "pane-title-changed", "wait-for -S agtmux-wake")
    home.tmux("set-option", "-g", "@agtmux_wake", "agtmux-wake")
    probe = ProbeProcess(home)
    home.pane(command=TURNING)
    woken, until = 0, time.monotonic() + 3
    probe.look()
    while time.monotonic() < until:
        probe.next_notice("woken", 3)
        woken += 1
        probe.look()
    # Five at once, then two a second; and one that was under way.
    assert 5 <= woken <= 13
