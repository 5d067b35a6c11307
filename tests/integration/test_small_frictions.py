"""What a person reads on the first day: who waits, since when, how sure that is, and what was mistyped."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from support.home import COMMANDS, Home, event, wait_until
from support.puppets import Puppet
from support.terminal import Terminal, terminals

AGTMUX = COMMANDS / "agtmux"


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_an_answer_to_nobody_says_who_waits_and_answers_nobody(home: Home, action: str) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    done = home.run(action)
    assert done.returncode == 2 and "no agent waits for approval" in done.stderr
    puppet.ask("d1", "touch label.txt")
    done = home.run(action)
    assert done.returncode == 2 and f"  agtmux {action} claude-0   # touch label.txt" in done.stderr, done
    assert json.loads(home.run(action, "--json").stdout)["error"]["details"]["refs"] == [
        home.panes()[puppet.pane]["ref"]
    ]
    # Also with just one that waits, nothing is pressed.
    assert puppet.given() == [] and home.state_of(puppet.pane) == "waiting_approval"


def test_a_socket_that_no_server_answers_on_is_said(home: Home) -> None:
    home.pane()
    home.start()
    done = home.run("target", "add", "work", "--tmux-socket", "typo")
    assert done.returncode == 0 and "no tmux server answers on -L typo" in done.stderr, done
    assert "agtmux target remove work --yes" in done.stderr
    assert "no tmux server answers on -L typo" in home.run("target", "list").stdout
    # It is seen when it comes.
    words = ["tmux", "-L", "typo", "-f", "/dev/null"]
    subprocess.run([*words, "new-session", "-d", "sleep 60"], env=home.env, check=True, timeout=20)
    try:
        wait_until(lambda: "no tmux server" not in home.run("target", "list").stdout, "the server")
        done = home.run("target", "connect", "work")
        assert done.returncode == 0 and "with 1 pane" in done.stdout
    finally:
        subprocess.run([*words, "kill-server"], env=home.env, check=False, timeout=20)


def test_times_are_local_for_people_and_utc_for_programs(home: Home) -> None:
    pane = home.pane()
    home.env["TZ"] = "Asia/Tokyo"
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    home.ask("POST", "/v1/events", event(pane, "state.running"))
    home.run("kill", pane, "--yes")
    item = json.loads(home.run("explain", pane, "--json").stdout)["item"]
    utc = time.mktime(time.strptime(item["updated_at"][:19], "%Y-%m-%dT%H:%M:%S"))
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(utc + 9 * 3600))
    text = home.run("explain", pane).stdout
    assert item["updated_at"].endswith("Z") and local in text and item["updated_at"][:19] not in text, text
    action = json.loads(home.run("log", "actions", "--json").stdout)["items"][0]["action_id"]
    assert not re.search(r"\dT\d\d:.*Z", home.run("log", "actions", "--action", action).stdout)


def test_evidence_is_explained_in_words_that_people_know(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    text = home.run("explain", puppet.pane).stdout
    assert "its screen showed idle" in text and "this decides" in text and "agtmux is " in text
    for word in ("poller", "wrapper", "reconciler", "overtaken", "confidence"):
        assert word not in text, text


def test_actions_have_their_time_and_result_also_in_a_narrow_window(home: Home) -> None:
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    home.run("kill", puppet.pane, "--yes")
    with terminals(home) as opened:
        terminal = Terminal(home, AGTMUX, "log", "actions", size="60x20")
        opened.append(terminal)
        assert terminal.ended() == 0
        assert re.search(r"\d\d:\d\d(:\d\d)?  kill +delivered +claude", terminal.text), terminal.text


def test_an_age_goes_on_when_a_turn_that_is_over_becomes_idle(home: Home) -> None:
    home.configure('[states]\ncompleted_to_idle = "2s"\n')
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")
    home.ask("POST", "/v1/events", event(pane, "state.completed"))
    wait_until(lambda: home.state_of(pane) == "completed", "the end of the turn")
    ended = home.panes()[pane]["state_since"]
    wait_until(lambda: home.state_of(pane) == "idle", "the rest")
    after = home.panes()[pane]
    assert (after["reason_code"], after["state_since"]) == ("completed_demoted", ended)
    assert after["updated_at"] > ended


def test_a_mistake_in_a_team_file_is_said_with_its_role(home: Home) -> None:
    home.start()
    file = Path(home.folder, "review.toml")
    file.write_text('[roles.lead]\nagent = "claude"\n\n[roles.writer]\nagent = "claude"\nbrnch = "x"\n')
    done = home.run("team", "up", str(file))
    assert done.returncode == 2 and "[roles.writer]" in done.stderr and "brnch" in done.stderr, done
    file.write_text('[roles.lead]\nprompt = "x"\n')
    assert "[roles.lead]" in home.run("team", "up", str(file)).stderr
