"""The item of a pane is made once and kept; whatever it shows, a change of that makes it anew."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.runtimes import Inhabitant, PaneId, PaneInstance, TargetId, start_runtime
from agtmux.domain.states import Confidence, State
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.views import pane_item
from agtmux.observe.world import Draft, PaneKey, World
from unit.builders import BOOT, T0, a_pane, a_record

KEY: PaneKey = (TargetId("host"), PaneId("%1"))


def a_world() -> World:
    world = World(opened_at=Timestamp(T0 + 10))
    world.panes[KEY] = replace(a_pane(KEY[1]), target_id=KEY[0])
    world.records[KEY] = a_record(
        start_runtime(PaneInstance(KEY[0], BOOT, KEY[1]), 1, Inhabitant("claude", 100, T0), T0)
    )
    world.flags["claude"] = {"hooks": True}
    return world


def another_state(world: World) -> None:
    record = world.records[KEY]
    row = replace(
        record.row, state=State.RUNNING, confidence=Confidence.HIGH, state_version=record.row.state_version + 1
    )
    world.records[KEY] = replace(record, row=row)


def another_runtime(world: World) -> None:
    start = start_runtime(PaneInstance(KEY[0], BOOT, KEY[1]), 2, Inhabitant("codex", 200, T0), T0)
    world.records[KEY] = replace(world.records[KEY], runtime=start)


def another_title(world: World) -> None:
    world.panes[KEY] = replace(world.panes[KEY], title=world.panes[KEY].title + "x")


def another_name(world: World) -> None:
    world.roles[world.records[KEY].runtime.runtime_id] = "reviewer"


def another_session(world: World) -> None:
    world.sessions[world.records[KEY].runtime.runtime_id] = "5f1d3c52"


def other_flags(world: World) -> None:
    world.flags = {"claude": {"hooks": False}}


def not_observed(world: World) -> None:
    world.unobserved.add(KEY[0])


def observed(world: World) -> None:
    world.unobserved.discard(KEY[0])


CHANGES = (
    another_state, another_runtime, another_title, another_name, another_session, other_flags, not_observed, observed
)  # fmt: skip


def made_anew(world: World) -> object:
    fresh = copy.deepcopy(world)
    fresh.items.clear()
    return pane_item(fresh, KEY)


@given(st.lists(st.sampled_from(CHANGES), max_size=12))
def test_a_kept_item_is_what_would_be_made_anew(changes: list[Callable[[World], None]]) -> None:
    world = a_world()
    assert pane_item(world, KEY) == made_anew(world)
    for change in changes:
        change(world)
        assert pane_item(world, KEY) == made_anew(world)


@pytest.mark.parametrize("change", [each for each in CHANGES if each not in (observed, not_observed)])
def test_each_change_is_shown(change: Callable[[World], None]) -> None:
    world = a_world()
    before = pane_item(world, KEY)
    change(world)
    assert pane_item(world, KEY) != before


def test_what_is_only_remembered_is_shown_so_as_soon_as_it_is() -> None:
    world = a_world()
    another_state(world)
    before = pane_item(world, KEY)
    not_observed(world)
    remembered = pane_item(world, KEY)
    assert before is not None and remembered is not None
    assert (before.state, remembered.state) == ("running", "unknown")
    observed(world)
    assert pane_item(world, KEY) == before


def test_an_item_that_nothing_has_changed_is_not_made_again() -> None:
    world = a_world()
    assert pane_item(world, KEY) is pane_item(world, KEY)


def test_the_item_of_a_pane_that_is_gone_is_not_kept() -> None:
    world = a_world()
    pane_item(world, KEY)
    draft = Draft(world)
    draft.panes[KEY] = draft.records[KEY] = None
    draft.publish()
    assert pane_item(world, KEY) is None
    assert not world.items
