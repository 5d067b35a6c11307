"""Messages among agents to whom everything happens at once, and a daemon that is killed over them: none is lost, none
comes twice, and none lands in a dialog or a draft.

AGTMUX_TEST_TRIALS says how many messages, AGTMUX_TEST_SEED which; both are printed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from support.chance import any_seed
from support.home import Home, wait_until
from support.http import Answer
from support.puppets import Puppet

MESSAGES = int(os.environ.get("AGTMUX_TEST_TRIALS", "500"))
# What every agent was started as, while messages are on their way.
_AGENTS = 4
# The last has a secret, which is kept apart from the database until it is delivered.
_TEXTS = ("1", "yes", "/help", "!date", "line\nline", "x" * 300, "use sk-ant-api03-" + "Qm7Zr4Kd9Xw2" * 4)
_OVER = ("delivered", "expired", "refused", "uncertain")


@dataclass
class Count:
    accepted: int = 0
    kills: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # Keys that tmux pressed before the dialog they came to was on its screen: nobody outside the agent can know of it.
    crossed: list[str] = field(default_factory=list)

    def tell(self) -> None:
        lost = sum("lost" in each for each in self.wrong)
        doubled = sum("twice" in each for each in self.wrong)
        print(f"{self.accepted} messages, {self.kills} kills of the daemon: {lost} lost, {doubled} doubled")
        print(f"{len(self.crossed)} crossed by a dialog on its way")
        print(f"ended: {dict(self.statuses)}; came by {dict(self.ways)}; beside: {dict(self.happened)}")
        for each in (*self.wrong, *self.crossed):
            print(each)


class Stage:
    def __init__(self, home: Home, seed: str) -> None:
        self.home = home
        self.chance = random.Random(seed)
        home.configure("[messages]\nper_pair = 100000\nper_sender = 100000\nwaiting = 100000\n")
        self.puppets = [Puppet(home, f"p{number}") for number in range(_AGENTS)]
        self.daemon = home.start()
        for puppet in self.puppets:
            puppet.wait_for("idle")
        self.drafts: Counter[str] = Counter()
        self.asked = 0

    def names(self) -> dict[str, Puppet]:
        return {f"claude-{puppet.pane.removeprefix('%')}": puppet for puppet in self.puppets}

    def send(self, number: int) -> str | None:
        """Its id, or None if the daemon was killed over it: then it was not accepted, or it was and nobody knows."""
        asked = {
            "to": self.chance.choice([*self.names()]),
            "content": f"<m{number}> {self.chance.choice(_TEXTS)}",
            "priority": self.chance.choice(["low", "normal", "normal", "high", "urgent"]),
            "type": self.chance.choice(["info", "info", "task_request", "progress"]),
            "request_ref": f"m{number}",
        }

        def answer() -> Answer | None:
            try:
                return self.home.ask("POST", "/v1/messages", asked)
            except (OSError, ValueError, IndexError):
                return None

        # Asked again until it is known to be accepted, as a client does: it is one message all the same.
        told = wait_until(answer, f"a daemon for m{number}")
        assert told.status == 200, told
        return str(told.json["items"][0]["message_id"])

    def happens(self, count: Count) -> None:
        puppet = self.chance.choice(self.puppets)
        what = self.chance.choice(["ask", "answer", "draft", "busy", "idle", "clear", "nothing", "kill"])
        if what == "kill" and self.chance.random() > 0.25:
            what = "nothing"
        count.happened[what] += 1
        if what == "ask":
            self.asked += 1
            puppet.tell(f"ask d{self.asked} touch label{self.asked}")
        elif what == "answer":
            puppet.tell("answer")
        elif what == "draft":
            puppet.tell("draft half a thought")
        elif what == "clear":
            puppet.tell("clear")
        elif what in ("busy", "idle"):
            puppet.tell(what)
        elif what == "kill":
            self.daemon.send_signal(signal.SIGKILL)
            self.daemon.communicate()
            self.daemon = self.home.start()
            count.kills += 1


def run_messages(home: Home, messages: int) -> Count:
    stage, count = Stage(home, any_seed()), Count()
    ids = {}
    for number in range(messages):
        ids[f"m{number}"] = stage.send(number)
        count.accepted += 1
        for _ in range(stage.chance.randrange(3)):
            stage.happens(count)
        if stage.chance.random() < 0.5:
            time.sleep(stage.chance.random() * 0.3)
    # Then all is quiet, and what waits can come.
    deadline = time.monotonic() + 60 + messages * 1.5

    def is_over() -> bool:
        for puppet in stage.puppets:
            if puppet.log()[-1]["dialog"] is not None:
                puppet.tell("answer")
        open_ones = home.ask("GET", "/v1/messages?status=queued&limit=1000").json["items"]
        open_ones += home.ask("GET", "/v1/messages?status=delivering&limit=1000").json["items"]
        # On a busy machine a task is late, and the user is told. That message waits until the user reads it.
        return not [each for each in open_ones if each["to_agent"] != "user"]

    for puppet in stage.puppets:
        puppet.tell("answer")
        puppet.tell("clear")
        puppet.tell("idle")
    try:
        wait_until(is_over, "the end of all messages", limit=deadline - time.monotonic())
    except AssertionError:
        for puppet in stage.puppets:
            print(puppet.name, home.panes()[puppet.pane]["state"], home.tmux("capture-pane", "-p", "-t", puppet.pane))
        print(home.run("message", "list", "--status", "queued").stdout)
        print(home.run("message", "list", "--status", "delivering").stdout)
        raise
    judge(stage, ids, count)
    count.tell()
    return count


def judge(stage: Stage, ids: dict[str, str | None], count: Count) -> None:
    came: Counter[str] = Counter()
    for puppet in stage.puppets:
        for line in puppet.log():
            if line["what"] in ("key", "paste") and line["dialog"] is not None:
                at = f"{puppet.name}: at an open dialog: {line}"
                (count.wrong if line["on_screen"] else count.crossed).append(at)
            if line["what"] != "submit":
                continue
            text = line["data"]
            if "half a thought" in text:
                count.wrong.append(f"{puppet.name}: with a draft: {text!r}")
            if not text.startswith("[agtmux msg from "):
                count.wrong.append(f"{puppet.name}: no message: {text!r}")
            came[text.partition("<")[2].partition(">")[0]] += 1
    rows = {row[0]: (row[1], row[2]) for row in stage.home.query("SELECT message_id, status, via FROM messages")}
    for name, message_id in ids.items():
        status, via = rows[str(message_id)]
        count.statuses[status] += 1
        count.ways[via] += 1
        if came[name] > 1:
            count.wrong.append(f"{name} came twice or more: {came[name]}")
        if status == "delivered" and not came[name]:
            count.wrong.append(f"{name} is told as delivered and was lost")
        if status not in ("delivered", "uncertain") and came[name]:
            count.wrong.append(f"{name} is told as {status} and came")
        if status not in _OVER:
            count.wrong.append(f"{name} is still {status}")


def test_a_few_messages(home: Home) -> None:
    count = run_messages(home, 25)
    assert not count.wrong, "\n".join(count.wrong[:10])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_messages(home: Home) -> None:
    count = run_messages(home, MESSAGES)
    assert not count.wrong, "\n".join(count.wrong[:10])
    assert len(count.crossed) <= count.accepted / 100, "\n".join(count.crossed[:10])
    assert count.statuses["delivered"] > 0.95 * count.accepted and count.kills > 5
