"""`agtmux up` in a real terminal: the table lives, `q` leaves, and the terminal is as it was."""

import re
import signal

import pytest

from support.home import COMMANDS, Home, event, wait_until


@pytest.fixture
def shell(home: Home) -> str:
    """A pane with a shell in it, that knows this home."""
    pane = home.pane(agent=None, command="env PS1='$ ' sh")
    home.tmux("set-option", "-g", "remain-on-exit", "on")
    wait_until(lambda: "$" in screen(home, pane), "the shell")
    return pane


def screen(home: Home, pane: str) -> str:
    return home.tmux("capture-pane", "-p", "-t", pane)


def mode_of(home: Home, pane: str) -> str:
    """Alternate screen, cursor, and what runs."""
    return home.tmux("display-message", "-p", "-t", pane, "#{alternate_on} #{cursor_flag} #{pane_current_command}")


def type_line(home: Home, pane: str, line: str) -> None:
    home.tmux("send-keys", "-t", pane, "-l", line)
    home.tmux("send-keys", "-t", pane, "Enter")


def is_restored(home: Home, pane: str) -> bool:
    return mode_of(home, pane).split()[:2] == ["0", "1"] and mode_of(home, pane).split()[2] in ("sh", "dash", "bash")


@pytest.mark.parametrize("leave", ["q", "C-c"])
def test_the_table_lives_and_the_terminal_is_restored(home: Home, shell: str, leave: str):
    agent = home.pane()
    home.start()
    wait_until(lambda: agent in home.panes(), "the agent")
    type_line(home, shell, f'"{COMMANDS}/agtmux" up --no-register')
    wait_until(lambda: "1 agent, nobody needs you" in screen(home, shell), "the table")
    assert mode_of(home, shell).startswith("1 0 ")
    assert "q leaves" in screen(home, shell)
    payload = {"tool_name": "Bash", "tool_input": {"command": "make deploy"}}
    home.ask("POST", "/v1/events", event(agent, "claude.PermissionRequest", raw_payload=payload))
    # Some looks later its confidence falls, as its empty screen does not bear it out.
    asks = r"! +waiting_approval(?: \(medium\))? +claude .*make deploy"
    wait_until(lambda: re.search(asks, screen(home, shell)), "the question")
    assert "1 needs you" in screen(home, shell)
    home.tmux("send-keys", "-t", shell, leave)
    wait_until(lambda: is_restored(home, shell), "the end of the table")
    type_line(home, shell, "stty -a | tr ';' '\\n' | grep -o ' echo \\| icanon ' | sort | tr -d '\\n'; echo =$?")
    wait_until(lambda: re.search(r"^ ?echo\s+icanon ?=0", screen(home, shell), re.MULTILINE), "what stty says")
    assert "Traceback" not in screen(home, shell)
    assert home.run("status").returncode == 0, "the daemon stays"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", ["up --no-register", "watch", "watch --no-start"])
def test_the_table_outlives_its_daemon(home: Home, shell: str, command: str, how: int):
    agent = home.pane()
    daemon = home.start()
    wait_until(lambda: agent in home.panes(), "the agent")
    type_line(home, shell, f'"{COMMANDS}/agtmux" {command}; echo status=$?')
    wait_until(lambda: "1 agent, nobody needs you" in screen(home, shell), "the table")
    daemon.send_signal(how)
    daemon.communicate()
    wait_until(lambda: "agtmuxd has been away for" in screen(home, shell), "word that it is away")
    # What was last seen stays, and is not taken for what is.
    assert "claude" in screen(home, shell) and "this is what it last said" in screen(home, shell)
    wait_until(lambda: re.search(r"away for ([2-9]|\d\d)s", screen(home, shell)), "the seconds to pass")
    assert home.lock_holder() is None, "nobody has started it"
    home.start()
    payload = {"tool_name": "Bash", "tool_input": {"command": "make deploy"}}
    home.ask("POST", "/v1/events", event(agent, "claude.PermissionRequest", raw_payload=payload))
    wait_until(lambda: "make deploy" in screen(home, shell), "what the next daemon tells")
    assert "away" not in screen(home, shell)
    home.tmux("send-keys", "-t", shell, "q")
    wait_until(lambda: "status=0" in screen(home, shell), "the end of the table")
    assert "Traceback" not in screen(home, shell) and is_restored(home, shell)


@pytest.mark.parametrize("leave", ["q", "C-c"])
def test_the_table_is_left_while_the_daemon_is_away(home: Home, shell: str, leave: str):
    daemon = home.start()
    type_line(home, shell, f'"{COMMANDS}/agtmux" watch; echo status=$?')
    wait_until(lambda: "No agent is running" in screen(home, shell), "the table")
    home.end(daemon)
    wait_until(lambda: "agtmuxd has been away for" in screen(home, shell), "word that it is away")
    home.tmux("send-keys", "-t", shell, leave)
    wait_until(lambda: re.search(r"status=\d", screen(home, shell)), "the end of the table")
    assert "Traceback" not in screen(home, shell) and is_restored(home, shell)
    assert home.lock_holder() is None


def test_a_window_too_small_for_it_is_no_crash(home: Home, shell: str):
    agents = [home.pane() for _ in range(5)]
    home.start()
    wait_until(lambda: set(agents) <= set(home.panes()), "the agents")
    home.tmux("set-option", "-g", "window-size", "manual")
    home.tmux("resize-window", "-t", shell, "-x", "20", "-y", "3")
    type_line(home, shell, f'"{COMMANDS}/agtmux" up --no-register; echo status=$?')
    wait_until(lambda: "5 agents" in screen(home, shell), "the table")
    home.tmux("resize-window", "-t", shell, "-x", "90", "-y", "20")
    wait_until(lambda: screen(home, shell).count("claude") == 5, "the table in full")
    home.tmux("send-keys", "-t", shell, "q")
    wait_until(lambda: "status=0" in screen(home, shell), "the end of the table")


def test_without_a_keyboard_it_prints_the_table_once(home: Home, shell: str):
    home.start()
    type_line(home, shell, f'"{COMMANDS}/agtmux" up --no-register </dev/null; echo status=$?')
    wait_until(lambda: "status=0" in screen(home, shell), "the end")
    assert "No agent is running" in screen(home, shell)
