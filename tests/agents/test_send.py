"""`send`, `approve` and `deny` by key on the real agents: what is said to have been done is what the screen, the model
and the disk show."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from importlib import import_module
from subprocess import CompletedProcess
from types import ModuleType

import pytest

from agents.driven import Driven
from agents.install import PINNED
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]
EVERY = [(name, version) for name, versions in PINNED.items() for version in versions]
each_agent = pytest.mark.parametrize(("name", "version"), EVERY)

LINES = "\n".join(f"line {number} of it" for number in range(200))
TEXTS = ["run the tests", LINES, "- a dash", "--enter", "1", "emoji 👩‍💻 と日本語 é", "word " * 60]
# A command of each agent's that changes nothing and that only its own screen answers, and what that then shows.
COMMANDS = {
    "claude": ("/help", "(?i)shortcuts"),
    "codex": ("/status", "(?i)session|directory"),
    "gemini": ("/help", "(?i)keyboard shortcuts"),
    "copilot": ("/help", "(?i)shortcuts|commands"),
}


def agent(name: str) -> ModuleType:
    return import_module(f"agents.{name}")


def _steady(screen: str) -> str:
    """Without what blinks beside a tool that waits."""
    return screen.replace("●", " ")


class Desk:
    """The commands, for the one pane there is."""

    def __init__(self, its: Driven) -> None:
        self.its = its
        item = its.expect("idle").item
        assert item is not None and its.home is not None
        self.ref = str(item["ref"])
        self.home = its.home

    def send(self, text: str, *more: str) -> CompletedProcess[str]:
        done = self.home.run("send", self.ref, "--stdin", *more, stdin=None, input=text)
        print(f"send {text[:20]!r} {more}: {done.returncode} {done.stdout.strip()}{done.stderr.strip()}")
        return done

    def act(self, *words: str) -> CompletedProcess[str]:
        done = self.home.run(words[0], self.ref, *words[1:])
        print(f"{words}: {done.returncode} {done.stdout.strip()}{done.stderr.strip()}")
        return done

    def delivers(self, text: str, *more: str) -> None:
        done = self.send(text, "--enter", *more)
        assert (done.returncode, done.stdout) == (0, "delivered\n"), f"{done}\n{self.its.pane.screen()}"

    def model_gets(self, text: str) -> None:
        """In one piece, as a message of the user's."""
        wanted = json.dumps(text, ensure_ascii=False)[1:-1]

        def has_it() -> bool:
            return any(wanted in json.dumps(each.body, ensure_ascii=False) for each in self.its.pane.server.main[-3:])

        self.its.pane.wait_until(has_it, f"{text[:30]!r} at the model")

    def rests(self) -> None:
        self.its.expect("completed", "idle")
        self.its.pane.settle()

    def asked(self, prompt: str) -> None:
        """Until its dialog is open and known."""
        its = self.its
        its.say(prompt)
        its.expect("waiting_approval")
        its.pane.wait_for(its.manners.dialog)
        its.pane.settle()
        wait_until(lambda: (its.now.item or {})["attention"]["fingerprint"], "its fingerprint")


@each_agent
def test_every_text_is_taken_at_an_idle_prompt_as_it_is(name: str, version: str) -> None:
    with Driven(agent(name), version, hooks=False) as its:
        desk = Desk(its)
        for text in TEXTS:
            desk.delivers(text)
            desk.model_gets(text.strip())
            desk.rests()
        # These are commands, and what was sent is what was meant.
        before = len(its.pane.server.main)
        command, shown = COMMANDS[name]
        desk.delivers(command)
        its.pane.wait_for(shown)
        assert not any(command in json.dumps(each.body) for each in its.pane.server.main[before:])
        its.pane.settle()
        its.pane.keys("Escape")
        its.pane.settle()
        desk.delivers("!echo $((6 * 7))nd")
        if name == "gemini":
            # Only a sign that is typed makes a command there.
            desk.model_gets("!echo $((6 * 7))nd")
        else:
            its.pane.wait_for("42nd")
        desk.rests()


@pytest.mark.parametrize("version", PINNED["codex"])
def test_what_looks_like_an_option_is_not_submitted_where_it_might_be_one(version: str) -> None:
    """At a prompt without a frame a numbered line cannot be told from a choice, so Enter is not pressed."""
    with Driven(agent("codex"), version, hooks=False) as its:
        desk = Desk(its)
        done = desk.send("2. a list", "--enter")
        assert done.returncode == 1 and "Enter was not pressed" in done.stderr, done
        its.pane.settle()
        assert "› 2. a list" in its.pane.screen() and not its.pane.server.main


