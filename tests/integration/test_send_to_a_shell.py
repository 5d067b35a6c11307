"""`send` types into a pane without an agent only if it is told that a shell is meant."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import threading
from collections import Counter

import pytest

from support.chance import any_seed
from support.home import Home, wait_until
from support.puppets import PROGRAM, Puppet

RUN = "echo label.txt"
MARK = "that-is-all"
TRIALS = int(os.environ.get("AGTMUX_TEST_TRIALS", "15"))
# Runs an agent in the foreground, as a shell does, and then writes what it reads to a file. What the agent has not read
# stays for it: no setting of the terminal is changed in a way that throws input away.
SHELL = """
import os, signal, sys, termios, tty
record, *agent = sys.argv[1:]
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
tty.setraw(0, termios.TCSANOW)
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    os.execv("/proc/self/exe", ["claude", *agent])
os.waitpid(child, 0)
os.tcsetpgrp(0, os.getpgrp())
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\\x1b[2J\\x1b[Hdev@host$ ")
with open(record, "ab", buffering=0) as file:
    while data := os.read(0, 65536):
        file.write(data)
"""


@pytest.fixture
def shell(home: Home) -> str:
    """A shell's pane, known to the daemon."""
    pane = home.pane(agent=None, command="env PS1='$ ' bash --norc --noprofile")
    home.start()
    wait_until(lambda: home.panes().get(pane), "the shell")
    wait_until(lambda: "$" in shown(home, pane), "its prompt")
    return pane


def shown(home: Home, pane: str) -> str:
    return home.tmux("capture-pane", "-p", "-t", pane)


@pytest.mark.parametrize("words", [["--text", RUN], ["--text", RUN, "--enter"], ["--enter"], ["--key", "Up"]])
def test_a_shell_is_given_nothing_unless_it_is_meant(home: Home, shell: str, words: list[str]) -> None:
    before = shown(home, shell)
    for more in ([], ["--append", "--force-stale"]):
        done = home.run("send", shell, *words, *more)
        assert done.returncode == 4 and "E_PRECONDITION_FAILED" in done.stderr and "--shell" in done.stderr, done
    assert shown(home, shell) == before
    log = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert {(each["result_code"], each["error_code"]) for each in log} == {("refused", "E_PRECONDITION_FAILED")}


def test_the_api_refuses_it_as_well(home: Home, shell: str) -> None:
    asked = {"request_ref": "x", "ref": home.panes()[shell]["ref"], "text": RUN, "enter": True}
    answer = home.ask("POST", "/v1/actions/send", asked)
    assert (answer.status, answer.error["code"]) == (412, "E_PRECONDITION_FAILED"), answer
    assert answer.error["details"]["found"] == "none"
    assert RUN not in shown(home, shell)


def test_a_shell_that_is_meant_is_typed_into_and_no_agent_is_said_to_have_taken_it(home: Home, shell: str) -> None:
    done = home.run("send", shell, "--text", "echo from-$((40 + 2))", "--shell")
    assert done.returncode == 0 and done.stdout.startswith("typed, and not submitted"), done
    assert f"agtmux send {shell} --shell --enter" in done.stdout
    done = home.run("send", shell, "--enter", "--shell", "--json")
    assert json.loads(done.stdout)["result_code"] == "typed_in_shell", done
    wait_until(lambda: "from-42" in shown(home, shell), "what it said")
    # Also while the shell runs it, and has lent its terminal.
    done = home.run("send", shell, "--text", "exec sleep 3600", "--enter", "--shell")
    assert done.returncode == 0 and "delivered" not in done.stdout and "cannot tell" in done.stdout, done


def test_what_is_meant_for_a_shell_goes_to_no_agent(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    for what in (["--text", RUN, "--enter"], ["--key", "Enter"]):
        done = home.run("send", puppet.pane, *what, "--shell")
        assert done.returncode == 4 and "claude is in that pane" in done.stderr, done
    assert puppet.given() == []


def test_a_text_for_an_agent_that_ends_at_any_moment_is_never_run(home: Home) -> None:
    """The shell below each agent writes down every byte, also what the agent left unread.

    What tmux has handed over and the agent has not read when it ends comes to the shell: a paste without Enter, or an
    Enter without the text. Either is said to be uncertain. Nothing else comes there.
    """
    chance = random.Random(any_seed())
    program = home.folder / "shell.py"
    program.write_text(SHELL)
    home.pane(agent=None)
    home.start()
    results: Counter[str] = Counter()
    for number in range(TRIALS):
        name, record = f"p{number}", home.folder / f"p{number}.shell"
        below = f'"{sys.executable}" {program} {record} "{PROGRAM}" {name} {home.folder}'
        pane = home.pane(agent=None, command=f"bash -c 'exec -a shell {below}'")
        wait_until(lambda pane=pane: home.state_of(pane) == "idle", f"the agent {name}")
        asked = {"ref": home.panes()[pane]["ref"], "text": f"{RUN} {number}", "enter": True, "request_ref": name}
        # It takes about that long; one in five has ended before, and the daemon has not seen it yet.
        moment, how = max(0.0, chance.uniform(-0.08, 0.3)), chance.choice(("exit", "kill"))
        ending = threading.Timer(moment, end, (home, name, how))
        if moment == 0:
            end(home, name, how)
            wait_until(record.exists, f"the shell below {name}")
        else:
            ending.start()
        answer = home.ask("POST", "/v1/actions/send", asked)
        if moment != 0:
            ending.join()
        wait_until(record.exists, f"the shell below {name}")
        # Whatever tmux was given before comes before this.
        home.tmux("send-keys", "-t", pane, "-l", MARK)
        wait_until(lambda record=record: MARK in record.read_text(), "the mark")
        result = answer.json["result_code"] if answer.status == 200 else answer.error["details"]["result_code"]
        reached = record.read_bytes().decode().removesuffix(MARK)
        came = "a paste" if len(reached) > 1 else "Enter" if reached else "nothing"
        results[f"{result}, {came} came to the shell"] += 1
        allowed = {"", f"\x1b[200~{RUN} {number}\x1b[201~", "\r"} if result == "uncertain" else {""}
        assert reached in ({""} if moment == 0 else allowed), (number, moment, how, answer)
    print(dict(results))


def end(home: Home, name: str, how: str) -> None:
    if how == "kill":
        os.kill(int(json.loads((home.folder / f"{name}.log").read_text().splitlines()[0])["data"]), signal.SIGKILL)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings:
        strings.sendto(b"exit", str(home.folder / f"{name}.sock"))
