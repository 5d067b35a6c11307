"""What a look changes: who lives in a pane, since which epoch, and under which runtime id."""

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.domain.panes import HOST, SeenPane
from agtmux.domain.runtimes import Inhabitant, PaneInstance, Runtime, derive_runtime_id
from agtmux.domain.states import State
from unit.builders import BOOT, PANE, a_core, a_look, a_pane, after, an_event, rows, seen

ACTIVE = "SELECT runtime_id FROM runtimes WHERE ended_at IS NULL"


async def epochs(tmp_path: Path, *looks) -> list[Runtime]:
    """The runtimes of %1 after each look."""
    found = []
    async with a_core(tmp_path) as core:
        for number, look in enumerate(looks):
            await core.ingest.submit(replace(look, taken_at=after(number)))
            found.append(core.record.runtime)
    return found


async def test_a_new_pane_begins_at_epoch_one_with_an_id_made_of_what_it_is(tmp_path: Path) -> None:
    (runtime,) = await epochs(tmp_path, a_look(seen("claude", pid=100)))
    instance = PaneInstance(HOST, BOOT, PANE)
    assert runtime == Runtime(derive_runtime_id(instance, 1, "claude", after(0)), instance, 1, "claude", 100, after(0))
    assert rows(tmp_path, ACTIVE) == [(runtime.runtime_id,)]


async def test_a_pane_without_an_agent_has_a_runtime_too(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen("none", pid=100))
        assert core.record.runtime.agent_type == "none"
        assert (core.record.row.state, core.record.row.reason_code) == ("unknown", "no_agent")


SAME = {
    "nothing changed": seen(),
    "the session was renamed": seen(pane=a_pane(session_name="other")),
    "the window was moved": seen(pane=a_pane(window_id="@7", window_name="elsewhere")),
    "the title and the directory changed": seen(pane=a_pane(title="✳ thinking", cwd="/tmp")),
    "the system no longer tells the pid": seen(pid=None),
    "the start is told a little differently": seen(started=0.01),
    "the version became known": SeenPane(a_pane(), Inhabitant("claude", 100, after(0), "2.1.325")),
}


@pytest.mark.parametrize("look", SAME.values(), ids=SAME.keys())
async def test_the_runtime_stays_while_its_process_does(tmp_path: Path, look: SeenPane) -> None:
    first, second = await epochs(tmp_path, a_look(seen()), a_look(look))
    assert second == first
    stored = rows(tmp_path, "SELECT session_name, window_id, window_name, title, cwd FROM panes")
    pane = look.pane
    assert stored == [(pane.session_name, pane.window_id, pane.window_name, pane.title, pane.cwd)]


CHANGED = {
    "another pid": seen(pid=101),
    "another agent": seen("codex"),
    "the agent is gone": seen("none"),
}


@pytest.mark.parametrize("look", CHANGED.values(), ids=CHANGED.keys())
async def test_another_process_is_a_new_epoch_and_a_new_runtime(tmp_path: Path, look: SeenPane) -> None:
    first, second = await epochs(tmp_path, a_look(seen()), a_look(look))
    assert (first.pane_epoch, second.pane_epoch) == (1, 2)
    assert first.runtime_id != second.runtime_id
    assert rows(tmp_path, ACTIVE) == [(second.runtime_id,)]


async def test_going_back_and_forth_never_brings_an_old_runtime_back(tmp_path: Path) -> None:
    """The very same process in front again is still somebody new: events of its first life are not of its second."""
    claude, shell = a_look(seen("claude", pid=100)), a_look(seen("none", pid=100))
    found = await epochs(tmp_path, claude, shell, claude, shell, claude)
    assert [runtime.pane_epoch for runtime in found] == [1, 2, 3, 4, 5]
    assert len({runtime.runtime_id for runtime in found}) == 5


