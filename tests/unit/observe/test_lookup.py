"""One number or name that several panes have is refused with all that it may mean, never guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.refs import PaneRef
from agtmux.domain.runtimes import Inhabitant, PaneId, PaneInstance, TargetId, start_runtime
from agtmux.observe.lookup import as_shown, resolve
from agtmux.observe.world import PaneKey, World
from unit.builders import BOOT, T0, a_pane, a_record

TARGETS = ("host", "vm1", "vm2")


def a_world(keys: set[tuple[str, int]]) -> World:
    world = World()
    for target, number in keys:
        key = (TargetId(target), PaneId(f"%{number}"))
        world.panes[key] = replace(a_pane(key[1], session_name=f"work {number}/x"), target_id=key[0])
        instance = PaneInstance(key[0], BOOT, key[1])
        runtime = start_runtime(instance, 1, Inhabitant("claude", 100, T0), T0)
        world.records[key] = a_record(runtime)
        world.by_runtime[runtime.runtime_id] = key
    return world


def ref_of(world: World, key: PaneKey) -> str:
    pane = world.panes[key]
    return str(PaneRef(pane.target_id, pane.session_name, pane.window_id, pane.pane_id))


@given(st.sets(st.tuples(st.sampled_from(TARGETS), st.integers(0, 4)), min_size=1, max_size=9))
def test_every_form_means_its_pane_or_is_refused_as_ambiguous(keys: set[tuple[str, int]]) -> None:
    world = a_world(keys)
    for key, record in world.records.items():
        runtime = record.runtime
        whole = (
            ref_of(world, key),
            ref_of(world, key).removeprefix("pane:"),
            as_shown(world, key),
            f"runtime:{runtime.runtime_id}",
            f"{key[0]}/{key[1]}",
        )
        for text in whole:
            assert resolve(world, text) == key
        same = sorted(other for other in world.records if other[1] == key[1])
        short = (key[1], f"claude-{key[1].removeprefix('%')}")
        # The name of an agent of this machine is a whole one: it has no target.
        expected = [same, same if ("host", int(key[1][1:])) not in keys else [(TargetId("host"), key[1])]]
        for text, meant in zip(short, expected, strict=True):
            if len(meant) == 1:
                assert resolve(world, text) == meant[0]
                continue
            with pytest.raises(AgtmuxError) as refused:
                resolve(world, text)
            assert refused.value.code is ErrorCode.REF_AMBIGUOUS
            assert refused.value.details["refs"] == [ref_of(world, each) for each in meant]


@given(st.text(max_size=40))
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    world = a_world({("host", 1)})
    try:
        resolve(world, text)
    except AgtmuxError as error:
        assert error.code in (ErrorCode.REF_INVALID, ErrorCode.REF_INVALID_ENCODING, ErrorCode.REF_NOT_FOUND)
