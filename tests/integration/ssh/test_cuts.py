"""A VM that hangs, is cut off, or loses its tmux server: it costs the others nothing and comes back by itself."""

from __future__ import annotations

import os
import signal
import statistics
import struct
import subprocess
import time
from collections.abc import Callable

import pytest

from agtmux.probe.frames import encode
from agtmux.targets.bootstrap import COMMAND, program
from support.home import Home, wait_until
from support.processes import processes
from support.sshd import Sshd
from support.targets import HASTY, add, error, fire_hook, health, pace, report, seen, state, told

Vms = Callable[..., list[Sshd]]

HEALTH_CHANGES = "SELECT count(*) FROM events WHERE event_type = 'target_health_changed'"


def watched(home: Home, *vms: Sshd) -> dict[str, str]:
    """A daemon with an agent that waits on the host and on each VM; returns their panes, by target."""
    panes = {"host": home.pane()} | {vm.name: vm.pane() for vm in vms}
    home.start()
    for vm in vms:
        add(home, vm.name)
    for target, pane_id in panes.items():
        wait_until(lambda key=(target, pane_id): key in seen(home), f"the pane of {target}")
        report(home, target, pane_id)
    return panes


def is_looked_at(home: Home, name: str) -> bool:
    """Whether a look that begins now succeeds: a target at rest would be looked at within seconds only."""
    return home.ask("POST", f"/v1/targets/{name}/connect", {}).status == 200


def probe_pids(vm: Sshd) -> list[int]:
    return [int(line.split()[0]) for line in vm.leftovers().get("processes", []) if "agtmux-probe" in line]


def listing(home: Home) -> dict[str, object]:
    shown = home.ask("GET", "/v1/panes").json
    names = ("partial", "requested_targets", "responded_targets")
    return {name: shown[name] for name in names} | {"errors": [each["target"] for each in shown["target_errors"]]}


def listing_without(missing: str | None, *others: str) -> dict[str, object]:
    return {
        "partial": missing is not None,
        "requested_targets": sorted([*others, *filter(None, [missing])]),
        "responded_targets": sorted(others),
        "errors": [] if missing is None else [missing],
    }


def test_a_frozen_vm_costs_the_others_nothing_and_comes_back_as_it_was(home: Home, vms: Vms) -> None:
    """With the default times: nobody asks, and nothing is in a hurry."""
    vm1, vm2 = vms(2)
    panes = watched(home, vm1, vm2)
    before = told(home)
    assert {told.state for told in before.values()} == {"waiting_approval"}
    usual = pace(home)

    vm1.freeze()

    unnoticed = pace(home)
    wait_until(lambda: health(home, "vm1") == "degraded", "the first failure")
    assert told(home) == before, "one failure is no reason to forget who waits"
    assert listing(home) == listing_without("vm1", "host", "vm2")
    assert error(home, "vm1").startswith("vm1: no answer within 5 seconds")
    wait_until(lambda: health(home, "vm1") == "down", "the third failure")
    assert error(home, "vm1").startswith("vm1: no connection within 3 seconds")
    noticed = pace(home)
    assert unnoticed.is_usual(usual) and noticed.is_usual(usual), (usual, unnoticed, noticed)
    lost = ("vm1", panes["vm1"])
    wait_until(lambda: told(home)[lost][1:] == ("unknown", "target_unreachable"), "its pane to be unknown")
    assert told(home) == before | {lost: (before[lost].runtime_id, "unknown", "target_unreachable")}
    assert listing(home) == listing_without("vm1", "host", "vm2")
    report(home, "vm2", panes["vm2"], "state.running")
    assert state(home, "vm2", panes["vm2"]) == "running"
    report(home, "vm2", panes["vm2"])

    vm1.thaw()

    wait_until(lambda: health(home, "vm1") == "ok", "its recovery")
    wait_until(lambda: told(home) == before, "everything to be as it was")
    assert listing(home) == listing_without(None, "host", "vm1", "vm2")


