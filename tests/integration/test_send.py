"""`send` and `kill` at an agent that writes down every byte it is given."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.home import COMMANDS, Home, is_alive, wait_until
from support.hook import patient_in
from support.puppets import Puppet
from support.terminal import Terminal, terminals


@pytest.fixture
def puppet(home: Home) -> Puppet:
    made = Puppet(home, "one")
    home.start()
    made.wait_for("idle")
    return made


def test_a_text_is_typed_and_read_back_and_only_enter_submits_it(home: Home, puppet: Puppet) -> None:
    done = home.run("send", puppet.pane, "--text", "run the tests")
    assert (
        done.returncode == 0
        and done.stdout == f"typed, and not submitted; agtmux send {puppet.pane} --enter does that\n"
    )
    assert puppet.given() == [("paste", "run the tests")]
    # It stands there, and is nobody's to write over.
    done = home.run("send", puppet.pane, "--text", "another", "--enter")
    assert done.returncode == 4 and "E_DRAFT_PRESENT" in done.stderr
    done = home.run("send", puppet.pane, "--text", " again", "--enter", "--append")
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == ["run the tests again"]
    assert home.tmux("list-buffers") == ""


@pytest.mark.parametrize(
    "text",
    [
        "-t %0",
        "--",
        "1",
        "; kill-server",
        "a\nb\nc",
        "日本語とemoji 👩‍💻 é",
        "#{pane_id} $(date) `date` ~ $HOME",
        "\n".join(f"line {number}" for number in range(200)),
        "word " * 40,
    ],
)
def test_every_text_arrives_as_it_is(home: Home, puppet: Puppet, text: str) -> None:
    done = home.run("send", puppet.pane, "--stdin", "--enter", stdin=None, input=text + "\n")
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == [text]


def test_control_characters_are_left_out(home: Home, puppet: Puppet) -> None:
    asked = {"request_ref": "x", "ref": home.panes()[puppet.pane]["ref"], "enter": True}
    text = "be\x1b[201~fore\r\nafter\x03\x04\x7f\x00\x9b1m\ttab"
    answer = home.ask("POST", "/v1/actions/send", asked | {"text": text})
    assert answer.status == 200, answer
    assert puppet.submitted() == ["be[201~fore\nafter1m\ttab"]


def test_a_megabyte_arrives_and_more_is_refused(home: Home, puppet: Puppet) -> None:
    text = "\n".join("x" * 99 for _ in range(10_000))
    done = home.run("send", puppet.pane, "--stdin", "--enter", stdin=None, input=text)
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == [text]
    # What it does by now may be seen in the middle of the next request, which is then refused for that.
    puppet.wait_for("running")
    done = home.run("send", puppet.pane, "--stdin", stdin=None, input=text + "yy")
    assert done.returncode == 1 and "E_TOO_LARGE" in done.stderr
    assert home.run("send", puppet.pane, "--text", "\x07 \n").returncode == 2


def test_no_key_of_any_kind_reaches_a_dialog(home: Home, puppet: Puppet) -> None:
    item = puppet.ask("d1", "touch label.txt")
    for words in (
        ["send", "--text", "1", "--enter"],
        ["send", "--text", "1", "--enter", "--append", "--force-stale"],
        ["send", "--key", "Enter", "--force-stale"],
        ["send", "--key", "Escape"],
        ["kill", "--yes", "--force-stale"],
    ):
        done = home.run(words[0], puppet.pane, *words[1:])
        assert done.returncode == 4 and "E_DIALOG_OPEN" in done.stderr, (words, done)
    assert "touch label.txt" in home.run("send", puppet.pane, "--text", "x").stderr
    assert puppet.given() == []
    assert puppet.wait_for("waiting_approval")["state_version"] == item["state_version"]
    log = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert {(each["result_code"], each["error_code"]) for each in log} == {("refused", "E_DIALOG_OPEN")}


def test_no_key_goes_before_a_dialog_that_was_reported_and_is_not_drawn_yet(home: Home, puppet: Puppet) -> None:
    report = json.dumps({"tool_name": "Bash", "tool_input": {"command": "touch label.txt"}}).encode()
    variables = home.tmux_variables(puppet.pane)

    def refusal(number: int, what: dict[str, object]) -> str | None:
        """None if the screen, which goes on showing its prompt, was believed before that was asked."""
        words = [patient_in(home.folder), "claude", "PermissionRequest"]
        subprocess.run(words, env=home.env | variables, input=report, check=True, timeout=60)
        item = puppet.wait_for("waiting_approval")
        asked = {"request_ref": f"{what} {number}", "ref": item["ref"], "if_state": "waiting_approval", **what}
        answer = home.ask("POST", "/v1/actions/send", asked)
        assert answer.status != 200, (what, answer)
        return None if answer.error["code"] == "E_PRECONDITION_FAILED" else str(answer.error["code"])

    for what in ({"text": "1"}, {"text": "1", "enter": True}, {"key": "1"}, {"key": "Enter"}):
        refused = (code for number in range(20) if (code := refusal(number, what)) is not None)
        assert next(refused) == "E_DIALOG_OPEN", what
    assert puppet.given() == []


def test_while_it_works_a_text_is_queued_and_a_key_interrupts(home: Home, puppet: Puppet) -> None:
    puppet.tell("busy")
    puppet.wait_for("running")
    done = home.run("send", puppet.pane, "--text", "and then this", "--enter")
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    assert puppet.submitted() == ["and then this"]
    done = home.run("send", puppet.pane, "--key", "Escape")
    assert done.returncode == 0, done.stderr
    assert puppet.given()[-1] == ("key", "\x1b")
    puppet.wait_for("completed")
    done = home.run("kill", puppet.pane, "--yes")
    assert (done.returncode, done.stdout) == (0, "interrupted: Ctrl-C was pressed\n"), done.stderr
    assert puppet.given()[-1] == ("key", "\x03")


def test_a_prompt_in_a_mode_that_runs_commands_takes_no_text(home: Home) -> None:
    rule = "─" * 60
    pane = home.tmux(
        *("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "24"),
        f"printf '\\n{rule}\\n! \\n{rule}\\n  ! for shell mode\\n'; exec sleep 3600",
    )
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
    home.start()
    wait_until(lambda: home.state_of(pane) == "idle", "the prompt")
    done = home.run("send", pane, "--text", "rm -rf ~", "--enter")
    assert done.returncode == 4 and "E_DRAFT_PRESENT" in done.stderr


def test_what_tmux_would_keep_or_give_to_others_is_refused(home: Home, puppet: Puppet) -> None:
    home.tmux("copy-mode", "-t", puppet.pane)
    done = home.run("send", puppet.pane, "--text", "x")
    assert done.returncode == 4 and "copy mode" in done.stderr
    home.tmux("send-keys", "-t", puppet.pane, "-X", "cancel")
    home.tmux("split-window", "-d", "-t", puppet.pane, "cat")
    home.tmux("set-option", "-w", "-t", puppet.pane, "synchronize-panes", "on")
    done = home.run("send", puppet.pane, "--text", "x")
    assert done.returncode == 4 and "at once" in done.stderr
    home.tmux("set-option", "-w", "-t", puppet.pane, "synchronize-panes", "off")
    home.tmux("select-pane", "-d", "-t", puppet.pane)
    done = home.run("send", puppet.pane, "--text", "x")
    assert done.returncode == 4 and "switched off" in done.stderr
    assert puppet.given() == []
    home.tmux("select-pane", "-e", "-t", puppet.pane)
    assert home.run("send", puppet.pane, "--text", "x").returncode == 0


def test_a_screen_without_a_prompt_takes_no_text(home: Home) -> None:
    pane = home.pane(command="sh -c 'echo starting; exec sleep 3600'")
    home.start()
    wait_until(lambda: home.panes().get(pane), "the pane")
    for what in (["--text", "x"], ["--key", "Enter"]):
        done = home.run("send", pane, *what)
        assert done.returncode == 4 and "E_PRECONDITION_FAILED" in done.stderr


def test_an_agent_that_ended_leaves_its_shell_alone(home: Home) -> None:
    puppet = Puppet(home, "one", in_shell=True)
    home.start()
    item = puppet.wait_for("idle")
    puppet.tell("exit")
    wait_until(lambda: "puppet.py" not in home.tmux("capture-pane", "-p", "-t", puppet.pane), "its end")
    asked = {"request_ref": "late", "ref": f"runtime:{item['runtime_id']}", "text": "rm -rf x", "enter": True}
    answer = home.ask("POST", "/v1/actions/send", asked)
    assert answer.status in (404, 409, 412), answer
    assert "rm" not in home.tmux("capture-pane", "-p", "-t", puppet.pane)


@pytest.mark.parametrize("key", ["foo", "C-", "", "x y", "Enter Enter", "-l", "𝄞"])
def test_what_is_no_key_is_refused(home: Home, puppet: Puppet, key: str) -> None:
    done = home.run("send", puppet.pane, f"--key={key}")
    assert done.returncode == 2 and "E_USAGE" in done.stderr
    assert puppet.given() == []


@pytest.mark.parametrize("key", [";", "#", "'", '"', "\\", "$", "{", "-", "~", "x"])
def test_every_character_is_a_key(home: Home, puppet: Puppet, key: str) -> None:
    done = home.run("send", puppet.pane, f"--key={key}")
    assert done.returncode == 0, done.stderr
    wait_until(puppet.given, "the key")
    assert puppet.given() == [("key", key)]


def test_the_same_request_is_done_once_also_across_a_restart(home: Home) -> None:
    puppet = Puppet(home, "one")
    daemon = home.start()
    puppet.wait_for("idle")
    asked = {"request_ref": "once", "ref": home.panes()[puppet.pane]["ref"], "text": "hello", "enter": True}
    first = home.ask("POST", "/v1/actions/send", asked)
    assert (first.status, first.json["result_code"]) == (200, "delivered"), first
    home.end(daemon)
    home.start()
    second = home.ask("POST", "/v1/actions/send", asked)
    assert second.json["is_replay"] and second.json["action_id"] == first.json["action_id"]
    assert second.json["result_code"] == "delivered"
    assert puppet.submitted() == ["hello"]
    conflict = home.ask("POST", "/v1/actions/send", asked | {"text": "hello!"})
    assert (conflict.status, conflict.error["code"]) == (409, "E_IDEMPOTENCY_CONFLICT")


def test_two_writers_come_one_after_the_other(home: Home, puppet: Puppet) -> None:
    writers = [
        home.spawn(COMMANDS / "agtmux", "send", puppet.pane, "--text", f"text {n}" * 8, "--enter") for n in range(4)
    ]
    ends = [writer.wait(60) for writer in writers]
    sent = puppet.submitted()
    # Whoever came later may find that it works by now, which is another state than the one it was asked in.
    assert ends.count(0) == len(sent) >= 1 and set(ends) <= {0, 4}
    assert set(sent) <= {f"text {n}" * 8 for n in range(4)}


def test_a_signal_ends_it_and_only_it(home: Home, puppet: Puppet) -> None:
    pid = int(home.tmux("display-message", "-p", "-t", puppet.pane, "#{pane_pid}"))
    home.pane()
    done = home.run("kill", puppet.pane, "--signal", "TERM", "--yes")
    assert done.returncode == 2 and "--mode signal" in done.stderr
    done = home.run("kill", puppet.pane, "--mode", "signal", "--signal", "TERM")
    assert done.returncode == 2 and "--yes" in done.stderr and is_alive(pid)
    done = home.run("kill", puppet.pane, "--mode", "signal", "--signal", "TERM", "--yes")
    assert (done.returncode, done.stdout) == (0, "ended by SIGTERM\n"), done.stderr
    wait_until(lambda: _has_ended(pid), "its end")


# An agent that takes no notice of SIGTERM and has lent its terminal to an editor.
LENT = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGTTOU):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    os.execvp("sleep", ["sleep", "3600"])
os.wait()
"""


