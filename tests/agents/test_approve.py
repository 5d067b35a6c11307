"""`agtmux approve` and `deny` on the real Claude Code with hooks: its own takes the answer, and no key is pressed."""

from __future__ import annotations

import json

import pytest

from agents import claude
from agents.driven import Driven
from agents.install import PINNED

pytestmark = pytest.mark.timeout(600)
EVERY = pytest.mark.agents
# The newest is tried with every run of the tests, the others where there is time for all.
VERSIONS = pytest.mark.parametrize(
    "version", [*(pytest.param(each, marks=EVERY) for each in PINNED["claude"][:-1]), PINNED["claude"][-1]]
)


def asks(its: Driven, name: str) -> str:
    """Until its dialog is open; the ref of its pane."""
    its.say(f"Make a label. do:bash{{{{touch {name}}}}}")
    its.expect("waiting_approval")
    its.pane.wait_for(its.manners.dialog)
    its.pane.settle()
    assert its.now.item is not None
    return str(its.now.item["ref"])


@VERSIONS
def test_what_is_approved_is_done_and_what_is_denied_is_not(version: str) -> None:
    with Driven(claude, version, hooks=True) as its:
        assert its.home is not None
        its.expect("idle")
        project = its.pane.stage.project
        done = its.home.run("approve", asks(its, "yes.txt"))
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout == "approved: touch yes.txt\n"
        its.pane.wait_until((project / "yes.txt").exists, "the label")
        its.expect("completed")

        done = its.home.run("deny", asks(its, "no.txt"), "--reason", "print it on paper instead")
        assert (done.returncode, done.stdout) == (0, "denied: touch no.txt\n"), done
        its.pane.wait_until(
            lambda: "print it on paper instead" in json.dumps(its.pane.server.main[-1].body), "the reason at the model"
        )
        its.expect("completed", "idle")
        assert not (project / "no.txt").exists()


@EVERY
@VERSIONS
def test_nothing_is_answered_that_is_not_asked_any_more(version: str) -> None:
    with Driven(claude, version, hooks=True) as its:
        assert its.home is not None
        item = its.expect("idle").item
        assert item is not None
        refused = its.home.run("approve", item["ref"])
        assert refused.returncode == 4 and "E_PRECONDITION_FAILED" in refused.stderr
        ref = asks(its, "mine.txt")
        wrong = its.home.run("approve", ref, "--if-runtime", "0" * 64)
        assert wrong.returncode == 4 and "E_RUNTIME_STALE" in wrong.stderr
        its.holds("waiting_approval", seconds=1)
        # The user is quicker.
        its.deny()
        its.expect("idle")
        late = its.home.run("approve", ref)
        assert late.returncode == 4, late
        assert not (its.pane.stage.project / "mine.txt").exists()
        log = its.home.run("log", "actions").stdout
        assert log.count("refused") == 3 and "delivered" not in log
