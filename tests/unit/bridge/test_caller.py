"""Who is at the other end of a connection, for how long that is believed, and which pane that is."""

import os
import subprocess
from typing import cast

import pytest

from agtmux.bridge import caller
from agtmux.bridge.caller import NO_PANE, NO_PEER, SHARED, Caller, Peer, find_caller, find_far_caller
from agtmux.domain.panes import CHAT, HOST, Target, TargetKind
from agtmux.domain.runtimes import NO_AGENT, Inhabitant, PaneId, PaneInstance, TargetId, start_runtime
from agtmux.observe.world import World
from agtmux.probe.processes import read_one
from agtmux.targets.bridges import Way
from unit.builders import BOOT, T0, a_record
from unit.screens import registry


@pytest.fixture
def looks(monkeypatch) -> list[int]:
    """Every look is a new one, and counted."""
    counted: list[int] = []

    def counting(pid: int):
        counted.append(pid)
        return way_up(pid)

    way_up = caller.way_up
    monkeypatch.setattr(caller, "way_up", counting)
    return counted


def test_a_peer_is_the_process_that_connected(looks):
    assert Peer(os.getpid()).way().lineage[0] == os.getpid()


def test_nobody_is_known_by_nothing(looks):
    assert Peer(None).way() is None
    assert looks == []


def test_who_asks_again_at_once_is_not_looked_for_again(looks):
    peer = Peer(os.getpid())
    assert peer.way() is peer.way()
    assert len(looks) == 1


def test_another_process_with_its_number_is_not_the_peer(looks, monkeypatch):
    """A child may hold a connection open that its parent has made and outlive it, until another has that number."""
    monkeypatch.setattr(caller, "HOLDS", 0.0)
    peer = Peer(os.getpid())
    assert peer.way() is not None
    monkeypatch.setattr(caller, "read_one", lambda pid: read_one(pid)._replace(started=read_one(pid).started + 1))
    assert peer.way() is None
    monkeypatch.undo()
    assert Peer(os.getpid()).way() is not None


def test_who_was_gone_when_the_connection_was_made_stays_nobody(looks, monkeypatch):
    monkeypatch.setattr(caller, "HOLDS", 0.0)
    monkeypatch.setattr(caller, "read_one", lambda _: None)
    peer = Peer(os.getpid())
    monkeypatch.setattr(caller, "read_one", read_one)
    assert peer.way() is None


