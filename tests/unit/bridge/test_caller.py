"""Who is at the other end of a connection, and for how long that is believed."""

import os
import subprocess

import pytest

from agtmux.bridge import caller
from agtmux.bridge.caller import Peer
from agtmux.probe.processes import read_one


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
    monkeypatch.setattr(caller, "_HOLDS", 0.0)
    peer = Peer(os.getpid())
    assert peer.way() is not None
    monkeypatch.setattr(caller, "read_one", lambda pid: read_one(pid)._replace(started=read_one(pid).started + 1))
    assert peer.way() is None
    monkeypatch.undo()
    assert Peer(os.getpid()).way() is not None


def test_who_was_gone_when_the_connection_was_made_stays_nobody(looks, monkeypatch):
    monkeypatch.setattr(caller, "_HOLDS", 0.0)
    monkeypatch.setattr(caller, "read_one", lambda _: None)
    peer = Peer(os.getpid())
    monkeypatch.setattr(caller, "read_one", read_one)
    assert peer.way() is None


def test_a_process_that_has_ended_is_nobody(looks, monkeypatch):
    monkeypatch.setattr(caller, "_HOLDS", 0.0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        peer = Peer(child.pid)
        assert peer.way() is not None
        child.stdin.close()
        child.wait(20)
    assert peer.way() is None
