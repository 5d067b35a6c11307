"""`agtmux watch`: JSON lines through a restart, tables in a pipe, and the live table in a terminal."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.home import COMMANDS, PATIENCE, Home, event, wait_until
from support.processes import processes
from support.schemas import check_line
from support.watching import Replayed

AGTMUX = COMMANDS / "agtmux"


@pytest.fixture
def pane(home: Home) -> str:
    """A daemon, and an agent that runs."""
    made = home.pane()
    home.start()
    wait_until(lambda: made in home.panes(), "the pane")
    tell(home, made, "running")
    return made


def tell(home: Home, pane: str, state: str, **payload: Any) -> None:
    """With low confidence: that of another falls some looks later, as its empty screen does not bear it out."""
    fields = {"raw_payload": {"confidence": "low", **payload}}
    assert home.ask("POST", "/v1/events", event(pane, f"state.{state}", **fields)).json["status"] == "applied"


def next_line(child: subprocess.Popen[str], replayed: Replayed) -> dict[str, Any]:
    assert child.stdout is not None
    line = json.loads(child.stdout.readline())
    check_line(line)
    replayed.take(line)
    return replayed.lines[-1]


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, complaints = child.communicate(timeout=PATIENCE)
    return child.returncode, out, complaints


def test_once_is_one_snapshot(home: Home, pane: str):
    done = home.run("watch", "--once", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["type"], line["scope"], line["items"]) == ("snapshot", "panes", [home.panes()[pane]])
    for scope in ("panes", "windows", "sessions"):
        table = home.run("watch", "--once", "--scope", scope)
        assert (table.returncode, table.stderr) == (0, "")
        listed = home.run("list", scope).stdout
        assert re.sub(r"\d+s", "", table.stdout).split() == re.sub(r"\d+s", "", listed).split()


def test_once_with_a_cursor_goes_on_from_there(home: Home, pane: str):
    first = json.loads(home.run("watch", "--once", "--json").stdout)
    assert home.run("watch", "--once", "--json", "--cursor", first["cursor"]).stdout == ""
    tell(home, pane, "waiting_input")
    done = home.run("watch", "--once", "--json", "--cursor", first["cursor"])
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["sequence"], line["changes"][0]["item"]["state"]) == (2, "waiting_input")


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["--json", "--cursor", "nonsense"], "E_CURSOR_INVALID", 2),
        (["--json", "--once", "--cursor", "0" * 32 + ":1"], "E_CURSOR_EXPIRED", 4),
        (["--cursor", "0" * 32 + ":1"], "E_USAGE", 2),
        (["--json", "--format", "table"], "E_USAGE", 2),
        (["--interval", "5"], "E_USAGE", 2),
        (["--scope", "floors"], "E_USAGE", 2),
        (["--state", "busy"], "E_USAGE", 2),
        (["--group-by", "session-name"], "E_USAGE", 2),
        (["--target", "vm9"], "E_TARGET_NOT_FOUND", 5),
    ],
)
def test_what_cannot_be_watched_is_refused(home: Home, pane: str, words: list[str], code: str, status: int):
    done = home.run("watch", *words)
    assert (done.returncode, done.stderr.split(":")[1].strip()) == (status, code), done
    if "--json" in words:
        assert json.loads(done.stdout)["error"]["code"] == code


def test_without_a_daemon_none_is_started_where_that_is_forbidden(home: Home):
    done = home.run("watch", "--no-start", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (3, "E_DAEMON_UNAVAILABLE")


def test_lines_go_on_through_a_restart(home: Home):
    pane = home.pane()
    daemon = home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    child = home.spawn(AGTMUX, "watch", "--format", "jsonl")
    replayed = Replayed()
    assert next_line(child, replayed)["type"] == "snapshot"
    tell(home, pane, "running")
    assert next_line(child, replayed)["type"] == "delta"
    home.end(daemon)
    assert next_line(child, replayed)["type"] == "reset"
    daemon = home.start()
    assert [next_line(child, replayed)["type"] for _ in range(2)] == ["reset", "snapshot"]
    daemon.kill()
    daemon.communicate()
    home.start()
    assert [next_line(child, replayed)["type"] for _ in range(2)] == ["reset", "snapshot"]
    wait_until(lambda: pane in home.panes(), "the pane")
    tell(home, pane, "waiting_approval")
    while not any(item["state"] == "waiting_approval" for item in (replayed.items or {}).values()):
        next_line(child, replayed)
    child.send_signal(signal.SIGINT)
    status, _, complaints = ended(child)
    assert status == 130
    assert "Traceback" not in complaints


def test_lines_go_on_where_the_shell_ignores_ctrl_c(home: Home):
    """As `nohup agtmux watch … &` in a script: Ctrl-C is for what that script does next."""
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    child = home.spawn("sh", "-c", f"trap '' INT; exec '{AGTMUX}' watch --format jsonl")
    replayed = Replayed()
    assert next_line(child, replayed)["type"] == "snapshot"
    child.send_signal(signal.SIGINT)
    tell(home, pane, "running")
    assert next_line(child, replayed)["type"] == "delta"
    child.send_signal(signal.SIGTERM)
    ended(child)


def test_a_daemon_that_was_stopped_is_waited_for_and_not_started(home: Home):
    daemon = home.start()
    child = home.spawn(AGTMUX, "watch", "--format", "jsonl")
    replayed = Replayed()
    assert next_line(child, replayed)["type"] == "snapshot"
    home.end(daemon)
    assert child.stderr is not None
    assert "waiting for it" in child.stderr.readline()
    assert home.answering_pid() is None if home.socket.exists() else True
    assert home.lock_holder() is None
    home.start()
    assert [next_line(child, replayed)["type"] for _ in range(3)] == ["reset", "reset", "snapshot"]


def test_a_reader_that_has_enough_ends_it_in_silence(home: Home, pane: str):
    """At once, although there is nothing to write that could fail."""
    for words in ("--format jsonl", "--format table"):
        command = f'"{AGTMUX}" watch {words} | head -n 1'
        done = subprocess.run(
            ["sh", "-c", command],
            env=home.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 1


def test_an_output_that_is_full_is_said(home: Home, pane: str):
    with Path("/dev/full").open("w") as full:
        where = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        done = home.run("watch", "--once", "--format", "jsonl", **where)
    assert (done.returncode, "E_INTERNAL" in done.stderr) == (1, True), done


def test_in_a_pipe_the_table_comes_anew_when_something_changes(home: Home, pane: str):
    child = home.spawn(AGTMUX, "watch", "--interval", "1s")
    assert child.stdout is not None

    def table() -> list[str]:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("1 agent, "), lines
        return lines

    assert "running" in table()[2]
    # Many at once are one table, which tells the last.
    for state in ("idle", "running", "idle", "running", "waiting_input"):
        tell(home, pane, state)
    tables = []
    while not tables or "waiting_input" not in tables[-1][2]:
        assert child.stdout.readline() == "\n"
        tables.append(table())
    assert len(tables) <= 3
    child.send_signal(signal.SIGTERM)
    status, rest, complaints = ended(child)
    assert (status, rest, complaints) == (-signal.SIGTERM, "", "")


def test_a_table_in_a_pipe_outlives_its_daemon(home: Home):
    daemon = home.start()
    child = home.spawn(AGTMUX, "watch")
    assert child.stdout is not None and child.stderr is not None
    assert "No agent is running" in child.stdout.readline()
    home.end(daemon)
    assert "agtmuxd has stopped; waiting for it" in child.stderr.readline()
    assert home.lock_holder() is None, "nobody has started it"
    home.start()
    pane = home.pane()
    wait_until(lambda: pane in home.panes(), "the pane")
    while "1 agent, " not in (line := child.stdout.readline()):
        assert line, "it has ended"
    child.send_signal(signal.SIGTERM)
    assert ended(child)[0] == -signal.SIGTERM


def test_a_table_that_may_not_come_yet_comes_when_the_daemon_goes(home: Home):
    daemon = home.start()
    child = home.spawn(AGTMUX, "watch", "--interval", "3650d")
    assert child.stdout is not None
    assert "No agent is running" in child.stdout.readline()
    pane = home.pane()
    wait_until(lambda: pane in home.panes(), "the pane")
    home.end(daemon)
    while "1 agent, " not in (line := child.stdout.readline()):
        assert line, "it has ended"
    child.send_signal(signal.SIGTERM)
    ended(child)


# In a terminal


def screen(home: Home, pane: str, *how: str) -> str:
    return home.tmux("capture-pane", "-p", *how, "-t", pane)


def mode_of(home: Home, pane: str) -> list[str]:
    said = home.tmux("display-message", "-p", "-t", pane, "#{alternate_on} #{cursor_flag} #{pane_current_command}")
    return said.split()


@pytest.fixture
def shell(home: Home) -> str:
    made = home.pane(agent=None, command="env PS1='$ ' ENV= bash --norc --noprofile -i")
    home.tmux("set-option", "-g", "remain-on-exit", "on")
    wait_until(lambda: "$" in screen(home, made), "the shell")
    return made


def type_line(home: Home, pane: str, line: str) -> None:
    home.tmux("send-keys", "-t", pane, "-l", line)
    home.tmux("send-keys", "-t", pane, "Enter")


def is_shell(home: Home, pane: str) -> bool:
    return mode_of(home, pane) == ["0", "1", "bash"]


def test_the_live_table_of_a_scope_ticks_and_rests_and_comes_back(home: Home, shell: str):
    agent = home.pane()
    home.start()
    wait_until(lambda: agent in home.panes(), "the agent")
    type_line(home, shell, f'"{AGTMUX}" watch --needs-action')
    wait_until(lambda: "No agent fits" in screen(home, shell), "the table")
    tell(home, agent, "waiting_approval", attention={"kind": "approval", "summary": "rm -rf /"})
    asks = r"! +waiting_approval \(low\) +claude +"
    wait_until(lambda: re.search(rf"{asks}\d+s .*rm -rf /", screen(home, shell)), "the question")
    wait_until(lambda: re.search(rf"{asks}([2-9]|\d\d)s", screen(home, shell)), "the age to grow")
    assert "\x1b[33m" in screen(home, shell, "-e"), "in its colour"
    home.tmux("send-keys", "-t", shell, "C-z")
    wait_until(lambda: is_shell(home, shell), "the shell")
    type_line(home, shell, "fg")
    wait_until(lambda: mode_of(home, shell)[:2] == ["1", "0"], "the table")
    wait_until(lambda: "waiting_approval" in screen(home, shell), "its content")
    home.tmux("send-keys", "-t", shell, "q")
    wait_until(lambda: is_shell(home, shell), "the end")
    assert "Traceback" not in screen(home, shell)


def test_a_resize_is_seen_and_colour_can_be_refused(home: Home, shell: str):
    agents = [home.pane() for _ in range(8)]
    home.start()
    wait_until(lambda: set(agents) <= set(home.panes()), "the agents")
    home.tmux("set-option", "-g", "window-size", "manual")
    home.tmux("resize-window", "-t", shell, "-x", "70", "-y", "8")
    type_line(home, shell, f'NO_COLOR=1 "{AGTMUX}" watch')
    wait_until(lambda: "… and 5 more" in screen(home, shell), "the table, cut")
    assert "\x1b[3" not in screen(home, shell, "-e")
    home.tmux("resize-window", "-t", shell, "-x", "120", "-y", "30")
    wait_until(lambda: screen(home, shell).count("claude") == 8, "the table in full")
    home.tmux("resize-window", "-t", shell, "-x", "30", "-y", "30")
    wait_until(lambda: screen(home, shell).count("…") >= 8, "the narrow table")
    home.tmux("send-keys", "-t", shell, "q")
    wait_until(lambda: is_shell(home, shell), "the end")


def child_of(home: Home, pane: str) -> int:
    shell = int(home.tmux("display-message", "-p", "-t", pane, "#{pane_pid}"))
    return next(pid for pid, process in processes().items() if process.parent == shell)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_table_that_is_ended_leaves_the_terminal_as_it_was(home: Home, shell: str, number: int, status: int):
    home.start()
    type_line(home, shell, f'"{AGTMUX}" watch --scope sessions; echo status=$?')
    wait_until(lambda: mode_of(home, shell)[0] == "1", "the table")
    wait_until(lambda: "No agent" in screen(home, shell), "its content")
    os.kill(child_of(home, shell), number)
    wait_until(lambda: f"status={status}" in screen(home, shell), "the end")
    assert is_shell(home, shell)


def test_a_table_ends_with_its_terminal(home: Home, shell: str):
    home.start()
    type_line(home, shell, f'"{AGTMUX}" watch')
    wait_until(lambda: "No agent" in screen(home, shell), "the table")
    child = child_of(home, shell)
    home.tmux("kill-pane", "-t", shell)
    wait_until(lambda: child not in processes(), "its end")
    wait_until(lambda: home.health()["streams"] == 0, "the end of its stream")


def test_a_wrong_question_is_said_without_taking_the_screen(home: Home, shell: str):
    home.start()
    type_line(home, shell, f'"{AGTMUX}" watch --target vm9; echo status=$?')
    wait_until(lambda: "status=5" in screen(home, shell), "the end")
    assert "E_TARGET_NOT_FOUND" in screen(home, shell)