def test_a_process_that_has_ended_is_nobody(looks, monkeypatch):
    monkeypatch.setattr(caller, "HOLDS", 0.0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        peer = Peer(child.pid)
        assert peer.way() is not None
        child.stdin.close()
        child.wait(20)
    assert peer.way() is None


VM1, VM2 = (Target(TargetId(name), TargetKind.SSH, f"dev@{name}") for name in ("vm1", "vm2"))
# Another tmux server of the same account.
VM1_TOO = Target(TargetId("vm1-too"), TargetKind.SSH, VM1.connection_ref)
# What asks is 10, below an agent's 20, below a pane's shell, 30.
WAY = Way(lineage=(10, 20, 30), on_terminal=(10, 20, 30))


def a_world(*inhabitants: tuple[TargetId, str, str, int | None]) -> World:
    """Each as target, pane, agent and process."""
    targets = (Target(HOST, TargetKind.LOCAL), Target(CHAT, TargetKind.CHAT), VM1, VM1_TOO, VM2)
    world = World(targets={target.target_id: target for target in targets})
    for target_id, pane_id, agent_type, pid in inhabitants:
        instance = PaneInstance(target_id, BOOT, PaneId(pane_id))
        runtime = start_runtime(instance, 1, Inhabitant(agent_type, pid, T0), T0)
        world.records[target_id, instance.pane_id] = a_record(runtime)
    return world


def called(world: World, way: Way | None = WAY, pid: int | None = 10) -> Caller:
    class Connected:
        def __init__(self) -> None:
            self.pid = pid

        def way(self) -> Way | None:
            return way

    return find_caller(world, registry(), cast(Peer, Connected()))


def test_the_nearest_pane_above_is_who_asks():
    world = a_world((HOST, "%1", "claude", 20), (HOST, "%2", NO_AGENT, 30), (HOST, "%3", "claude", 40))
    assert called(world) == Caller((HOST, PaneId("%1")), is_at_terminal=True)
    assert called(a_world((HOST, "%2", NO_AGENT, 30))).key == (HOST, "%2")
    assert called(a_world((CHAT, "%20", "claude", 20))).key == (CHAT, "%20")


def test_what_two_panes_claim_is_nobodys():
    """One may hold on to a number that another process has by now."""
    twice = [(HOST, pane_id, "claude", 20) for pane_id in ("%1", "%2")]
    assert called(a_world(*twice)) == Caller(None, NO_PANE)
    # Nor does it hide the pane above, which nobody else claims.
    assert called(a_world(*twice, (HOST, "%3", NO_AGENT, 30))).key == (HOST, "%3")


def test_another_machines_numbers_mean_nothing_here():
    world = a_world((VM1.target_id, "%1", "claude", 20), (HOST, "%2", NO_AGENT, 30))
    assert called(world).key == (HOST, "%2")
    assert called(a_world((VM1.target_id, "%1", "claude", 20))) == Caller(None, NO_PANE)


def test_who_asks_elsewhere_is_one_of_that_account_and_no_other():
    world = a_world(
        (HOST, "%1", "claude", 10), (VM2.target_id, "%1", "claude", 20), (VM1.target_id, "%2", "claude", 30)
    )
    found = find_far_caller(world, registry(), VM1, WAY)
    assert found == Caller((VM1.target_id, PaneId("%2")), is_at_terminal=True, machine="dev@vm1")
    # Both of its servers number panes for themselves, and share its processes.
    beside = a_world((VM1_TOO.target_id, "%5", "claude", 20))
    assert find_far_caller(beside, registry(), VM1, WAY).key == (VM1_TOO.target_id, "%5")
    twice = a_world((VM1.target_id, "%1", "claude", 20), (VM1_TOO.target_id, "%1", "claude", 20))
    assert find_far_caller(twice, registry(), VM1, WAY) == Caller(None, NO_PANE, machine="dev@vm1")
    assert find_far_caller(world, registry(), VM1, None) == Caller(None, NO_PEER, machine="dev@vm1")


def test_who_is_not_known_at_all_is_nobody():
    world = a_world((HOST, "%1", "claude", None))
    assert called(world, pid=None) == Caller(None, NO_PEER)
    assert called(world, way=None) == Caller(None, NO_PANE)
    assert called(world) == Caller(None, NO_PANE)


@pytest.mark.parametrize(("on_terminal", "is_at_terminal"), [((10, 20, 30), True), ((10,), False), ((), False)])
def test_who_asks_is_at_the_terminal_if_all_up_to_the_panes_process_are(
    on_terminal: tuple[int, ...], is_at_terminal: bool
):
    found = called(a_world((HOST, "%1", "claude", 20)), Way((10, 20, 30), on_terminal))
    assert found == Caller((HOST, PaneId("%1")), is_at_terminal=is_at_terminal)


def test_a_service_that_works_for_several_panes_speaks_for_none():
    """It stays a child of the pane it was started from."""
    world = a_world((HOST, "%1", "codex", 20))
    found = called(world, Way((10, 20, 30), ()))
    assert (found.key, found.is_shared) == (None, True)
    assert found.why_not.startswith(SHARED) and "daemon_auto_start" in found.why_not
    assert called(world).key == (HOST, "%1")
    # Or of none.
    found = called(a_world(), Way((10, 20), (), "codex"))
    assert (found.key, found.is_shared) == (None, True) and found.why_not.startswith(SHARED)
    for service in ("cron", "claude"):
        assert called(a_world(), Way((10, 20), (), service)) == Caller(None, NO_PANE)
