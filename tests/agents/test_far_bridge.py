"""The real agents on a machine without agtmux: they start the bridge that was put there, and are told who they are."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from agents.bench import Stage
from agents.driven import TARGET, Far
from agents.install import PINNED
from agents.test_bridge import Bridged

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
EVERY = [(name, versions[-1]) for name, versions in PINNED.items()]


class FarBridged(Far, Bridged):
    def _prepared(self, stage: Stage) -> None:
        super()._prepared(stage)
        assert self.home is not None
        done = self.home.run("mcp", "register", "--target", TARGET, "--agent", self.agent.NAME)
        assert done.returncode == 0 and "registered now" in done.stdout, done


@pytest.mark.parametrize(("name", "version"), EVERY)
def test_an_agent_on_a_vm_is_told_who_it_is(name: str, version: str) -> None:
    with FarBridged(import_module(f"agents.{name}"), version, hooks=False) as its:
        item = its.expect("idle").item
        assert item is not None and item["ref"].startswith(f"pane:{TARGET}/")
        its.call("list_agents")
        told = its.heard()
        print(f"{name} {version}:", *re.findall(r'"you": ?[^}]*}', told)[-1:])
        assert re.search(rf'"you": ?{{[^}}]*"ref": ?"{re.escape(item["ref"])}"', told), told[-3000:]
        assert re.search(r'"is_you": ?true', told) and "E_" not in told
        assert its.home is not None
        assert "not registered now" in its.home.run("mcp", "unregister", "--target", TARGET).stdout
        assert not (its.pane.stage.home / ".local" / "share" / "agtmux").exists()
