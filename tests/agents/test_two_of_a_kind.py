"""Two agents of one kind under one account: what one writes down is never taken for the other's."""

from __future__ import annotations

import time

import pytest

from agents import claude
from agents.driven import TARGET, Driven
from agents.install import PINNED
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]


@pytest.mark.parametrize("hooks", [True, False], ids=["hooks", "no-hooks"])
def test_one_that_asks_does_not_make_the_other_ask(hooks: bool) -> None:
    with Driven(claude, PINNED["claude"][-1], hooks=hooks) as its:
        first = its.pane.format("#{pane_id}")
        its.say("Hello. do:say{{Hello.}}")
        wait_until(lambda: _state(its, first) in ("completed", "idle"), "the first one's end")
        its.pane.tmux("split-window", "-b", "-t", first, "-c", str(its.pane.stage.project), *its.again())
        second = its.pane.format("#{pane_id}")
        assert second != first
        wait_until(lambda: _state(its, second) == "idle", "the second one's prompt", 60)
        claude.ready(its.pane)
        its.say("Make a label. do:bash{{touch label.txt}}")
        wait_until(lambda: _state(its, second) == "waiting_approval", "the second one's dialog", 20)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            assert _state(its, first) in ("completed", "idle"), "one asks, and another is shown to"
            assert _state(its, second) == "waiting_approval"
        its.approve()
        wait_until(lambda: _state(its, second) in ("completed", "idle"), "the second one's end", 20)
        assert _state(its, first) in ("completed", "idle")


def _state(its: Driven, pane_id: str) -> str:
    assert its.home is not None
    items = its.home.ask("GET", f"/v1/panes?target={TARGET}").json["items"]
    return next((item["state"] for item in items if item["identity"]["pane_id"] == pane_id), "none")
