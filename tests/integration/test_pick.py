"""`pick` in real terminals: what it shows is live, Enter jumps to it, and the terminal is as it was afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest

from support.home import COMMANDS, Home, event, wait_until
from support.hook import patient_in
from support.terminal import Terminal, terminals

ASKED = {"tool_name": "Bash", "tool_input": {"command": "make deploy"}}
Pick = Callable[..., Terminal]


@pytest.fixture
def pick(home: Home) -> Iterator[Pick]:
    """`pick("--print")` in a terminal that is in no tmux, once it shows anything."""
    with terminals(home) as opened:

        def start(*words: str, size: str = "100x30", env: dict[str, str] | None = None) -> Terminal:
            opened.append(Terminal(home, COMMANDS / "agtmux", "pick", *words, size=size, env=env))
            wait_until(lambda: "q leave" in opened[-1].text or "⏎" in opened[-1].text, "the list")
            return opened[-1]

        yield start


def agents(home: Home, count: int = 1, command: str = "sleep 3600") -> list[str]:
    panes = [home.pane(command=command) for _ in range(count)]
    home.start()
    wait_until(lambda: set(panes) <= set(home.panes()), "the agents")
    return panes


def clients(home: Home) -> dict[str, str]:
    rows = home.tmux("list-clients", "-F", "#{client_tty} #{pane_id}").splitlines()
    return dict(row.split(" ", 1) for row in rows)


def is_restored(terminal: Terminal) -> bool:
    return terminal.text.rstrip("^C\r\n").endswith("\x1b[?25h\x1b[?1049l")


def test_the_list_is_live_and_shows_the_screen_of_the_chosen_one(home: Home, pick: Pick) -> None:
    [quiet, asking] = agents(home, 2, command="sh -c 'echo on screen of $TMUX_PANE; exec sleep 3600'")
    terminal = pick()
    wait_until(lambda: f"on screen of {quiet}" in terminal.text, "its screen")
    home.ask("POST", "/v1/events", event(asking, "claude.PermissionRequest", raw_payload=ASKED))
    wait_until(lambda: "make deploy" in terminal.text, "the question")
    assert f"on screen of {asking}" not in terminal.text, "who is chosen stays chosen"
    terminal.type("g")
    wait_until(lambda: f"on screen of {asking}" in terminal.text, "the other's screen")
    terminal.resize("40x8")
    os.kill(terminal.process.pid, signal.SIGWINCH)
    before = len(terminal.text)
    wait_until(lambda: "…\x1b[K" in terminal.text[before:], "a narrow list")
    terminal.type("q")
    assert terminal.ended() == 0 and is_restored(terminal)
    items = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert items == [], "a look is no action"


def test_enter_attaches_the_terminal_to_who_was_chosen(home: Home, pick: Pick) -> None:
    panes = agents(home, 3)
    terminal = pick()
    terminal.type("\x1b[B")
    wait_until(lambda: f"/{panes[1]} " in terminal.text, "the second")
    terminal.type("\r")
    wait_until(lambda: clients(home).get(terminal.tty) == panes[1], "the client")
    home.tmux("detach-client", "-t", terminal.tty)
    assert terminal.ended() == 0
    [action] = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert (action["action_type"], action["about"]["actor"], action["about"]["way"]) == ("attach", "pick", "command")


def test_in_a_popup_it_moves_the_terminal_below(home: Home) -> None:
    here = home.pane(agent=None)
    [agent] = agents(home)
    names = [name for name in home.env if name.startswith("AGTMUX")]
    with terminals(home) as opened:
        opened.append(Terminal(home, "tmux", "attach-session", "-t", "work:0"))
        mine = opened[0].tty
        wait_until(lambda: clients(home).get(mine) == here, "the client")
        settings = [word for name in names for word in ("-e", f"{name}={home.env[name]}")]
        popup = home.spawn("tmux", "display-popup", "-c", mine, *settings, "-E", f'"{COMMANDS}/agtmux" pick')
        wait_until(lambda: "⏎ jump" in opened[0].text, "the list")
        # There is no shell behind it that could bring it back.
        opened[0].type("\x1a")
        opened[0].type("\r")
        wait_until(lambda: clients(home)[mine] == agent, "the jump")
        assert popup.wait(20) == 0


def test_an_answer_is_given_once_it_is_confirmed(home: Home, pick: Pick) -> None:
    program = home.folder / "claude"
    shutil.copy("/bin/sleep", program)
    pane = home.pane(agent=None, command=f"{program} 600")
    home.start()
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "claude", "the agent")
    payload = home.folder / "payload"
    payload.write_text(json.dumps(ASKED))
    with payload.open() as asked:
        words = [patient_in(home.folder), "claude", "PermissionRequest", "--wait"]
        hook = home.spawn(*words, env=home.tmux_variables(pane), stdin=asked)
    wait_until(lambda: home.health()["waiting_hooks"] == 1, "the hook to wait")
    terminal = pick()
    wait_until(lambda: "make deploy" in terminal.text, "the question")
    # As in a paste: what comes in one go with the question is no answer to it.
    terminal.type("ay")
    wait_until(lambda: "approve? y/n: make deploy" in terminal.text, "what is to be confirmed")
    assert home.health()["waiting_hooks"] == 1
    terminal.type("y")
    out, _ = hook.communicate(timeout=20)
    assert json.loads(out)["hookSpecificOutput"]["decision"]["behavior"] == "allow"
    [action] = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert (action["action_type"], action["about"]["actor"]) == ("approve", "pick")
    terminal.type("q")
    assert terminal.ended() == 0


def test_what_is_refused_is_said_and_the_list_stays(home: Home, pick: Pick) -> None:
    [agent] = agents(home)
    terminal = pick()
    terminal.type("a")
    wait_until(lambda: "it asks for no approval" in terminal.text, "the refusal")
    # Nobody else's terminal is moved: this one is said to be in a pane that no terminal shows.
    terminal.type("q")
    assert terminal.ended() == 0
    second = pick(env=home.tmux_variables(agent))
    second.type("\r")
    wait_until(lambda: "no terminal shows the tmux session" in second.text, "the refusal")
    second.type("q")
    assert second.ended() == 0 and is_restored(second)


@pytest.mark.parametrize(("way", "status"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_terminal_is_left_as_it_was(home: Home, pick: Pick, way: str | signal.Signals, status: int) -> None:
    agents(home)
    with terminals(home) as opened:
        opened.append(Terminal(home, "sleep", "600"))
        untouched = opened[0].mode
    terminal = pick()
    assert terminal.mode != untouched
    if isinstance(way, str):
        terminal.type(way)
    else:
        terminal.process.send_signal(way)
    assert terminal.ended() == status
    assert terminal.mode == untouched and is_restored(terminal)
    assert "Traceback" not in terminal.text


def test_ctrl_c_leaves_also_where_the_shell_ignores_it(home: Home) -> None:
    """As in what a script starts with `&`, or below nohup."""
    agents(home)
    with terminals(home) as opened:
        opened.append(Terminal(home, "sh", "-c", f"trap '' INT; exec '{COMMANDS}/agtmux' pick"))
        wait_until(lambda: "q leave" in opened[-1].text, "the list")
        opened[-1].type("\x03")
        assert opened[-1].ended() == 130 and is_restored(opened[-1])


def test_it_ends_with_its_daemon_and_says_so(home: Home, pick: Pick) -> None:
    home.pane()
    daemon = home.start()
    terminal = pick()
    home.end(daemon)
    assert terminal.ended() == 3 and "agtmuxd has stopped" in terminal.text


def test_the_choice_can_be_printed(home: Home, pick: Pick) -> None:
    panes = agents(home, 2)
    refs = [home.panes()[pane]["ref"] for pane in panes]
    script = f'chosen=$("{COMMANDS}/agtmux" pick --print) && echo "it is $chosen" || echo nobody'
    with terminals(home) as opened:
        for keys, said in (("j\r", f"it is {refs[1]}"), (f"/{panes[0]}\r", f"it is {refs[0]}"), ("q", "nobody")):
            opened.append(Terminal(home, "sh", "-c", script))
            wait_until(lambda: "⏎ jump" in opened[-1].text, "the list")
            opened[-1].type(keys)
            assert opened[-1].ended() == 0
            assert said in opened[-1].text


def test_without_a_terminal_it_says_what_to_do_instead(home: Home) -> None:
    agents(home)
    done = home.run("pick", start_new_session=True)
    assert done.returncode == 2 and "agtmux list panes" in done.stderr
    assert home.run("pick", "--state", "sleepy", start_new_session=True).returncode == 2


def test_colour_is_left_out_where_it_is_not_wanted(home: Home, pick: Pick) -> None:
    agents(home)
    plain, coloured = pick(env={"NO_COLOR": "1"}), pick()
    assert "\x1b[7m" in coloured.text and "\x1b[7m" not in plain.text and "\x1b[2m" not in plain.text