async def test_a_reused_pane_id_is_somebody_new(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        first = core.record.runtime
        await core.look(at=2)
        assert core.world.records == {}
        assert rows(tmp_path, ACTIVE) == []
        await core.look(seen(), at=3)
        assert core.record.runtime.pane_epoch == first.pane_epoch + 1
        assert core.record.runtime.runtime_id != first.runtime_id


async def test_a_restarted_server_is_a_new_pane_instance(tmp_path: Path) -> None:
    first, second = await epochs(tmp_path, a_look(seen(), boot="1-1"), a_look(seen(), boot="2-2"))
    assert first.instance != second.instance
    assert first.runtime_id != second.runtime_id
    assert second.pane_epoch == 1
    assert rows(tmp_path, ACTIVE) == [(second.runtime_id,)]


async def test_the_same_process_after_a_restart_of_the_daemon_keeps_its_runtime_and_state(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("e1", "waiting_approval", at=1))
        before = core.record
    async with a_core(tmp_path) as core:
        assert core.record == before
        await core.look(seen(), at=9)
        assert core.record == before
        assert core.world.by_runtime == {before.runtime.runtime_id: (HOST, PANE)}


async def test_what_changed_while_no_daemon_was_there_is_a_new_epoch(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("e1", "waiting_approval", at=1))
        before = core.record
    async with a_core(tmp_path) as core:
        await core.look(seen(pid=101), at=9)
        assert core.record.runtime.pane_epoch == 2
        assert core.record.row.reason_code == "no_signal"
        assert core.record.row.state_version == before.row.state_version + 1


async def test_versions_go_on_across_the_runtimes_of_a_pane(tmp_path: Path) -> None:
    """A guard for an old version can never match a new inhabitant by chance."""
    async with a_core(tmp_path) as core:
        versions = []
        for number, look in enumerate([seen(), seen(pid=101), seen("none", pid=102), seen("codex", pid=103)]):
            await core.look(look, at=number)
            versions.append(core.record.row.state_version)
            event = an_event(f"e{number}", "running", at=number, runtime_id=core.record.runtime.runtime_id)
            await core.take(event)
            versions.append(core.record.row.state_version)
        # The shell has no state that could change.
        assert versions == [1, 2, 3, 4, 5, 5, 6, 7]


@pytest.mark.parametrize("restarted", [False, True], ids=["one daemon", "the next daemon"])
async def test_versions_go_on_when_a_pane_id_is_used_again(tmp_path: Path, restarted: bool) -> None:
    """Nothing of the old pane is left by then but the runtimes that ended in it."""
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("e1", "waiting_approval", at=1))
        before = core.record.row.state_version
        await core.look(at=2)
        if not restarted:
            await core.look(seen(pid=7), at=3)
            assert core.record.row.state_version == before + 1
    if restarted:
        async with a_core(tmp_path) as core:
            await core.look(seen(pid=7), at=3)
            assert core.record.row.state_version == before + 1


async def test_a_new_inhabitant_inherits_nothing(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(an_event("e1", "waiting_approval", at=1, source_seq=9))
        await core.look(seen(pid=101), at=2)
        record = core.record
        assert (record.signals, record.cursors) == ({}, {})
        assert (record.row.state, record.row.last_source_seq, record.row.evidence) == (State.UNKNOWN, None, ())


async def test_the_database_itself_allows_only_one_active_runtime_in_a_pane(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
    with sqlite3.connect(tmp_path / "agtmux.db") as connection:
        copy = (
            "INSERT INTO runtimes SELECT 'x' || runtime_id, target_id, pane_id, 'boot', 9, agent_type, agent_version,"
            " pid, started_at, {}, 0 FROM runtimes"
        )
        with pytest.raises(sqlite3.IntegrityError, match=r"runtimes.target_id, runtimes.pane_id"):
            connection.execute(copy.format("NULL"))
        connection.execute(copy.format("1"))
    connection.close()


async def test_looks_that_come_in_one_breath_end_like_looks_that_do_not(tmp_path: Path) -> None:
    looks = [a_look(seen(pid=pid), at=pid) for pid in (1, 2, 1, 3)] + [a_look(at=4), a_look(seen(pid=3), at=5)]
    async with a_core(tmp_path) as core:
        await asyncio.gather(*(core.ingest.submit(look) for look in looks))
        assert core.record.runtime.pid == 3
        assert rows(tmp_path, ACTIVE) == [(core.record.runtime.runtime_id,)]
        assert core.world.by_runtime == {core.record.runtime.runtime_id: (HOST, PANE)}
        assert await core.take(an_event(runtime_id=core.record.runtime.runtime_id)) == ["applied"]


async def test_one_panes_change_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        other = seen("codex", pid=200, pane=a_pane("%2"))
        await core.look(seen(), other)
        neighbour = core.world.records[HOST, "%2"]
        await core.look(seen(pid=101), other, at=2)
        assert core.world.records[HOST, "%2"] is neighbour


def test_a_runtime_id_depends_on_each_part_of_what_it_is_made_of() -> None:
    base = {"target_id": "host", "tmux_server_boot_id": "1-1", "pane_id": "%1"}
    ids = {derive_runtime_id(PaneInstance(**base), 1, "claude", after(0))}
    for part in base:
        ids.add(derive_runtime_id(PaneInstance(**(base | {part: "9-9"})), 1, "claude", after(0)))
    ids.add(derive_runtime_id(PaneInstance(**base), 2, "claude", after(0)))
    ids.add(derive_runtime_id(PaneInstance(**base), 1, "codex", after(0)))
    ids.add(derive_runtime_id(PaneInstance(**base), 1, "claude", after(0.000001)))
    # The border between two parts counts as well.
    ids.add(derive_runtime_id(PaneInstance("host1", "-1", "%1"), 1, "claude", after(0)))
    assert len(ids) == 8
    assert all(len(each) == 64 for each in ids)


def test_a_runtime_id_is_the_same_on_every_machine_and_after_every_restart() -> None:
    found = derive_runtime_id(PaneInstance("host", "4711-1799999999", "%1"), 1, "claude", after(0))
    assert found == "615c5ac06b5cc567b9aefa55940a222475e1cf3eaa31ca00ede7976060e1eb12"
