"""Which panes are in front of the user, by a real tmux server and terminals that report their focus."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from AgtmuxBar.looking import looked_at
from desktop.builders import target
from support.home import Home, home_in, wait_until
from support.terminal import Terminal, terminals

FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"


@pytest.fixture
def home(short_tmp: Path, monkeypatch) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        monkeypatch.setenv("TMUX_TMPDIR", made.env["TMUX_TMPDIR"])
        yield made


@pytest.fixture
def opened(home: Home) -> Iterator[list[Terminal]]:
    with terminals(home) as made:
        yield made


def test_a_pane_is_looked_at_while_its_terminal_has_the_keyboard(home, opened):
    home.pane()
    home.tmux("set-option", "-g", "focus-events", "on")
    opened.append(Terminal(home, "tmux", "attach"))
    wait_until(lambda: home.tmux("list-clients"), "a client")
    terminal = opened[0]
    terminal.type(FOCUS_OUT)
    wait_until(lambda: not looked_at([target()]), "nobody who looks")
    terminal.type(FOCUS_IN)
    wait_until(lambda: looked_at([target()]) == {("host", "%0")}, "the pane in front")
    home.tmux("split-window")
    wait_until(lambda: looked_at([target()]) == {("host", "%1")}, "the pane that is active now")


def test_where_tmux_does_not_listen_nothing_is_known(home, opened):
    """Else every active pane would count, and the notification of a wait that nobody sees would be lost."""
    home.pane()
    home.tmux("set-option", "-g", "focus-events", "off")
    opened.append(Terminal(home, "tmux", "attach"))
    wait_until(lambda: home.tmux("list-clients"), "a client")
    opened[0].type(FOCUS_IN)
    assert looked_at([target()]) == frozenset()


def test_no_server_is_started_to_find_out(home):
    assert looked_at([target(), target("other") | {"tmux_socket": "agtmux-none"}]) == frozenset()
    assert not [file for file in home.folder.rglob("*") if file.is_socket()]


def test_other_machines_are_not_asked(home):
    home.pane()
    assert looked_at([target() | {"kind": "ssh"}]) == frozenset()
