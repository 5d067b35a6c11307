"""`agtmux.tmux` in a real tmux: its keys do what they say, what the user has stays, and all of it can be taken back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.home import COMMANDS, Home, event, wait_until
from support.terminal import Terminal, terminals

PLUGIN = Path(__file__).resolve().parents[2] / "agtmux.tmux"
PREFIX = "\x02"


@pytest.fixture
def here(home: Home) -> str:
    pane = home.pane(agent=None)
    home.tmux("set-option", "-g", "@agtmux_command", str(COMMANDS / "agtmux"))
    return pane


@pytest.fixture
def terminal(home: Home, here: str) -> Iterator[Terminal]:
    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0"))
        wait_until(lambda: shown(home) == {opened[0].tty: here}, "the client")
        yield opened[0]


def plugin(home: Home, *words: str) -> None:
    home.tmux("run-shell", f"'{PLUGIN}' {' '.join(words)}")


def shown(home: Home) -> dict[str, str]:
    rows = home.tmux("list-clients", "-F", "#{client_tty} #{pane_id}").splitlines()
    return dict(row.split(" ", 1) for row in rows)


def keys(home: Home) -> list[str]:
    return home.tmux("list-keys", "-T", "prefix").splitlines()


def settings(home: Home) -> list[str]:
    return [*keys(home), home.tmux("show-options", "-g")]


def test_everything_can_be_taken_back(home: Home, here: str) -> None:
    home.tmux("set-option", "-g", "status-right", "a #{agtmux} b#{agtmux}%H")
    home.tmux("set-option", "-g", "status-left", '[#S] it\'s "mine" $HOME \\')
    before = settings(home)
    plugin(home)
    first = settings(home)
    assert len(keys(home)) == len(before) - 1 + 2
    bar = f"#('{COMMANDS}/agtmux' bar --format tmux)"
    assert home.tmux("show-options", "-gv", "status-right") == f"a {bar} b{bar}%H"
    plugin(home)
    assert settings(home) == first, "a second time changes nothing"
    plugin(home, "off")
    assert settings(home) == before
    plugin(home, "off")
    assert settings(home) == before


def test_a_users_bindings_and_lines_stay(home: Home, terminal: Terminal) -> None:
    home.tmux("bind-key", "g", "display-message", "mine")
    home.tmux("set-option", "-g", "@agtmux_next_key", "none")
    before = settings(home)
    plugin(home)
    home.tmux("set-option", "-gu", "@agtmux_bar")
    assert settings(home) == before
    wait_until(lambda: "prefix g is bound already" in terminal.text, "what is said about it")
    home.tmux("set-option", "-g", "@agtmux_key", "C-y")
    plugin(home)
    assert [line.split()[3] for line in keys(home) if "agtmux.tmux" in line] == ["C-y"]


def test_a_key_opens_the_list_and_enter_jumps(home: Home, here: str, terminal: Terminal) -> None:
    agent = home.pane()
    home.start()
    wait_until(lambda: agent in home.panes(), "the agent")
    plugin(home)
    terminal.type(f"{PREFIX}g")
    wait_until(lambda: "⏎ jump" in terminal.text, "the list")
    terminal.type("\r")
    wait_until(lambda: shown(home) == {terminal.tty: agent}, "the jump")


def test_a_key_goes_to_who_has_waited_longest_and_then_to_the_next(home: Home, here: str, terminal: Terminal) -> None:
    first, second = home.pane(), home.pane()
    home.start()
    wait_until(lambda: second in home.panes(), "the agents")
    plugin(home)
    terminal.type(f"{PREFIX}G")
    wait_until(lambda: "no agent needs you" in terminal.text, "what is said")
    for pane in (first, second):
        home.ask("POST", "/v1/events", event(pane, "state.waiting_input"))
    for expected in (first, second, first):
        terminal.type(f"{PREFIX}G")
        wait_until(lambda expected=expected: shown(home) == {terminal.tty: expected}, "the jump")


def test_who_is_in_another_server_gets_a_window(home: Home, here: str, terminal: Terminal) -> None:
    socket = f"{home.folder}/other"
    subprocess.run(
        ["tmux", "-f", "/dev/null", "-S", socket, "new-session", "-d", "-s", "far", "sleep 3600"],
        env=home.env,
        check=True,
    )
    try:
        subprocess.run(["tmux", "-S", socket, "set-option", "-p", "@agtmux_agent", "claude"], env=home.env, check=True)
        home.start()
        home.ask("POST", "/v1/targets", {"name": "far", "tmux_socket": socket})
        wait_until(lambda: "far" in str(home.ask("GET", "/v1/panes").json["items"]), "the pane")
        home.ask("POST", "/v1/events", event("%0", "state.waiting_input", target_id="far"))
        plugin(home)
        terminal.type(f"{PREFIX}G")
        wait_until(lambda: "far" in home.tmux("list-windows", "-F", "#{window_name}"), "the window")
        ask = ["tmux", "-S", socket, "list-clients", "-F", "#{session_name}"]
        wait_until(
            lambda: subprocess.run(ask, env=home.env, capture_output=True).stdout == b"far\n", "the client there"
        )
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], env=home.env, check=False)


def test_what_is_said_is_no_format_of_tmux(home: Home, here: str, terminal: Terminal) -> None:
    liar = home.folder / "liar"
    liar.write_text(f"#!/bin/sh\necho 'agtmux: E_X: #(touch {home.folder}/ran) #{{pane_id}} %H' >&2\nexit 1\n")
    liar.chmod(0o755)
    home.tmux("set-option", "-g", "@agtmux_command", str(liar))
    plugin(home)
    terminal.type(f"{PREFIX}G")
    wait_until(lambda: "#{pane_id} %H" in terminal.text, "what is said")
    assert not (home.folder / "ran").exists()


def test_a_command_that_is_not_there_is_said_to_be_so(home: Home, here: str, terminal: Terminal) -> None:
    home.tmux("set-option", "-g", "@agtmux_command", "/nowhere/agtmux")
    home.tmux("set-environment", "-g", "PATH", "/usr/bin:/bin")
    alone = home.folder / "agtmux.tmux"
    alone.write_bytes(PLUGIN.read_bytes())
    alone.chmod(0o755)
    subprocess.run(["tmux", "run-shell", str(alone)], env=home.env, capture_output=True, check=False)
    wait_until(lambda: "@agtmux_command" in terminal.text, "what is said")
    assert not [line for line in keys(home) if "agtmux.tmux" in line]


def test_it_is_plain_sh() -> None:
    assert PLUGIN.stat().st_mode & 0o111
    assert subprocess.run(["sh", "-n", str(PLUGIN)], check=False).returncode == 0
    dash = subprocess.run(["sh", str(PLUGIN), "nonsense"], capture_output=True, text=True, check=False)
    assert dash.returncode == 2 and "usage" in dash.stderr
