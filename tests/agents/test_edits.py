"""A file edit that a real agent both reports through its hooks and shows: it is one request, and can be answered."""

from __future__ import annotations

import pytest

from agents import codex, copilot, gemini
from agents.driven import Driven
from agents.install import NEWEST, PINNED

pytestmark = [pytest.mark.timeout(600), pytest.mark.agents]
AGENTS = [
    (gemini, NEWEST["gemini"], ""),
    (copilot, NEWEST["copilot"], ""),
    (codex, PINNED["codex"][-1], "read-only"),
]


@pytest.mark.parametrize(("agent", "version", "wish"), AGENTS, ids=lambda it: getattr(it, "NAME", ""))
def test_an_edit_that_is_reported_and_shown_is_approved(agent, version: str, wish: str) -> None:
    with Driven(agent, version, hooks=True, wish=wish) as its:
        assert its.home is not None
        its.expect("idle")
        its.say("Make it. do:edit{{vans.py}}")
        its.expect("waiting_approval")
        its.pane.wait_until(
            lambda: ((its.now.item or {}).get("attention") or {}).get("fingerprint") is not None, "its dialog"
        )
        item = its.now.item
        assert item is not None and "vans.py" in item["attention"]["summary"]
        assert not item["attention"]["brief"] and "second line" in item["attention"]["detail"]
        partial = [] if item["attention"]["whole"] else ["--partial"]
        done = its.home.run("approve", item["ref"], *partial)
        assert (done.returncode, done.stderr) == (0, ""), done
        its.pane.wait_until((its.pane.stage.project / "vans.py").exists, "the file")
