"""How soon it is shown what no hook tells: a turn that was stopped, a dialog that was denied, an answer that failed.

From the last key, or the model's refusal, to the API: what the agent itself takes is part of it.
"""

from __future__ import annotations

import importlib
import os
import time

import pytest

from agents.driven import Driven
from agents.install import PINNED

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]

TIMES = int(os.environ.get("AGTMUX_TEST_TIMES", "8"))
WAYS = [
    pytest.param(agent, versions[-1], hooks, id=f"{agent}-{versions[-1]}-{'hooks' if hooks else 'no-hooks'}")
    for agent, versions in PINNED.items()
    for hooks in (True, False)
]


@pytest.mark.parametrize(("agent", "version", "hooks"), WAYS)
def test_what_no_hook_tells_is_shown_soon(agent: str, version: str, hooks: bool, measured) -> None:
    name = f"{'with' if hooks else 'without'} hooks"
    with Driven(importlib.import_module(f"agents.{agent}"), version, hooks=hooks) as its:
        its.expect("idle")
        for number in range(TIMES):
            its.say(f"Make a label. do:bash{{{{touch denied-{number}.txt}}}}")
            its.expect("waiting_approval")
            its.holds("waiting_approval", seconds=2)
            pressed = its.deny()
            measured[f"{name}: denied ({agent})"].append(its.expect("idle", limit=8).at - pressed)
            its.pane.settle()

            its.say("Tell me. do:slow{{60}}")
            its.expect("running")
            # Not always at the same moment between two looks.
            its.holds("running", seconds=2 + number % 7 / 10)
            its.interrupt()
            pressed = time.time()
            measured[f"{name}: interrupted ({agent})"].append(its.expect("idle", limit=8).at - pressed)
            its.pane.settle()

            its.say(f"Think, then fail. do:error{{{{{its.manners.error}}}}}")
            its.pane.wait_until(lambda: not its.pane.server.busy, "the refusal")
            refused = time.time()
            measured[f"{name}: failed ({agent})"].append(max(its.expect("error", limit=20).at - refused, 0.0))
            its.pane.settle()
        if hooks:
            measured[f"{name}: hook → shown ({agent})"] += its.hook_delays()
