"""Commands that imitate dialogs, drawn by the real agents: an approvable request shows all that would run."""

from __future__ import annotations

import contextlib
import os
import random
import unicodedata
from types import ModuleType

import pytest

from agents import claude, codex, copilot, gemini
from agents.bench import AgentPane
from agents.claude_actions import say
from agents.install import PINNED, install
from agents.manners import MANNERS
from agents.model.script import NAMED
from agtmux.agents.contract import Glance
from support.chance import any_seed
from support.imitations import WAITING, bare, contents, is_whole, registry, templates

pytestmark = [pytest.mark.agents, pytest.mark.timeout(3_600)]
AGENTS = {"claude": claude, "codex": codex, "gemini": gemini, "copilot": copilot}
SIZES = ((80, 24), (120, 40), (60, 20), (100, 30))
TRIALS = int(os.environ.get("AGTMUX_TEST_TRIALS", "40"))
NAME = "@imitation"


def seen(text: str) -> str:
    """Without what takes no room on a screen."""
    return "".join(char for char in bare(text) if unicodedata.category(char) not in ("Cf", "Cc", "Mn"))


def is_shown(command: str, text: str) -> bool:
    shown, position = seen(text), 0
    for line in filter(None, map(seen, command.split("\n"))):
        position = shown.find(line, position)
        if position < 0:
            return False
        position += len(line)
    return True


def footing(pane: AgentPane, name: str):
    width = int(pane.format("#{pane_width}"))
    return registry().footing(name, Glance(pane.screen(ansi=True), pane.title(), is_alive=True, width=width))


def commands(seed: str) -> list[str]:
    """Such as an agent asks about: what they begin with is never allowed by itself."""
    template = next(each for each in templates() if each.kind == "bash" and each.width == 80)
    made = (contents(random.Random(f"{seed} {number}"), template) for number in range(TRIALS))
    return ["\n".join(["touch asked.txt", *rows] if number % 2 else rows) for number, rows in enumerate(made)]


@pytest.mark.parametrize(("name", "version"), [(name, each) for name, all_ in PINNED.items() for each in all_])
def test_what_an_agent_asks_for_is_shown_whole_or_is_not_approvable(name: str, version: str) -> None:
    agent: ModuleType = AGENTS[name]
    counts = {"asked": 0, "approvable": 0, "not asked": 0}
    hidden, colliding, names = [], [], {}
    with AgentPane(
        agent, install(name, version), version, width=120, height=40, wishes=frozenset({"few-tries"})
    ) as pane:
        MANNERS[name].enter(pane, hooks=False)
        agent.ready(pane)
        for number, command in enumerate(commands(any_seed())):
            width, height = SIZES[number // 10 % len(SIZES)]
            if number % 10 == 0:
                pane.resize(width, height)
                pane.settle()
            NAMED[NAME] = command
            say(f"Do it. do:bash{{{{{NAME}}}}}")(pane)

            try:
                pane.wait_until(lambda: footing(pane, name).reading.seen.state in WAITING, "its dialog", 12.0)
            except AssertionError:
                counts["not asked"] += 1
                pane.keys("Escape")
                with contextlib.suppress(AssertionError):
                    pane.wait_until(lambda: not pane.server.busy, "its end", 5.0)
                continue
            pane.settle(0.4)
            found = footing(pane, name)
            asked = found.reading.seen.asked
            counts["asked"] += 1
            if asked is not None and is_whole(asked) and found.replies.approve is not None:
                counts["approvable"] += 1
                if not is_shown(command, f"{asked.summary}\n{asked.detail}"):
                    hidden.append((command, asked.detail))
                if names.setdefault((width, asked.fingerprint), command) != command:
                    colliding.append((command, names[width, asked.fingerprint]))
            pane.keys("Escape")
            pane.wait_until(lambda: footing(pane, name).reading.seen.state not in WAITING, "its end")
            pane.settle(0.4)
    print(f"{name} {version}: {counts}, hidden {len(hidden)}, colliding {len(colliding)}")
    assert not hidden, f"ran {hidden[0][0]!r}\nshown {hidden[0][1]!r}"
    assert not colliding, f"{colliding[0]!r}"
    assert counts["asked"] >= TRIALS / 2
