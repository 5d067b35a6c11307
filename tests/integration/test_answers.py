"""`approve` and `deny` by key: one key, at the dialog that was shown and at no other."""

import json

import pytest

from support.home import Home, wait_until
from support.puppets import Puppet


@pytest.fixture
def puppet(home: Home) -> Puppet:
    made = Puppet(home, "one")
    home.start()
    made.wait_for("idle")
    return made


def test_yes_is_one_key_once_and_never_for_longer(home: Home, puppet: Puppet) -> None:
    puppet.ask("d1", "touch label.txt")
    done = home.run("approve", puppet.pane, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert (answer["result_code"], answer["about"]["way"], answer["about"]["key"]) == ("delivered", "key", "1")
    assert "touch label.txt" in answer["question"]
    assert puppet.given() == [("key", "1")]
    assert puppet.log()[-1]["dialog"] in (None, "d1")
    done = home.run("approve", puppet.pane)
    assert done.returncode == 4 and "E_PRECONDITION_FAILED" in done.stderr
    assert puppet.given() == [("key", "1")]


def test_no_is_one_key_and_the_reason_follows_as_a_message(home: Home, puppet: Puppet) -> None:
    puppet.ask("d1", "touch label.txt")
    done = home.run("deny", puppet.pane)
    assert done.returncode == 0 and done.stdout.startswith("denied: touch label.txt"), done.stderr
    assert puppet.given() == [("key", "\x1b")]
    puppet.ask("d2", "rm -r labels")
    done = home.run("deny", puppet.pane, "--reason", "!they are wanted", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["about"]["reason"] == "delivered"
    # What it begins with cannot make a command of it.
    assert puppet.submitted() == ["Denied: !they are wanted"]


def test_a_reason_that_did_not_get_there_is_told_of(home: Home, puppet: Puppet) -> None:
    """The denial is done, but who asked for it must not believe that the agent knows why."""
    puppet.ask("d1", "touch label.txt")
    # Its prompt makes a new line of the Enter.
    puppet.tell("muddle")
    done = home.run("deny", puppet.pane, "--reason", "print it on paper")
    assert done.returncode != 0 and "E_DELIVERY_UNCERTAIN" in done.stderr, done
    assert "it was denied, and the reason was not delivered" in done.stderr
    assert puppet.given()[0] == ("key", "\x1b") and puppet.submitted() == []
    puppet.tell("reset")
    puppet.tell("draft half a thought")
    puppet.ask("d2", "rm -r labels")
    done = home.run("deny", puppet.pane, "--reason", "they are wanted", "--json")
    assert done.returncode != 0
    error = json.loads(done.stdout or done.stderr)["error"]
    assert (error["code"], error["details"]["denied"]) == ("E_DELIVERY_UNCERTAIN", True), error
    assert error["details"]["reason_error"] == "E_DRAFT_PRESENT"


def test_an_answer_is_for_the_dialog_that_was_shown(home: Home, puppet: Puppet) -> None:
    first = puppet.ask("d1", "touch label.txt")
    fingerprint = first["attention"]["fingerprint"]
    second = puppet.ask("d2", "rm -r labels")
    assert second["attention"]["fingerprint"] != fingerprint
    done = home.run("approve", puppet.pane, "--if-dialog", fingerprint)
    assert done.returncode == 4 and "something else" in done.stderr
    assert puppet.given() == []
    done = home.run("approve", puppet.pane, "--if-dialog", second["attention"]["fingerprint"])
    assert done.returncode == 0, done.stderr
    assert puppet.given() == [("key", "1")]


def test_a_dialog_that_came_after_the_last_look_is_not_answered(home: Home, puppet: Puppet) -> None:
    """The daemon believes in the first dialog, and the second is on the screen."""
    item = puppet.ask("d1", "touch label.txt")
    asked = {"ref": item["ref"], "if_dialog": item["attention"]["fingerprint"], "force_stale": True}
    answers = []
    for number in range(20):
        puppet.tell(f"ask e{number} rm -r labels{number}")
        answers.append(home.ask("POST", "/v1/actions/approve", asked | {"request_ref": f"r{number}"}))
        puppet.ask(f"d{number}", "touch label.txt")
    assert {answer.status for answer in answers} <= {412}, answers
    assert puppet.given() == []


def test_what_the_user_answered_is_not_answered_again(home: Home, puppet: Puppet) -> None:
    for number in range(10):
        item = puppet.ask(f"d{number}", f"touch label{number}.txt")
        puppet.tell("answer")
        answer = home.ask("POST", "/v1/actions/approve", {"request_ref": f"r{number}", "ref": item["ref"]})
        assert answer.status in (412, 409), answer
    assert puppet.given() == []


def test_a_dialog_that_does_not_go_is_uncertain_and_is_not_answered_twice(home: Home) -> None:
    screen = "\\n".join(
        [
            "─" * 80,
            " Bash command",
            "",
            "   touch label.txt",
            "",
            " Do you want to proceed?",
            " ❯ 1. Yes",
            "   2. No",
        ]
    )
    pane = home.tmux(
        *("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "24"),
        f"stty -echo -icanon; printf '{screen}\\n'; exec cat > '{home.folder}/given'",
    )
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
    home.start()
    wait_until(lambda: home.state_of(pane) == "waiting_approval", "the dialog")
    done = home.run("approve", pane)
    assert done.returncode == 1 and "E_DELIVERY_UNCERTAIN" in done.stderr, done
    assert (home.folder / "given").read_text() == "1"
    log = json.loads(home.run("log", "actions", "--json").stdout)["items"]
    assert [(each["result_code"], each["error_code"]) for each in log] == [("uncertain", "E_DELIVERY_UNCERTAIN")]


@pytest.mark.parametrize(
    "options",
    [
        ["1. Yes, and don't ask again", "2. No"],
        ["1. Yes, I trust this folder", "2. No, exit"],
        ["1. Always allow", "2. Allow for this session", "3. No"],
    ],
)
def test_what_would_last_is_not_answered(home: Home, options: list[str]) -> None:
    lines = ["─" * 80, " Bash command", "", "   touch label.txt", "", " Do you want to proceed?"]
    lines += [f" ❯ {options[0]}", *(f"   {option}" for option in options[1:])]
    screen = home.folder / "screen"
    screen.write_text("\n".join(lines) + "\n")
    pane = home.tmux(
        *("new-session", "-dPF", "#{pane_id}", "-x", "80", "-y", "24"),
        f"stty -echo -icanon; cat {screen}; exec cat > '{home.folder}/given'",
    )
    home.tmux("set-option", "-p", "-t", pane, "@agtmux_agent", "claude")
    home.start()
    wait_until(lambda: home.state_of(pane) == "waiting_approval", "the dialog")
    done = home.run("approve", pane)
    assert done.returncode == 1 and "E_UNSUPPORTED" in done.stderr, done
    assert (home.folder / "given").read_text() == ""
