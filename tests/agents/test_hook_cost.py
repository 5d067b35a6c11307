"""What agtmux's hooks cost a tool call of the real Claude: the time from the model's word to the tool's result."""

from __future__ import annotations

import itertools
import statistics

import pytest

from agents import claude
from agents.driven import Driven
from agents.install import PINNED
from agents.model.script import Kind

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

CALLS = 30
# In one turn, so that nothing but tools is in between.
PROMPT = "Read. do:read{{README.md}}" + " then:read{{README.md}}" * (CALLS - 1)


def tool_times(*, hooks: bool) -> list[float]:
    """For each tool call, from the model's answer that asks for it to the request with its result."""
    with Driven(claude, PINNED["claude"][-1], hooks=hooks) as its:
        its.expect("idle")
        its.say(PROMPT)
        its.pane.wait_until(lambda: len(its.pane.server.main) > CALLS, "all tool calls", 120)
        exchanges = its.pane.server.main
        pairs = itertools.pairwise(exchanges)
        times = [after.started - before.ended for before, after in pairs if _reads(before)]
        assert len(times) == CALLS
        # The first has files to open that the others find open.
        return times[1:]


def _reads(exchange) -> bool:
    return exchange.step is not None and exchange.step.kind is Kind.READ


def test_hooks_add_little_to_a_tool_call(measured) -> None:
    without, with_hooks, again = tool_times(hooks=False), tool_times(hooks=True), tool_times(hooks=False)
    measured["claude: a tool call without hooks"] += without + again
    measured["claude: a tool call with hooks"] += with_hooks
    added = statistics.median(with_hooks) - statistics.median(without + again)
    measured["claude: added by hooks"].append(added)
    assert added <= 0.04, f"{added * 1000:.0f} ms are added to a tool call"
