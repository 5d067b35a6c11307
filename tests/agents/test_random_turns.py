"""Turns in random order on the real programs: what is shown after each is what was done, and nothing sticks."""

from __future__ import annotations

import importlib
import os
import random
import time
from collections.abc import Callable

import pytest

from agents.driven import Driven
from agents.install import PINNED
from support.chance import any_seed

pytestmark = [pytest.mark.agents, pytest.mark.timeout(3600)]

TURNS = int(os.environ.get("AGTMUX_TEST_TURNS", "50"))
# What a state that has been reached may take to be shown, on a machine with much else to do.
SOON = 5.0
OVER = ("completed", "idle")

WAYS = [
    pytest.param(agent, versions[-1], hooks, id=f"{agent}-{versions[-1]}-{'hooks' if hooks else 'no-hooks'}")
    for agent, versions in PINNED.items()
    for hooks in (True, False)
]

Turn = Callable[[Driven, random.Random], tuple[str, ...]]


def answer(its: Driven, luck: random.Random) -> tuple[str, ...]:
    its.say(f"Tell me. do:slow{{{{{luck.uniform(0.3, 3):.1f}}}}}")
    its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
    return OVER


def approved(its: Driven, luck: random.Random) -> tuple[str, ...]:
    name = f"label-{luck.randrange(10**6)}.txt"
    its.say(f"Make a label. do:bash{{{{touch {name}}}}}")
    its.expect("waiting_approval", limit=20)
    time.sleep(luck.uniform(0.5, 2))
    its.approve()
    its.pane.wait_until(lambda: (its.pane.stage.project / name).exists(), "the label")
    its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
    return OVER


def denied(its: Driven, luck: random.Random) -> tuple[str, ...]:
    its.say(f"Make a label. do:bash{{{{touch denied-{luck.randrange(10**6)}.txt}}}}")
    its.expect("waiting_approval", limit=20)
    time.sleep(luck.uniform(0.5, 2))
    its.deny()
    return ("idle",)


def interrupted(its: Driven, luck: random.Random) -> tuple[str, ...]:
    its.say("Tell me. do:slow{{60}}")
    time.sleep(luck.uniform(1, 3))
    its.interrupt()
    return ("idle",)


def asked(its: Driven, luck: random.Random) -> tuple[str, ...]:
    its.say(f"Ask me. do:ask{{{{Which parcel is number {luck.randrange(100)}?|Red|Blue}}}}")
    its.expect("waiting_input", limit=20)
    time.sleep(luck.uniform(0.8, 2))
    its.choose()
    its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
    return OVER


def waits(its: Driven, luck: random.Random) -> tuple[str, ...]:
    """Left waiting for a while: nothing else is shown meanwhile. Then denied."""
    its.say(f"Make a label. do:bash{{{{touch held-{luck.randrange(10**6)}.txt}}}}")
    its.expect("waiting_approval", limit=20)
    its.holds("waiting_approval", seconds=luck.uniform(2, 5))
    its.deny()
    return ("idle",)


def failed(its: Driven, luck: random.Random) -> tuple[str, ...]:
    its.say(f"Fail. do:error{{{{{its.manners.error}}}}}")
    return ("error",)


KINDS: tuple[Turn, ...] = (answer, approved, denied, interrupted, asked, waits, failed)


@pytest.mark.parametrize(("agent", "version", "hooks"), WAYS)
def test_what_is_shown_after_each_turn_is_what_was_done(agent: str, version: str, hooks: bool) -> None:
    seed = any_seed()
    luck = random.Random(seed)
    done: list[str] = []
    with Driven(importlib.import_module(f"agents.{agent}"), version, hooks=hooks) as its:
        its.expect("idle")
        for _ in range(TURNS):
            turn = luck.choice(KINDS)
            done.append(turn.__name__)
            states = turn(its, luck)
            its.pane.settle()
            try:
                its.expect(*states, limit=SOON)
                its.holds(*states, seconds=1.0)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, turn {len(done)} {done[-3:]}: {error}") from None
