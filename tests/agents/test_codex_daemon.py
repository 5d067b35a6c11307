"""Codex's app server runs the hooks of all its panes, in the environment of the pane that it was started from."""

from __future__ import annotations

import time

import pytest

from agents import codex
from agents.actions import say
from agents.driven import TARGET, Driven
from support.home import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

# Of the versions that tests start, the one that has an app server of its own accord.
VERSION = "0.166.0"


class WithServer(Driven):
    """As users have it, who have not switched it off."""

    def _prepared(self, stage) -> None:
        settings = stage.home / ".codex" / "config.toml"
        settings.write_text(settings.read_text().replace("daemon_auto_start = false\n", ""))
        super()._prepared(stage)


def test_no_pane_is_taken_for_another_because_their_hooks_are_run_by_one_process() -> None:
    with WithServer(codex, VERSION, hooks=True) as its:
        assert its.home is not None
        say("Hello. do:say{{One.}}")(its.pane)
        its.pane.wait_until(lambda: not its.pane.server.busy, "the answer")
        first = its.pane.format("#{pane_id}")
        env = its.pane.tmux("show-environment", "-g")
        assert "TMUX_PANE" not in env
        # Another pane, with the same home and so the same server.
        its.pane.tmux("split-window", "-b", "-t", first, "-c", str(its.pane.stage.project), *its.again())
        second = its.pane.format("#{pane_id}")
        assert second != first
        wait_until(lambda: _state(its, second) == "idle", "the second one's prompt", 60)
        its.pane.settle()
        before = _state(its, first)
        say("Tell me. do:slow{{6}}")(its.pane)
        wait_until(lambda: _state(its, second) == "running", "the second one at work", 10)
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            assert _state(its, first) in (before, "idle"), "what happens in one pane is shown of another"
        # Its hooks came, and were nobody's.
        assert its.home.health()["events"].get("dropped_unbound", 0) >= 1


def _state(its: Driven, pane_id: str) -> str:
    assert its.home is not None
    items = its.home.ask("GET", f"/v1/panes?target={TARGET}").json["items"]
    return next((item["state"] for item in items if item["identity"]["pane_id"] == pane_id), "none")