@each_agent
def test_what_is_typed_already_is_left_alone(name: str, version: str) -> None:
    with Driven(agent(name), version, hooks=False) as its:
        desk = Desk(its)
        its.pane.paste("half a thought")
        its.pane.wait_for("half a thought")
        its.pane.settle()
        before = its.pane.screen()
        for more in ([], ["--enter"], ["--enter", "--force-stale"]):
            done = desk.send("another", *more)
            assert done.returncode == 4 and "E_DRAFT_PRESENT" in done.stderr
        assert its.pane.screen() == before
        desk.delivers(" and the rest", "--append")
        desk.model_gets("half a thought and the rest")
        desk.rests()
        # Without Enter it stands there.
        done = desk.send("only typed")
        assert done.returncode == 0 and done.stdout.startswith("typed"), done
        its.pane.settle()
        assert "only typed" in its.pane.screen()
        assert "only typed" not in json.dumps([each.body for each in its.pane.server.main])


@each_agent
def test_while_it_works_a_text_is_taken_too(name: str, version: str) -> None:
    with Driven(agent(name), version, hooks=False) as its:
        desk = Desk(its)
        its.say("Write. do:slow{{6}}")
        its.expect("running")
        desk.delivers("meanwhile this")
        its.expect("running", "completed", "idle")
        desk.model_gets("meanwhile this")
        its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the turn")


@each_agent
def test_a_dialog_is_answered_by_its_own_answer_and_by_nothing_else(name: str, version: str) -> None:
    # Codex asks before it writes only where it may not.
    with Driven(agent(name), version, hooks=False, wish="read-only" if name == "codex" else "") as its:
        desk, project = Desk(its), its.pane.stage.project
        for kind in ("bash", "edit"):
            wanted, unwanted = f"{kind}-yes.txt", f"{kind}-no.txt"
            what = "touch {}" if kind == "bash" else "{}"
            desk.asked(f"Make it. do:{kind}{{{{{what.format(wanted)}}}}}")
            its.pane.settle()
            before = _steady(its.pane.screen())
            for words in (["--text", "1", "--enter"], ["--text", "yes", "--force-stale"], ["--key", "Enter"]):
                done = desk.act("send", *words)
                assert done.returncode == 4 and "E_DIALOG_OPEN" in done.stderr, done
            done = desk.act("kill", "--yes")
            assert done.returncode == 4 and "E_DIALOG_OPEN" in done.stderr, done
            its.pane.settle()
            assert _steady(its.pane.screen()) == before and not (project / wanted).exists()
            done = desk.act("approve", "--json")
            assert done.returncode == 0, f"{done}\n{its.pane.screen()}"
            assert json.loads(done.stdout)["about"]["way"] == "key"
            wait_until((project / wanted).exists, wanted)
            desk.rests()

            desk.asked(f"Make it. do:{kind}{{{{{what.format(unwanted)}}}}}")
            done = desk.act("deny", "--reason", "print it on paper", "--json")
            assert done.returncode == 0, f"{done}\n{its.pane.screen()}"
            assert json.loads(done.stdout)["about"]["reason"] == "delivered"
            desk.model_gets("Denied: print it on paper")
            desk.rests()
            assert not (project / unwanted).exists()
        # Nothing was allowed for longer than once.
        desk.asked("Make it. do:bash{{touch again.txt}}")
        assert desk.act("deny").returncode == 0
        desk.rests()
        assert not (project / "again.txt").exists()


@each_agent
def test_an_answer_that_the_user_forestalls_does_nothing_or_says_so(name: str, version: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Driven(agent(name), version, hooks=False) as its:
        desk, project = Desk(its), its.pane.stage.project
        ends = []
        for number in range(8):
            label = f"raced{number}.txt"
            desk.asked(f"Make it. do:bash{{{{touch {label}}}}}")
            delay = chance.random() * 0.12
            # The user says no; an approve that comes too late must not do it all the same, nor type anything.
            user = threading.Thread(target=lambda delay=delay: (time.sleep(delay), its.press(*its.manners.deny)))
            user.start()
            done = desk.act("approve")
            user.join()
            if done.returncode == 1 and re.search(its.manners.dialog, its.pane.screen()):
                # Two keys in one moment, and it took neither.
                its.deny()
            its.expect("idle", "completed", "running")
            its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the turn")
            desk.rests()
            ends.append((done.returncode, (project / label).exists()))
            # Refused: nothing was pressed. Uncertain: it may have been first. Approved: it was, and may have been
            # stopped then.
            assert done.returncode in (0, 1, 4), done
            was_approved = re.search(rf"approved \w+ to run touch {label}", its.pane.screen()) is not None
            assert done.returncode != 4 or not (project / label).exists(), f"{done}\n{its.pane.screen()}"
            assert done.returncode or was_approved or (project / label).exists(), f"{done}\n{its.pane.screen()}"
            assert done.returncode != 1 or "E_DELIVERY_UNCERTAIN" in done.stderr, done
            assert re.search(r"^\s*[❯›>] 1\s*$", its.pane.screen(), re.MULTILINE) is None, its.pane.screen()
        print(ends)
