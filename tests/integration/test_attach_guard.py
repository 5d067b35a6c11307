"""The last check is tmux's own: whatever was known a moment ago, a terminal is moved to who was meant or not at all."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agtmux.probe.clients import Client, Inhabited, NoClientError, _Seen, _switch
from agtmux.probe.panes import MovedError
from support.home import Home, wait_until
from support.probe import ProbeProcess
from support.terminal import Terminal, terminals


def inhabitant(home: Home, pane: str) -> dict[str, Any]:
    server, pid = home.tmux("display-message", "-p", "-t", pane, "#{pid}-#{start_time} #{pane_pid}").split()
    return {"server": server, "pane_id": pane, "pid": int(pid)}


def asked(home: Home, who: dict[str, Any], client: str) -> dict[str, Any]:
    caller = {"session_id": "", "pane_id": "", "client": client}
    return {**who, "session_name": "work", "caller": caller, "move": True}


def shown(home: Home) -> str:
    return home.tmux("list-clients", "-F", "#{pane_id}")


@pytest.mark.parametrize("wrong", [{"pid": 1}, {"server": "1-1"}, {"pane_id": "%99"}])
def test_a_terminal_stays_where_it_is_unless_all_is_as_it_was(home: Home, wrong: dict[str, Any]) -> None:
    here, agent = home.pane(agent=None), home.pane()
    probe = ProbeProcess(home)
    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0"))
        wait_until(lambda: shown(home) == here, "the client")
        question = asked(home, inhabitant(home, agent), opened[0].tty)
        assert probe.errand("attach", **question | wrong)["declined"]["code"] == "E_RUNTIME_STALE"
        assert shown(home) == here
        assert probe.errand("attach", **question | {"move": False})["done"]["client"] == opened[0].tty
        assert shown(home) == here
        assert probe.errand("attach", **question)["done"]["client"] == opened[0].tty
        assert shown(home) == agent


@pytest.mark.parametrize("wrong", [{"pid": 1}, {"server": "1-1"}])
def test_also_the_move_itself_is_checked(home: Home, wrong: dict[str, Any]) -> None:
    """Somebody else may have come between the look and the move."""
    here, agent = home.pane(agent=None), home.pane()
    socket = home.tmux("display-message", "-p", "#{socket_path}")
    session_id, window_id = home.tmux("display-message", "-p", "-t", agent, "#{session_id} #{window_id}").split()
    place = _Seen(agent, window_id, session_id, "", "work")
    right = Inhabited(**inhabitant(home, agent))
    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0"))
        wait_until(lambda: shown(home) == here, "the client")
        client = Client(opened[0].tty, session_id, "@0", "0", "0")
        with pytest.raises(MovedError):
            _switch(socket, right._replace(**wrong), place, client, 4.0)
        with pytest.raises(NoClientError):
            _switch(socket, right, place, client._replace(name="/dev/pts/gone"), 4.0)
        assert shown(home) == here
        _switch(socket, right, place, client, 4.0)
        assert shown(home) == agent


def test_while_panes_are_replaced_the_terminal_never_shows_another(home: Home) -> None:
    """The pane gets another process again and again, and each attach means one of them."""
    here, agent = home.pane(agent=None), home.pane()
    probe = ProbeProcess(home)
    moved, refused, is_over = 0, 0, threading.Event()

    def replace() -> None:
        while not is_over.is_set():
            home.tmux("respawn-pane", "-k", "-t", agent, "sleep 3600")

    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0"))
        wait_until(lambda: shown(home) == here, "the client")
        replacing = threading.Thread(target=replace)
        replacing.start()
        try:
            for _ in range(60):
                question = asked(home, inhabitant(home, agent), opened[0].tty)
                answer = probe.errand("attach", **question)
                moved, refused = moved + ("done" in answer), refused + ("declined" in answer)
                if "declined" in answer:
                    assert answer["declined"]["code"] == "E_RUNTIME_STALE"
                    assert shown(home) == here
                else:
                    home.tmux("switch-client", "-c", opened[0].tty, "-t", here)
        finally:
            is_over.set()
            replacing.join()
    assert moved + refused == 60 and refused > 0
