"""What real agents on a machine without agtmux were asked and have answered, told through the probe there."""

from __future__ import annotations

from types import ModuleType

import pytest

from agents import gemini
from agents.driven import TARGET, Far
from agents.test_conversations import PAIRS, TURNS, hears, prompt, rest, talk

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("agent", "version"), PAIRS)
def test_thirty_turns_on_a_vm_are_told_as_they_were_also_while_the_line_was_cut(
    agent: ModuleType, version: str
) -> None:
    # Without hooks where the agent's process says which file is its.
    with Far(agent, version, hooks=agent is gemini) as its:
        assert its.home is not None and its.vm is not None
        said = talk(its, 1, TURNS // 3)
        hears(its, said)
        # The line goes in the middle of a turn, which ends without anybody who looks.
        asked, answer = prompt(TURNS // 3 + 1)
        its.say(asked)
        its.vm.stop()
        its.pane.wait_until(lambda: not its.pane.server.busy, "the end of the answer")
        its.expect("unknown", limit=90)
        its.vm.start()
        rest(its)
        said += [("user", asked), ("assistant", answer)]
        said += talk(its, TURNS // 3 + 2, TURNS * 2 // 3)
        # And so does the daemon.
        asked, answer = prompt(TURNS * 2 // 3 + 1)
        its.restart(lambda: its.say(asked))
        rest(its)
        said += [("user", asked), ("assistant", answer)]
        said += talk(its, TURNS * 2 // 3 + 2, TURNS)
        hears(its, said)
        (item,) = its.home.ask("GET", f"/v1/conversations?target={TARGET}").json["items"]
        assert (item["messages"], item["source"]) == (2 * TURNS, "transcript")
