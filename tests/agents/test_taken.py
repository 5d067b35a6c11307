"""What is said to be delivered is at the model, whatever a text ends with."""

from __future__ import annotations

import json
import time

import pytest

from agents.driven import Driven
from agents.install import PINNED
from agents.test_send import Desk, agent

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", ["claude", "gemini", "copilot", "codex"])
@pytest.mark.parametrize("text", ["the folder is C:\\labels\\", "tell me about @REA"])
def test_what_is_delivered_has_left_the_prompt(name: str, text: str) -> None:
    with Driven(agent(name), PINNED[name][-1], hooks=False) as its:
        desk = Desk(its)
        folder = its.pane.server
        done = desk.send(text, "--enter")
        time.sleep(2)
        is_there = any(json.dumps(text)[1:-1] in json.dumps(each.body) for each in folder.main[-3:])
        screen = "\n".join(str(its.pane.screen()).rstrip().split("\n")[-14:])
        print(f"{name} {text!r}: {done.stdout.strip()} {done.stderr.strip()} at the model: {is_there}\n{screen}")
        assert (done.stdout == "delivered\n") == is_there