def test_a_cut_connection_is_made_again_at_once(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    watched(home, vm)
    before = told(home)
    seconds = []
    for _ in range(3):
        sessions = vm.session_pids()
        vm.cut()
        began = time.monotonic()
        wait_until(lambda: vm.session_pids(), "a new connection")
        new = vm.pane()
        wait_until(lambda new=new: ("vm1", new) in seen(home), "a look over the new connection")
        seconds.append(time.monotonic() - began)
        assert not set(sessions) & set(vm.session_pids())
        # Once: the new pane is looked at meanwhile.
        now = told(home)
        assert now | before == now, "the same runtimes in the same states"
    # A busy machine may hold up any single one.
    assert statistics.median(seconds) < 3, seconds
    assert len(seen(home)) == 5
    assert health(home, "vm1") in ("ok", "degraded")
    wait_until(lambda: health(home, "vm1") == "ok", "its health")
    # One connection, not one for each that was cut.
    assert len([pid for pid in vm.session_pids() if processes()[pid].parent not in vm.session_pids()]) == 1


def test_hooks_get_through_after_a_cut(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    [_, pane_id] = watched(home, vm).values()
    for name, state_after in (("UserPromptSubmit", "running"), ("PermissionRequest", "waiting_approval")):
        vm.cut()
        wait_until(lambda: vm.session_pids(), "a new connection")
        assert is_looked_at(home, "vm1")
        fire_hook(home, vm, pane_id, name)
        wait_until(lambda wanted=state_after: state(home, "vm1", pane_id) == wanted, f"what {name} says")


def test_hooks_get_through_although_the_probe_before_still_hangs(home: Home, vms: Vms) -> None:
    home.configure(HASTY)
    [vm] = vms(1)
    [_, pane_id] = watched(home, vm).values()
    [before] = probe_pids(vm)
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: is_looked_at(home, "vm1"), "a probe that answers")
    os.kill(before, signal.SIGCONT)
    wait_until(lambda: before not in probe_pids(vm), "the end of the one before")
    # It may take a moment to see that the door is free.
    wait_until(lambda: "sockets" in vm.leftovers(), "a door for hooks", 10)
    fire_hook(home, vm, pane_id, "UserPromptSubmit")
    wait_until(lambda: state(home, "vm1", pane_id) == "running", "what the hook says")


def test_a_vm_that_was_off_is_found_when_it_is_on_again(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    watched(home, vm)
    before = told(home)

    vm.stop()

    wait_until(lambda: health(home, "vm1") == "down", "it to be down")
    assert "cannot be reached" in error(home, "vm1")
    assert listing(home) == listing_without("vm1", "host")

    vm.start()

    wait_until(lambda: told(home) == before, "everything to be as it was")
    wait_until(lambda: health(home, "vm1") == "ok", "its health")
    assert error(home, "vm1") == ""


def test_a_vm_whose_route_is_dropped_is_down_and_comes_back(home: Home, vms: Vms) -> None:
    home.configure(HASTY)
    vm1, vm2 = vms(2, netns=True)
    panes = watched(home, vm1, vm2)
    before = told(home)
    usual = pace(home)

    vm1.drop_route()

    wait_until(lambda: not is_looked_at(home, "vm1") and health(home, "vm1") == "down", "it to be down")
    assert pace(home).is_usual(usual)
    wait_until(lambda: state(home, "vm1", panes["vm1"]) == "unknown", "its pane to be unknown")
    assert state(home, "vm2", panes["vm2"]) == "waiting_approval"
    assert listing(home) == listing_without("vm1", "host", "vm2")

    vm1.restore_route()

    wait_until(lambda: is_looked_at(home, "vm1") and told(home) == before, "everything to be as it was")
    assert health(home, "vm1") == "ok"


@pytest.mark.soak
def test_a_probe_without_a_daemon_ends_by_itself(home: Home, vms: Vms) -> None:
    [vm] = vms(1, netns=True)
    watched(home, vm)
    assert set(vm.leftovers()) == {"processes", "files", "sockets"}, "a probe and its door"
    vm.drop_route()
    wait_until(lambda: not vm.leftovers(), "the probe to give up", 90)


def test_a_probe_that_hears_nothing_ends_by_itself(home: Home, vms: Vms) -> None:
    """As above, by hand: what takes a minute there takes seconds here."""
    [vm] = vms(1)
    vm.pane()
    command = ["ssh", "-F", str(home.folder / ".ssh" / "config"), "-o", "BatchMode=yes", vm.name, COMMAND]
    begin = {"do": "begin", "tmux_socket": "", "hooks": True, "watch": [], "silence": 4.0}
    session = home.spawn(*command, stdin=subprocess.PIPE, text=False)
    session.stdin.write(program("hello\n"))
    session.stdin.flush()
    assert session.stdout.readline() == b"hello\n"
    session.stdin.write(encode(begin))
    session.stdin.flush()
    (length,) = struct.unpack(">I", session.stdout.read(4))
    assert b'"begun"' in session.stdout.read(length)
    wait_until(lambda: set(vm.leftovers()) == {"processes", "files", "sockets"}, "the probe with its door")

    assert session.wait(timeout=20) == 0
    wait_until(lambda: not vm.leftovers(), "nothing to be left")


def test_a_new_tmux_server_on_a_vm_has_panes_of_its_own(home: Home, vms: Vms) -> None:
    [vm] = vms(1)
    [_, pane_id] = watched(home, vm).values()
    old = seen(home)["vm1", pane_id]["runtime_id"]

    vm.tmux("kill-server")

    wait_until(lambda: {target for target, _ in seen(home)} == {"host"}, "its panes to be gone")
    assert listing(home) == listing_without(None, "host", "vm1")

    # Its first pane is %0 again.
    again = vm.tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "sleep 3600")
    vm.tmux("set-option", "-p", "-t", again, "@agtmux_agent", "claude")
    wait_until(lambda: seen(home).get(("vm1", again), {}).get("agent_type") == "claude", "the new pane")
    assert again == pane_id
    assert seen(home)["vm1", again]["runtime_id"] != old
    assert state(home, "vm1", again) != "waiting_approval", "who waited is gone"
    assert health(home, "vm1") == "ok"
    assert home.query(HEALTH_CHANGES) == [(0,)], "the VM itself was well all along"
