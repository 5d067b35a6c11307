"""What is told of an action is what was done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from support import puppets
from support.home import Home, wait_until
from support.probe import ProbeProcess
from support.puppets import Puppet


def odd(home: Home, habit: str, monkeypatch: pytest.MonkeyPatch) -> Puppet:
    launcher = home.folder / "launch.py"
    program = Path(puppets.__file__).with_name("odd_puppet.py")
    launcher.write_text(
        f"import sys, runpy\nsys.path.insert(0, {str(program.parent)!r})\nsys.argv = [{str(program)!r}, *sys.argv[1:3],"
        f" {habit!r}]\nrunpy.run_path({str(program)!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(puppets, "PROGRAM", launcher)
    made = Puppet(home, "one")
    home.start()
    made.wait_for("idle")
    return made


@pytest.mark.parametrize(("habit", "text"), [("backslash", "look into C:\\"), ("mention", "read @READ")])
def test_a_text_that_is_still_in_the_prompt_is_not_delivered(
    home: Home, monkeypatch: pytest.MonkeyPatch, habit: str, text: str
) -> None:
    puppet = odd(home, habit, monkeypatch)
    done = home.run("send", puppet.pane, "--text", text, "--enter")
    assert puppet.submitted() == []
    assert done.stdout != "delivered\n", (done, home.tmux("capture-pane", "-pt", puppet.pane))


def test_a_key_that_was_pressed_is_not_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    puppet = odd(home, "asks", monkeypatch)
    home.run("send", puppet.pane, "--key", "y", "--enter")
    assert ("key", "y") in puppet.given()
    log = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    # "refused: nothing was typed"
    assert log[0]["result_code"] != "refused", log[0]


def test_lines_for_a_program_without_bracketed_paste_are_not_run(home: Home) -> None:
    pane = home.pane(agent=None, command="dash -i")
    home.start()
    wait_until(lambda: home.panes().get(pane), "the pane")
    made = home.folder / "made"
    done = home.run("send", pane, "--text", f"touch {made}\necho", "--shell")
    time.sleep(1)
    assert not made.exists(), (done, home.tmux("capture-pane", "-pt", pane))


def test_a_pane_that_was_respawned_is_another(home: Home) -> None:
    pane = home.pane(agent=None, command="cat")
    home.start()
    wait_until(lambda: home.panes().get(pane), "the pane")
    wait_until(lambda: home.panes()[pane]["state"], "a state")
    before = home.panes()[pane]["runtime_id"]
    pid = home.tmux("display-message", "-pt", pane, "#{pane_pid}")
    home.tmux("respawn-pane", "-k", "-t", pane, "cat")
    assert home.tmux("display-message", "-pt", pane, "#{pane_pid}") != pid
    time.sleep(3)
    done = home.run("send", pane, "--text", "x", "--shell", "--if-runtime", before)
    assert done.returncode == 4, (done, before, home.panes()[pane]["runtime_id"])


def test_a_request_is_answered_again_when_its_pane_is_gone(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.pane(agent=None)
    home.start()
    puppet.wait_for("idle")
    asked = {"request_ref": "x", "ref": home.panes()[puppet.pane]["ref"], "mode": "signal", "signal": "KILL"}
    first = home.ask("POST", "/v1/actions/kill", asked)
    assert first.status == 200, first
    wait_until(lambda: puppet.pane not in home.panes(), "the end of the pane")
    again = home.ask("POST", "/v1/actions/kill", asked)
    assert again.status == 200, again


@pytest.mark.parametrize("name", ["a{b", "a}b", "a,b", "a#b", "a#{b", "a'b", "a%b", "a:b", "a#[b", "#{pane_id}"])
def test_a_program_of_any_name_is_pressed_a_key(home: Home, name: str) -> None:
    program = home.folder / name
    program.write_bytes(Path(os.path.realpath("/bin/cat")).read_bytes())
    program.chmod(0o755)
    quoted = "'" + str(program).replace("'", "'\\''") + "'"
    pane = home.tmux("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "20", f"exec {quoted}")
    wait_until(lambda: home.tmux("display-message", "-pt", pane, "#{pane_current_command}") == name, name)
    server, pid = home.tmux("display-message", "-pt", pane, "#{pid}-#{start_time}\t#{pane_pid}").split("\t")
    about = {"server": server, "pane_id": pane, "pid": int(pid), "agent": None, "group": None, "command": name}
    said = ProbeProcess(home).errand(
        "press", **about, lines=[], history=None, absent="", is_whole=False, telling=[], key="x"
    )
    assert said.get("done") == {"is_done": True}, said


def test_no_buffer_is_left_behind_by_a_slow_server(home: Home) -> None:
    pane = home.pane(agent=None, command="cat")
    told = "#{pid}-#{start_time}\t#{pane_pid}\t#{pane_current_command}\t#{pid}"
    server, pid, command, tmux_pid = home.tmux("display-message", "-pt", pane, told).split("\t")
    probe = ProbeProcess(home)
    about = {"server": server, "pane_id": pane, "pid": int(pid), "agent": None, "group": None, "command": command}
    os.kill(int(tmux_pid), signal.SIGSTOP)
    try:
        said = probe.errand(
            "paste", **about, lines=[], history=None, absent="", is_whole=False, telling=[], text="a secret", limit=0.5
        )
    finally:
        os.kill(int(tmux_pid), signal.SIGCONT)
    assert "declined" in said
    time.sleep(1)
    assert home.tmux("list-buffers") == "", (said, home.tmux("list-buffers"))


def test_no_buffer_is_left_behind_by_a_probe_that_is_killed(home: Home) -> None:
    pane = home.pane(agent=None, command="cat")
    told = "#{pid}-#{start_time}\t#{pane_pid}\t#{pane_current_command}"
    server, pid, command = home.tmux("display-message", "-pt", pane, told).split("\t")
    real = shutil.which("tmux")
    between = home.folder / "bin"
    between.mkdir()
    # The moment between the buffer and the paste.
    (between / "tmux").write_text(
        f'#!/bin/sh\ncase "$*" in *paste-buffer*) kill -9 $PPID; exit 1;; esac\nexec {real} "$@"\n'
    )
    (between / "tmux").chmod(0o755)
    probe = ProbeProcess(home, env={"PATH": f"{between}:{home.env['PATH']}"})
    about = {"server": server, "pane_id": pane, "pid": int(pid), "agent": None, "group": None, "command": command}
    probe.begin_errand("paste", **about, lines=[], history=None, absent="", is_whole=False, telling=[], text="a secret")
    probe.process.wait(20)
    assert home.tmux("list-buffers") == ""


def test_a_signal_that_was_delivered_has_not_failed(home: Home) -> None:
    """The tmux server ends with its last pane, in the middle of the look that follows."""
    home.start()
    results = []
    for number in range(12):
        puppet = Puppet(home, f"p{number}")
        puppet.wait_for("idle")
        asked = {"request_ref": f"r{number}", "ref": home.panes()[puppet.pane]["ref"], "mode": "signal"}
        answer = home.ask("POST", "/v1/actions/kill", asked | {"signal": "KILL"})
        results.append((answer.status, b"failed" in answer.body))
        home._has_tmux = False
        wait_until(lambda pane=puppet.pane: pane not in home.panes(), "its end")
    assert set(results) == {(200, False)}, results


def test_a_dialog_that_opens_in_a_pane_without_a_known_agent_takes_no_key(home: Home) -> None:
    """Over ssh, say: what a dialog looks like is known all the same."""
    made = Puppet(home, "one")
    home.tmux("set-option", "-p", "-t", made.pane, "@agtmux_agent", "none")
    told = "#{pid}-#{start_time}\t#{pane_pid}\t#{pane_current_command}"
    server, pid, command = home.tmux("display-message", "-pt", made.pane, told).split("\t")
    about = {"server": server, "pane_id": made.pane, "pid": int(pid), "agent": None, "group": None, "command": command}
    screen = home.tmux("capture-pane", "-pet", made.pane)
    hold = Registry.load().footing_of_nobody(Glance(screen)).hold
    made.tell("ask d1 touch label.txt")
    wait_until(lambda: "Do you want to proceed?" in home.tmux("capture-pane", "-pt", made.pane), "the dialog")
    ProbeProcess(home).errand(
        "press", **about, lines=hold.anchors, history=None, absent=hold.absent, is_whole=False, telling=[], key="Enter"
    )
    time.sleep(0.5)
    assert made.given() == []


def test_a_program_that_has_become_another_is_not_what_was_meant(home: Home) -> None:
    """A shell's child is nobody yet when it is looked at, and an agent a moment later, in the same process."""
    gate = home.folder / "gate"
    os.mkfifo(gate)
    pane = home.pane(agent=None, command=f"bash -c 'read x < {gate}; exec -a another cat'")
    home.start()
    ref = wait_until(lambda: home.panes().get(pane), "the pane")["ref"]
    gate.write_text("go\n")
    wait_until(lambda: home.tmux("display-message", "-p", "-t", pane, "#{pane_current_command}") == "another", "exec")
    asked = {"request_ref": "x", "ref": ref, "text": "hello", "enter": True, "shell": True}
    answer = home.ask("POST", "/v1/actions/send", asked)
    # Looked at since, it is known by its new name.
    was_seen = home.panes()[pane]["runtime_id"] and answer.status == 200
    assert was_seen or answer.error["code"] == "E_RUNTIME_STALE", answer
    assert was_seen or "hello" not in home.tmux("capture-pane", "-p", "-t", pane)