def test_one_that_has_lent_its_terminal_and_lives_is_not_said_to_have_ended(home: Home) -> None:
    program = home.folder / "lent.py"
    program.write_text(LENT)
    pane = home.pane(agent=None, command=f"bash -c 'exec -a claude \"{sys.executable}\" {program}'")
    pid = int(home.tmux("display-message", "-p", "-t", pane, "#{pane_pid}"))
    home.start()
    lent = "#{pane_current_command}"
    wait_until(lambda: home.tmux("display-message", "-p", "-t", pane, lent) == "sleep", "the editor")
    wait_until(lambda: home.panes().get(pane, {}).get("agent_type") == "claude", "the agent")
    done = home.run("kill", pane, "--mode", "signal", "--signal", "TERM", "--yes")
    assert (done.returncode, done.stdout.partition(";")[0]) == (1, "SIGTERM was sent, and it still runs"), done.stderr
    assert not _has_ended(pid)
    done = home.run("kill", pane, "--mode", "signal", "--signal", "KILL", "--yes")
    assert (done.returncode, done.stdout) == (0, "ended by SIGKILL\n"), done.stderr


def _has_ended(pid: int) -> bool:
    """tmux may take its time to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def test_enter_alone_submits_what_is_typed(home: Home, puppet: Puppet) -> None:
    assert home.run("send", puppet.pane, "--text", "run the tests").returncode == 0
    done = home.run("send", puppet.pane, "--enter")
    assert (done.returncode, done.stdout) == (0, "delivered\n"), done.stderr
    wait_until(puppet.submitted, "the text")
    assert puppet.submitted() == ["run the tests"]
    done = home.run("send", puppet.pane)
    assert done.returncode == 2 and "--enter alone" in done.stderr
    done = home.run("send", puppet.pane, "--text", "-x")
    assert done.returncode == 2 and "--text=-" in done.stderr


def test_a_person_is_asked_before_anything_is_killed(home: Home, puppet: Puppet) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMANDS / "agtmux", "kill", puppet.pane], env=home.env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 1_000)
    assert b"Press Ctrl-C in host/work/@0/%0 (claude, idle)?" in said
    os.write(ours, b"n\n")
    assert child.wait(30) == 1
    os.close(ours)
    assert puppet.given() == []


def test_nobody_is_asked_to_kill_what_would_be_refused(home: Home, puppet: Puppet) -> None:
    puppet.ask("d1", "touch label.txt")
    with terminals(home) as opened:
        terminal = Terminal(home, COMMANDS / "agtmux", "kill", puppet.pane)
        opened.append(terminal)
        assert terminal.ended() == 4
        assert "E_DIALOG_OPEN" in terminal.text and "[y/N]" not in terminal.text
    assert puppet.given() == []


def test_what_was_checked_is_checked_again_after_the_question(home: Home, puppet: Puppet) -> None:
    with terminals(home) as opened:
        terminal = Terminal(home, COMMANDS / "agtmux", "kill", puppet.pane)
        opened.append(terminal)
        wait_until(lambda: "[y/N]" in terminal.text, "the question")
        puppet.ask("d1", "touch label.txt")
        terminal.type("y\n")
        assert terminal.ended() == 4 and "E_DIALOG_OPEN" in terminal.text
    assert puppet.given() == []


def test_a_check_alone_does_nothing(home: Home, puppet: Puppet) -> None:
    pid = int(home.tmux("display-message", "-p", "-t", puppet.pane, "#{pane_pid}"))
    for number, how in enumerate(({"mode": "key"}, {"mode": "signal", "signal": "KILL"})):
        asked = {"request_ref": str(number), "ref": home.panes()[puppet.pane]["ref"], "only_check": True, **how}
        answer = home.ask("POST", "/v1/actions/kill", asked)
        assert (answer.status, answer.json["result_code"]) == (200, "checked"), answer
    assert puppet.given() == [] and is_alive(pid)
