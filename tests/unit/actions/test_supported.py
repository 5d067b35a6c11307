"""Capability flags govern: what an adapter does not support is refused before anything is done, and offered nowhere."""

from __future__ import annotations

import itertools
from dataclasses import asdict, fields, replace
from typing import Any, cast

import pytest

from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.supported import NEEDED, governed
from agtmux.agents.adapter import SheetAdapter
from agtmux.agents.contract import Capabilities
from agtmux.agents.registry import Registry
from agtmux.api.actions import ACTIONS
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import ForegroundProcess
from agtmux.domain.runtimes import NO_AGENT
from AgtmuxBar.labels import can_answer
from unit.builders import a_record, a_runtime

FLAGS = [each.name for each in fields(Capabilities)]
ADAPTERS = Registry.load().adapters


class Flagged(SheetAdapter):
    """An adapter with one flag taken from it."""

    def __init__(self, whole: Any, without: str) -> None:
        super().__init__(whole.sheet)
        self._flags = replace(whole.capabilities, **{without: False})

    @property
    def capabilities(self) -> Capabilities:
        return self._flags


async def is_carried_out(registry: Registry, action: str, agent_type: str) -> bool:
    done = []

    async def carry_out(record: object, asked: object, still_there: object) -> Done:
        done.append(record)
        return Done("done")

    kind = governed({action: Kind(carry_out, needs_state=True)}, registry)[action]
    record = a_record(a_runtime(agent_type))
    try:
        await kind.carry_out(record, cast(Asked, None), cast(StillThere, None))
    except AgtmuxError as error:
        assert error.code is ErrorCode.UNSUPPORTED and error.details == {"capability": NEEDED[action]}
        assert "attach" in error.message
    return bool(done)


@pytest.mark.parametrize(
    ("adapter", "flag"),
    list(itertools.product(ADAPTERS, FLAGS)),
    ids=lambda each: each if isinstance(each, str) else each.sheet.agent_type,
)
async def test_without_a_flag_what_needs_it_is_refused_and_nothing_else(adapter: Any, flag: str) -> None:
    agent_type = adapter.sheet.agent_type
    registry = Registry([Flagged(adapter, flag)])
    for action in ACTIONS:
        expected = registry.flags(agent_type).get(NEEDED.get(action, ""), True)
        assert await is_carried_out(registry, action, agent_type) == expected, action
        if NEEDED.get(action) == flag:
            assert not expected
    # Menu and notifications offer what the API would do.
    offered = can_answer(cast(Any, {"capabilities": registry.flags(agent_type)}))
    assert offered == await is_carried_out(registry, "approve", agent_type)


def test_flags_are_true_of_each_agent() -> None:
    """Requirements review: of Cursor only descriptions are known, and it claimed everything."""
    flags = {each.sheet.agent_type: asdict(each.capabilities) for each in ADAPTERS}
    everything = dict.fromkeys(FLAGS, True)
    nothing_tried = dict.fromkeys(FLAGS, False) | {"polling_required": True}
    assert flags == {**dict.fromkeys(("claude", "codex", "copilot", "gemini"), everything), "cursor": nothing_tried}


async def test_what_is_in_no_adapter_is_not_governed() -> None:
    """A pane without an agent, or of an agent that nobody knows: other guards decide."""
    assert await is_carried_out(Registry([]), "approve", "parrot")


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.sheet.agent_type)
def test_a_disabled_adapter_is_not_used(adapter: Any) -> None:
    name = adapter.sheet.agent_type
    registry = Registry(ADAPTERS, disabled=[name])
    command = adapter.sheet.process.commands[0]
    process = ForegroundProcess(7, 1.0, (command,), f"/usr/bin/{command}")
    assert Registry(ADAPTERS).identify("", command, [process]).agent_type == name
    for mark in ("", name):
        assert registry.identify(mark, command, [process]).agent_type == NO_AGENT
    assert not registry.knows(name) and name not in registry.agent_types and registry.disabled == [name]
    assert [each.sheet.agent_type for each in registry.installed] == [each.sheet.agent_type for each in ADAPTERS]
