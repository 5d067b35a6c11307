"""A team from its file: brought up, at work with tasks that take too long, and stopped."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from support.home import COMMANDS, Home, wait_until
from support.parrots import Parrots, git, repository

TEAM = """
name = "review"

[roles.lead]
agent = "parrot"
prompt = "Divide the work."
user = true

[roles.writer]
agent = "parrot"
branch = "feature/labels"
peers = ["lead"]

[timeouts]
send = "1s"
receive = "2s"
task = "4s"
idle = "1h"
"""


class Team:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.parrots = Parrots(home)
        self.project = repository(home.folder / "parcels")
        self.file = self.project / "review.toml"
        self.file.write_text(TEAM)
        home.pane(agent=None)
        self.daemon = home.start()
        wait_until(home.panes, "the pane")

    def up(self) -> dict[str, dict[str, Any]]:
        done = self.home.run("team", "up", str(self.file))
        assert done.returncode == 0, done
        return self.roles()

    def roles(self) -> dict[str, dict[str, Any]]:
        team = json.loads(self.home.run("team", "status", "review", "--json").stdout)["items"][0]
        return {role["role"]: role for role in team["roles"]}

    def submitted(self, role: str) -> list[str]:
        return self.parrots.submitted(self.pane(role))

    def pane(self, role: str) -> str:
        return str(self.roles()[role]["ref"].rpartition("/")[2])

    def tell(self, role: str, order: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings:
            strings.sendto(order.encode(), str(self.parrots.folder / f"{self.pane(role).removeprefix('%')}.sock"))

    def run(self, role: str, words: str) -> str:
        """A command that the agent of that role runs itself."""
        out = self.parrots.folder / f"{self.pane(role).removeprefix('%')}.1.out"
        out.unlink(missing_ok=True)
        self.tell(role, f'run 1 "{COMMANDS}/agtmux" {words}; echo; echo over $?')
        wait_until(lambda: out.exists() and "\nover " in out.read_text(), words)
        return out.read_text()


@pytest.fixture
def team(home: Home) -> Team:
    return Team(home)


def test_a_team_comes_up_knows_who_it_is_and_goes(team: Team) -> None:
    """orchestrator: starting."""
    roles = team.up()
    assert {name: role["peers"] for name, role in roles.items()} == {"lead": ["writer", "user"], "writer": ["lead"]}
    first = team.submitted("lead")[0]
    assert first.startswith("You are lead, in the team review.") and first.endswith("Divide the work.")
    tree = team.home.folder / "parcels.worktrees" / "feature-labels"
    assert git(tree, "branch", "--show-current") == "feature/labels"
    # Again, those who are there stay; one that has gone comes back.
    assert "lead is there already" in team.home.run("team", "up", str(team.file)).stdout
    team.tell("writer", "exit")
    wait_until(lambda: team.roles()["writer"]["ref"] is None, "the end of the writer")
    again = team.up()
    assert again["lead"]["runtime_id"] == roles["lead"]["runtime_id"]
    assert again["writer"]["runtime_id"] not in (None, roles["writer"]["runtime_id"])
    # They are called by their roles wherever they are shown, and wherever one is meant.
    assert "lead (parrot)" in team.home.run("list", "panes").stdout
    assert "You are lead" in team.home.run("view-output", "lead").stdout
    table = team.home.run("team", "status").stdout
    assert "review in" in table and "writer, user" in table
    done = team.home.run("team", "down", str(team.file), "--yes")
    assert done.returncode == 0 and "review is down" in done.stdout, done
    assert team.home.run("team", "status").stdout == "no team is up\n"
    assert tree.is_dir()
    wait_until(lambda: not [item for item in team.home.panes().values() if item["agent_type"] == "parrot"], "their end")


def test_members_write_to_their_peers_and_to_nobody_else(team: Team) -> None:
    """orchestrator: permissions, word to the user."""
    team.up()
    assert "delivered" in team.run("writer", "message send lead 'the labels are done'")
    assert team.submitted("lead")[-1] == "[agtmux msg from writer]: the labels are done"
    assert "E_FORBIDDEN" in team.run("writer", "message send user 'look at me'")
    assert "queued" in team.run("lead", "message send user 'all done'")
    assert "all done" in team.home.run("message", "read").stdout
    # Also after a restart.
    team.home.end(team.daemon)
    team.daemon = team.home.start()
    wait_until(lambda: team.roles()["writer"]["ref"], "the writer")
    assert "E_FORBIDDEN" in team.run("writer", "message send user 'look at me'")


def test_who_gives_a_task_hears_what_becomes_of_it(team: Team) -> None:
    """orchestrator: task flow, receive time-out, task time-out. Each is told once."""
    team.up()
    said = team.run("lead", "message send writer 'print the labels' --type task_request --json")
    task = json.loads(said.partition("\nover")[0])["items"][0]["message_id"]
    wait_until(lambda: any("Nothing was heard from writer" in text for text in team.submitted("lead")), "receive")
    assert "delivered" in team.run("writer", f"message reply {task} 'half of them' --type progress")
    wait_until(lambda: any("is not done after" in text for text in team.submitted("lead")), "task")
    assert "delivered" in team.run("writer", f"message reply {task} 'all of them' --type task_complete")
    shown = json.loads(team.home.run("team", "status", "review", "--json").stdout)["items"][0]["tasks"]
    assert [(each["message_id"], each["is_over"]) for each in shown] == [(task, True)]
    texts = team.submitted("lead")[1:]
    senders = [text.partition("]")[0].removeprefix("[agtmux msg from ") for text in texts]
    # The progress and that it takes too long may cross.
    assert (senders[0], sorted(senders[1:3]), senders[3:]) == ("agtmux", ["agtmux", "writer"], ["writer"]), texts
    # The next daemon does not say it again.
    team.home.end(team.daemon)
    team.home.start()
    wait_until(lambda: team.roles()["lead"]["ref"], "the lead")
    second = json.loads(team.run("lead", "message send writer 'and more' --json").partition("\nover")[0])
    wait_until(lambda: "and more" in team.submitted("writer")[-1], str(second))
    assert team.submitted("lead")[1:] == texts


def test_the_next_daemon_does_not_say_again_what_takes_too_long(team: Team) -> None:
    team.up()
    team.run("lead", "message send writer 'print the labels' --type task_request")
    wait_until(lambda: any("is not done after" in text for text in team.submitted("lead")), "task")
    team.home.end(team.daemon)
    team.daemon = team.home.start()
    wait_until(lambda: team.roles()["lead"]["ref"], "the lead")
    # Told later than anything of the first.
    assert "delivered" in team.run("lead", "message send writer 'more labels' --type task_request")
    wait_until(lambda: sum("is not done after" in text for text in team.submitted("lead")) == 2, "the second task")
    assert (
        len(team.home.query("SELECT 1 FROM messages WHERE sender_name = 'agtmux' AND request_ref LIKE 'task:%'")) == 2
    )
    assert team.home.health()["failures"] == {}


def test_who_gave_a_task_hears_that_its_receiver_has_ended(team: Team) -> None:
    team.up()
    assert "delivered" in team.run("lead", "message send writer 'print the labels' --type task_request")
    team.tell("writer", "exit")
    wait_until(lambda: any("It has ended" in text for text in team.submitted("lead")), "word of its end")


def test_a_team_is_shown_no_tasks_of_others(team: Team) -> None:
    team.up()
    team.run("lead", "message send writer 'print the labels' --type task_request")
    other = {"name": "others", "folder": str(team.project), "roles": {"reader": {"agent": "parrot"}}}
    shown = team.home.ask("POST", "/v1/teams", other).json["items"][0]
    assert (shown["name"], shown["tasks"]) == ("others", [])


def test_a_task_that_cannot_be_delivered_is_told_of(team: Team) -> None:
    """orchestrator: send time-out."""
    team.up()
    team.tell("writer", "ask d1 touch x")
    wait_until(lambda: team.roles()["writer"]["state"] == "waiting_approval", "the dialog")
    team.run("lead", "message send writer 'print the labels' --type task_request --wait 0s")
    wait_until(lambda: any("has not been delivered" in text for text in team.submitted("lead")), "send")


def test_one_that_could_not_be_told_what_it_is_for_is_no_success(team: Team) -> None:
    team.parrots.mood("asks")
    # Too long for an argument, so it would have to be typed into the dialog.
    team.file.write_text(f'name = "review"\n[roles.lead]\nagent = "parrot"\nprompt = "{"x" * 9000}"\n')
    done = team.home.run("team", "up", str(team.file))
    assert done.returncode == 1 and "lead was not told what it is for: E_DIALOG_OPEN" in done.stderr, done
    done = team.home.run("team", "down", "review")
    assert done.returncode == 2 and "--yes" in done.stderr, done


def test_no_agent_brings_up_a_team(team: Team) -> None:
    team.up()
    assert "E_FORBIDDEN" in team.run("writer", f"team up {team.file}")
    assert "E_FORBIDDEN" in team.run("lead", f"team down {team.file} --yes")


def test_no_agent_of_a_service_for_several_panes_does_either(team: Team) -> None:
    """Which pane it works for is not known, and that it is no user is."""
    out, go = team.home.folder / "said", team.home.folder / "go"
    command = f'setsid -w "{COMMANDS}/agtmux" team up {team.file} > {out} 2>&1; echo over >> {out}'
    pane = team.home.pane("codex", f"sh -c 'until [ -e {go} ]; do sleep 0.1; done; {command}; exec sleep 3600'")
    wait_until(lambda: team.home.panes().get(pane, {}).get("agent_type") == "codex", "the pane")
    go.touch()
    wait_until(lambda: out.exists() and "over" in out.read_text(), "its answer")
    assert "E_FORBIDDEN" in out.read_text()
    assert team.home.run("team", "status").stdout == "no team is up\n"


def test_whom_a_member_launches_may_write_to_no_more_than_it(team: Team) -> None:
    """orchestrator: permissions, word to the user."""
    team.up()
    for words, name in (("--role helper", "helper"), ("", "")):
        said = team.run("writer", f"launch parrot --json {words}")
        launched = json.loads(said.partition("\nover")[0])
        assert not name or launched["name"] == name
        helper = team.parrots.folder / launched["ref"].rpartition("%")[2]
        for to, answer in (("user", "E_FORBIDDEN"), ("writer", "delivered"), ("lead", "delivered")):
            out = helper.with_suffix(".7.out")
            out.unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings:
                order = f'run 7 "{COMMANDS}/agtmux" message send {to} hello; echo; echo over $?'
                strings.sendto(order.encode(), str(helper.with_suffix(".sock")))
            wait_until(lambda out=out: out.exists() and "\nover " in out.read_text(), "its answer")
            assert answer in out.read_text(), (name, to, out.read_text())


def test_a_role_of_a_team_that_is_up_is_nobody_elses(team: Team) -> None:
    team.up()
    team.tell("writer", "exit")
    wait_until(lambda: team.roles()["writer"]["ref"] is None, "the end of the writer")
    taken = team.run("lead", "launch parrot --role writer")
    assert "E_PRECONDITION_FAILED" in taken and "in the team review" in taken, taken
    other = team.project / "other.toml"
    other.write_text('[roles.writer]\nagent = "parrot"\n')
    refused = team.home.run("team", "up", str(other))
    assert refused.returncode == 4 and "in the team review" in refused.stderr, refused
    # Also after a restart; and the team itself has it.
    team.home.end(team.daemon)
    team.daemon = team.home.start()
    wait_until(lambda: team.roles()["lead"]["ref"], "the lead")
    assert "in the team review" in team.run("lead", "launch parrot --role writer")
    assert team.up()["writer"]["ref"] is not None
    assert team.home.run("team", "down", "review", "--yes").returncode == 0
    assert team.home.run("team", "up", str(other)).returncode == 0


def test_a_member_that_takes_too_long_has_its_rules_all_the_same(team: Team) -> None:
    """orchestrator: start time-out."""
    team.file.write_text(TEAM.replace("[timeouts]", '[timeouts]\nstart = "2s"'))
    team.parrots.mood("silent")
    began = time.monotonic()
    done = team.home.run("team", "up", str(team.file))
    assert done.returncode == 1 and "not ready within 2 s" in done.stderr, done
    assert time.monotonic() - began < 25
    told = {role: json.loads(peers) for role, peers in team.home.query("SELECT role || given_at, peers FROM roles")}
    assert sorted(told.values()) == [["lead"], ["writer", "user"]], told
    assert {role["ref"] for role in team.roles().values()} == {None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "roles"),
        ("x =", "is not TOML"),
        ('[roles.a]\nagent = "nobody"\n', "no agent 'nobody' can be launched"),
        ('[roles.a]\nagent = "parrot"\npeers = ["b"]\n', "who is not in the team"),
    ],
)
def test_a_file_that_is_wrong_starts_nobody(team: Team, text: str, said: str) -> None:
    team.file.write_text(text)
    done = team.home.run("team", "up", str(team.file))
    assert done.returncode == 2 and said in done.stderr, done
    assert team.home.run("team", "up", str(team.project / "none.toml")).returncode == 2
    assert team.home.run("team", "status").stdout == "no team is up\n"


def test_a_role_apart_has_settings_of_its_own(team: Team) -> None:
    """orchestrator: configuration home, starting."""
    sheet = team.home.folder / "config" / "agents" / "parrot.toml"
    sheet.write_text(sheet.read_text() + '\n[mcp]\npaths = ["$PARROT_HOME/mcp.json", "~/mcp.json"]\nfolders = ["~"]\n')
    team.home.end(team.daemon)
    team.home.start()
    team.file.write_text('name = "apart"\n[roles.solo]\nagent = "parrot"\nisolated = true\n')
    done = team.home.run("team", "up", str(team.file))
    assert done.returncode == 0, done
    home = team.home.state / "teams" / "apart" / "solo"
    pane = next(pane for pane, item in team.home.panes().items() if item["agent_type"] == "parrot")
    assert "PARROT_HOME" in team.parrots.started(pane)["environ"]
    entry = json.loads((home / "mcp.json").read_text())["mcpServers"]["agtmux"]
    assert Path(entry["command"]).name == "agtmux-mcp" and home.stat().st_mode & 0o077 == 0
    assert not (team.home.folder / "mcp.json").exists()
    assert team.home.run("team", "down", "apart", "--yes").returncode == 0
    assert not (home / "mcp.json").exists()
