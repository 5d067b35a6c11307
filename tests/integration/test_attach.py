"""`attach` moves the terminal it is called from to the pane that was meant, and no other, or it moves nothing."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.home import COMMANDS, Home, event, wait_until
from support.terminal import Terminal, terminals

Open = Callable[..., Terminal]


@pytest.fixture
def attached(home: Home) -> Iterator[Open]:
    """`attached("work:0")` is a terminal with a tmux client in it that shows this."""
    with terminals(home) as opened:

        def attach(target: str) -> Terminal:
            opened.append(Terminal(home, "tmux", "-f", "/dev/null", "attach-session", "-t", target))
            wait_until(lambda: opened[-1].tty in clients(home), "the client")
            return opened[-1]

        yield attach


@pytest.fixture
def outside(home: Home) -> Iterator[Open]:
    """A terminal that is in no tmux, and runs the command."""
    with terminals(home) as opened:

        def run(*words: str, env: dict[str, str] | None = None) -> Terminal:
            opened.append(Terminal(home, COMMANDS / "agtmux", *words, env=env))
            return opened[-1]

        yield run


def clients(home: Home) -> dict[str, str]:
    """What each terminal shows."""
    rows = home.tmux("list-clients", "-F", "#{client_tty} #{session_name}/#{window_id}/#{pane_id}").splitlines()
    return dict(row.split(" ", 1) for row in rows)


def seen(home: Home, pane: str) -> dict[str, Any]:
    return wait_until(lambda: home.panes().get(pane), "the pane")


def run_in(home: Home, pane: str, *words: str) -> subprocess.CompletedProcess[str]:
    """As a command typed in that pane."""
    return home.run("attach", *words, env=home.tmux_variables(pane))


def session(home: Home, name: str) -> str:
    return home.tmux("new-session", "-d", "-s", name, "-x", "100", "-P", "-F", "#{pane_id}", "sleep 3600")


def test_the_terminal_one_is_in_moves_across_sessions_and_no_other_does(home: Home, attached: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    elsewhere, other = session(home, "it's a $HOME; name"), session(home, "other")
    home.tmux("set-option", "-p", "-t", elsewhere, "@agtmux_agent", "claude")
    mine, theirs = attached("work:0"), attached("other:0")
    home.start()
    before = clients(home)
    for pane in (elsewhere, agent):
        item = seen(home, pane)
        done = run_in(home, here, item["ref"], "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["way"], answer["client"], answer["result_code"]) == ("switched", mine.tty, "done")
        assert clients(home)[mine.tty].endswith(f"/{pane}")
        assert clients(home)[theirs.tty] == before[theirs.tty]
        # Back to where the next call comes from.
        home.tmux("switch-client", "-c", mine.tty, "-t", here)
    about = json.loads(home.run("log", "actions", "--json").stdout)["items"][0]["about"]
    assert (about["way"], about["client"]) == ("switched", mine.tty)
    assert other in before[theirs.tty]


def test_of_several_terminals_that_show_the_pane_the_one_used_last_moves(home: Home, attached: Open) -> None:
    here, agent, far = home.pane(agent=None, command="cat"), home.pane(), session(home, "far")
    home.start()
    ref = seen(home, far)["ref"]
    seen(home, agent)
    first, second = attached("work:0"), attached("work:0")

    def activity() -> dict[str, int]:
        rows = home.tmux("list-clients", "-F", "#{client_tty} #{client_activity}").splitlines()
        return {row.split()[0]: int(row.split()[1]) for row in rows}

    def is_used_last() -> bool:
        # tmux counts in seconds.
        first.type("x")
        return activity()[first.tty] > activity()[second.tty]

    wait_until(is_used_last, "a second that is another")
    done = run_in(home, here, ref)
    assert done.returncode == 0, done.stderr
    assert clients(home)[first.tty].endswith(far)
    assert clients(home)[second.tty].endswith(here)
    named = run_in(home, here, ref, "--client", second.tty)
    assert named.returncode == 0 and clients(home)[second.tty].endswith(far)
    nobody = run_in(home, here, ref, "--client", "/dev/pts/nobody")
    assert nobody.returncode == 4 and "E_PRECONDITION_FAILED" in nobody.stderr and agent


def test_without_a_terminal_that_shows_the_caller_nothing_moves(home: Home, attached: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    session(home, "other")
    theirs = attached("other:0")
    home.start()
    ref = seen(home, agent)["ref"]
    before = clients(home)
    done = run_in(home, here, ref)
    assert done.returncode == 4 and "--client" in done.stderr
    assert clients(home) == before and theirs.tty in before


def test_from_a_popup_its_owner_moves(home: Home, attached: Open) -> None:
    home.pane(agent=None)
    far = session(home, "far")
    home.start()
    ref = seen(home, far)["ref"]
    mine = attached("work:0")
    said = home.folder / "said"
    environment = [
        word for name, value in home.env.items() if name.startswith("AGTMUX") for word in ("-e", f"{name}={value}")
    ]
    command = f'"{COMMANDS}/agtmux" attach {ref} >{said} 2>&1; echo status=$? >>{said}'
    home.tmux("display-popup", "-c", mine.tty, *environment, "-E", command)
    wait_until(lambda: said.exists() and "status=" in said.read_text(), "the end of the popup")
    assert said.read_text() == "status=0\n"
    assert clients(home)[mine.tty].endswith(far)


def test_a_zoomed_window_stays_so(home: Home, attached: Open) -> None:
    here = home.pane(agent=None)
    agent = home.pane()
    beside = home.tmux("split-window", "-d", "-t", agent, "-P", "-F", "#{pane_id}", "sleep 3600")
    home.tmux("select-pane", "-t", beside)
    home.tmux("resize-pane", "-Z", "-t", beside)
    mine = attached("work:0")
    home.start()
    done = run_in(home, here, seen(home, agent)["ref"])
    assert done.returncode == 0, done.stderr
    assert clients(home)[mine.tty].endswith(agent)
    assert home.tmux("display-message", "-p", "-t", agent, "#{window_zoomed_flag}") == "1"


def test_of_a_window_in_two_sessions_the_one_that_was_named_is_shown(home: Home, attached: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    session(home, "zzz")
    home.tmux("link-window", "-s", agent, "-t", "zzz:7")
    mine = attached("work:0")
    home.start()
    item = seen(home, agent)
    done = run_in(home, here, item["ref"])
    assert done.returncode == 0, done.stderr
    assert clients(home)[mine.tty].split("/")[0] == item["identity"]["session_name"]


def test_in_a_group_of_sessions_one_stays_in_ones_own(home: Home, attached: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    home.tmux("new-session", "-d", "-s", "mine", "-t", "work")
    mine, theirs = attached("mine:0"), attached("work:0")
    home.start()
    item = seen(home, agent)
    done = home.run("attach", item["ref"], "--client", mine.tty, env=home.tmux_variables(here))
    assert done.returncode == 0, done.stderr
    assert clients(home)[mine.tty].split("/")[0] == "mine" and clients(home)[mine.tty].endswith(agent)
    assert clients(home)[theirs.tty].endswith(here)


def test_a_pane_with_another_in_it_is_refused_and_nothing_moves(home: Home, attached: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    mine = attached("work:0")
    home.start()
    item = seen(home, agent)
    runtime = f"runtime:{item['runtime_id']}"
    home.tmux("respawn-pane", "-k", "-t", agent, "sleep 3600")
    done = run_in(home, here, runtime)
    assert done.returncode == 4 and "E_RUNTIME_STALE" in done.stderr
    done = run_in(home, here, item["ref"], "--if-runtime", item["runtime_id"])
    assert done.returncode == 4 and "E_RUNTIME_STALE" in done.stderr
    wait_until(lambda: home.panes()[agent]["runtime_id"] != item["runtime_id"], "who is there now")
    home.ask("POST", "/v1/events", event(agent))
    done = run_in(home, here, item["ref"], "--if-state", "idle")
    assert done.returncode == 4 and "E_PRECONDITION_FAILED" in done.stderr
    home.tmux("set-option", "-g", "remain-on-exit", "on")
    dead = home.pane(command="true")
    wait_until(lambda: home.tmux("display-message", "-p", "-t", dead, "#{pane_dead}") == "1", "its end")
    done = run_in(home, here, seen(home, dead)["ref"])
    assert done.returncode == 4 and "E_RUNTIME_STALE" in done.stderr
    assert clients(home)[mine.tty].endswith(here)


def test_from_outside_tmux_the_terminal_is_attached(home: Home, outside: Open) -> None:
    here, agent = home.pane(agent=None), home.pane()
    home.start()
    ref = seen(home, agent)["ref"]
    # The user's own TMUX_TMPDIR need not be the daemon's.
    terminal = outside("attach", ref, env={"TMUX_TMPDIR": "/nowhere"})
    wait_until(lambda: terminal.tty in clients(home), "the client")
    assert clients(home)[terminal.tty].endswith(agent)
    home.tmux("detach-client", "-t", terminal.tty)
    assert terminal.ended() == 0, terminal.text
    without = home.run("attach", ref)
    assert without.returncode == 2 and "--print" in without.stderr and here


def test_what_is_printed_does_it_later_unless_another_is_there_by_then(home: Home, outside: Open) -> None:
    home.pane(agent=None)
    agent = home.pane()
    home.start()
    done = home.run("attach", seen(home, agent)["ref"], "--print")
    assert done.returncode == 0, done.stderr
    argv = shlex.split(done.stdout)
    assert home.tmux("list-clients") == ""
    log = json.loads(home.run("log", "actions", "--json").stdout)["items"][0]
    assert (log["result_code"], log["about"]["way"], log["about"]["is_printed"]) == ("done", "command", True)
    with terminals(home) as opened:
        opened.append(Terminal(home, *argv))
        wait_until(lambda: opened[0].tty in clients(home), "the client")
        assert clients(home)[opened[0].tty].endswith(agent)
        home.tmux("detach-client", "-t", opened[0].tty)
        # The same pane, another process: as it would be with a pane id that was used again.
        home.tmux("respawn-pane", "-k", "-t", agent, "sleep 3600")
        opened.append(Terminal(home, *argv))
        assert opened[1].ended() == 1
        assert "can't find pane: that agent, which has ended" in opened[1].text
        home.tmux("kill-pane", "-t", agent)
        opened.append(Terminal(home, *argv))
        assert opened[2].ended() == 1
        assert home.tmux("list-clients") == ""
        home.tmux("kill-server")
        opened.append(Terminal(home, *argv))
        assert opened[3].ended() == 1, "no server is started"
        assert subprocess.run(["tmux", "ls"], env=home.env, capture_output=True).returncode != 0


def test_in_another_tmux_server_it_is_said_what_to_do(home: Home, outside: Open) -> None:
    agent = home.pane()
    home.start()
    ref = seen(home, agent)["ref"]
    inside_another = {"TMUX": f"{home.folder}/tmux-0/other,1,0", "TMUX_PANE": "%0"}
    done = home.run("attach", ref, env=inside_another)
    assert done.returncode == 4 and "--nested" in done.stderr and "--print" in done.stderr
    assert home.run("attach", ref, "--print", env=inside_another).returncode == 0
    terminal = outside("attach", ref, "--nested", env=inside_another)
    wait_until(lambda: terminal.tty in clients(home), "the client")


def test_the_one_that_waits_longest_comes_first_and_then_the_next(home: Home, attached: Open) -> None:
    here, first, second = home.pane(agent=None), home.pane(), home.pane()
    mine = attached("work:0")
    home.start()
    seen(home, second)
    assert run_in(home, here, "--waiting").returncode == 5
    for pane in (first, second):
        home.ask("POST", "/v1/events", event(pane, "state.waiting_input"))
    for pane, expected in ((here, first), (first, second), (second, first)):
        done = run_in(home, pane, "--waiting")
        assert done.returncode == 0, done.stderr
        assert clients(home)[mine.tty].endswith(expected)
