"""What an adapter must have, and which are let in."""

from types import SimpleNamespace

import pytest

from agtmux.agents import registry as registry_module
from agtmux.agents.adapter import SheetAdapter
from agtmux.agents.contract import CONTRACT_VERSION, Glance
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.panes import ForegroundProcess

REGISTRY = Registry.load()


@pytest.mark.parametrize("adapter", REGISTRY.adapters, ids=lambda adapter: adapter.sheet.agent_type)
def test_every_adapter_answers_every_call(adapter) -> None:
    assert adapter.contract_version == CONTRACT_VERSION
    assert adapter.capabilities.polling_required or adapter.capabilities.event_driven
    # What was made from descriptions supports nothing.
    assert adapter.capabilities.supports_waiting_approval != adapter.sheet.screen.is_described
    name = adapter.sheet.process.commands[0]
    assert adapter.identify(ForegroundProcess(1, 0.0, (name,), f"/usr/bin/{name}"))
    assert not adapter.identify(ForegroundProcess(1, 0.0, ("sleep",), "/usr/bin/sleep"))
    assert adapter.poll(Glance("")).seen.state == "unknown"
    assert adapter.normalise("NoSuchEvent", {})[1].is_unsupported
    assert not adapter.health("0.0.0-made-up").is_verified
    assert adapter.health(None).is_verified
    subscription = adapter.subscribe()
    assert set(subscription.hook_events) == set(adapter.sheet.hooks.events if adapter.sheet.hooks else ())


def joins(monkeypatch, *offered: object) -> Registry:
    """As if another package were installed."""
    point = SimpleNamespace(name="eliza-agtmux", load=lambda: lambda: list(offered))
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [point] if group == "agtmux.agents" else [])
    return Registry.load()


class Loud(SheetAdapter):
    """One with code of its own: it knows its process by the way it shouts."""

    def identify(self, process: ForegroundProcess) -> bool:
        return process.argv[:1] == ("LOUD",)


def test_a_package_may_bring_adapters_with_code_of_their_own(monkeypatch) -> None:
    sheet = REGISTRY.sheet("gemini")
    loud = Loud(type(sheet)("loud", "Loud", sheet.process, screen=sheet.screen))
    known = joins(monkeypatch, loud)
    found = known.identify("", "", [ForegroundProcess(7, 0.0, ("LOUD",), "/bin/x")])
    assert (found.agent_type, found.pid) == ("loud", 7)
    assert known.read_screen("loud", "").state == "unknown"


@pytest.mark.parametrize("version", ["2.0", "0.9", "none"])
def test_an_adapter_for_another_contract_is_refused_with_a_reason(monkeypatch, version: str) -> None:
    adapter = Loud(REGISTRY.sheet("gemini"))
    adapter.contract_version = version
    with pytest.raises(AgtmuxError, match=rf"eliza-agtmux are made for contract {version}.*has 1\.2"):
        joins(monkeypatch, adapter)


def test_an_adapter_for_a_later_minor_version_is_let_in(monkeypatch) -> None:
    adapter = Loud(REGISTRY.sheet("gemini"))
    adapter.contract_version = "1.7"
    assert "gemini" in joins(monkeypatch, adapter).agent_types
