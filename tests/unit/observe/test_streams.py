"""What is kept for readers is bounded in every direction, and a reader that lost its place is never misled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.runtimes import PaneId, TargetId
from agtmux.domain.states import State
from agtmux.observe.feeds import Limits, View
from agtmux.observe.filters import Filters, GroupBy, Scope, Subject
from agtmux.observe.streams import Hub
from agtmux.observe.world import World
from support.watching import Line, Replayed, decoded, identity_key
from unit.builders import FakeTime, a_pane, a_record, a_runtime

PANES = Subject()
SUBJECTS = (
    PANES,
    Subject(filters=Filters(needs_action=True)),
    Subject(filters=Filters(all=True)),
    Subject(Scope.WINDOWS),
    Subject(Scope.SESSIONS, Filters(state=State.RUNNING)),
    Subject(Scope.SESSIONS, group_by=GroupBy.SESSION_NAME),
)


class Stage:
    """A world that is changed by hand, and the hub that tells of it."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.time = FakeTime()
        self.world = World()
        self.clock = self.time.clock()
        self.hub = Hub(self.world, self.clock, limits)

    def show(self, number: int, state: str | None, window: int = 1, agent: str = "claude", name: str = "code") -> None:
        """The pane is in that state and window, or is no more."""
        key = (HOST, PaneId(f"%{number}"))
        if state is None:
            self.world.panes.pop(key, None), self.world.records.pop(key, None)
        else:
            session = "main" if window < 3 else "other"
            where = {"session_name": session, "window_id": f"@{window}", "window_name": name}
            self.world.panes[key] = a_pane(key[1], **where)
            record = a_record(a_runtime(agent, pane_id=key[1]))
            self.world.records[key] = replace(record, row=replace(record.row, state=State(state)))
        self.hub.publish({key}, self.clock.now())

    def reader(self, subject: Subject = PANES, cursor: str | None = None) -> Reader:
        return Reader(self.hub.watch(subject, cursor))

    def shown(self, subject: Subject = PANES) -> dict[object, Line]:
        (line,) = decoded(self.hub.once(subject))
        return {identity_key(item["identity"]): item for item in line["items"]}


class Reader:
    """Takes what there is, without waiting for more; what it has not taken yet waits for it."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._next: asyncio.Task[bytes] | None = None

    async def take(self, most: int = 10_000) -> list[Line]:
        lines: list[Line] = []
        while len(lines) < most:
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._stream))  # type: ignore[arg-type]
            for _ in range(3):
                await asyncio.sleep(0)
            if not self._next.done():
                break
            done, self._next = self._next, None
            if isinstance(done.exception(), StopAsyncIteration):
                break
            lines += decoded(done.result())
        return lines

    async def leave(self) -> None:
        if self._next is not None:
            self._next.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._next
            self._next = None
        await self._stream.aclose()  # type: ignore[attr-defined]


def kinds(lines: list[Line]) -> list[str]:
    return [line["type"] for line in lines]


@given(st.data())
def test_whatever_happens_and_whenever_it_reads_a_client_ends_up_with_what_is_shown(data: st.DataObject) -> None:
    async def play() -> None:
        stage = Stage(Limits(lines=data.draw(st.integers(1, 6)), idle_feeds=3, streams=4))
        clients: list[tuple[Subject, Replayed, Reader | None]] = []
        for _ in range(data.draw(st.integers(1, 40))):
            step = data.draw(st.sampled_from(["show", "show", "come", "read", "leave", "back", "wait"]))
            if step == "show":
                state = data.draw(st.sampled_from(["running", "error", "idle", None]))
                agent = data.draw(st.sampled_from(["claude", "none"]))
                stage.show(data.draw(st.integers(1, 4)), state, data.draw(st.integers(1, 3)), agent)
            elif step == "come":
                subject = data.draw(st.sampled_from(SUBJECTS))
                clients.append((subject, Replayed(), stage.reader(subject)))
            elif step == "wait":
                stage.time.pass_by(data.draw(st.sampled_from([1.0, 400.0])))
            elif clients:
                which = data.draw(st.integers(0, len(clients) - 1))
                subject, replayed, reader = clients[which]
                if step == "read" and reader is not None:
                    for line in await reader.take(data.draw(st.integers(1, 3))):
                        replayed.take(line)
                elif step == "leave" and reader is not None:
                    await reader.leave()
                    clients[which] = (subject, replayed, None)
                elif step == "back" and reader is None:
                    cursor = replayed.cursor if replayed.lines else None
                    clients[which] = (subject, replayed, stage.reader(subject, cursor))
        for subject, replayed, reader in clients:
            if reader is None:
                reader = stage.reader(subject, replayed.cursor if replayed.lines else None)
            for line in await reader.take():
                replayed.take(line)
            assert replayed.items == stage.shown(subject)
            await reader.leave()
        assert stage.hub.stream_count == 0

    asyncio.run(play())


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([*State, None]), st.integers(1, 3)), max_size=30))
def test_a_view_that_was_kept_is_one_that_is_made_now(steps: list[tuple[int, State | None, int]]) -> None:
    stage = Stage()
    views = [View(stage.world, subject) for subject in SUBJECTS]
    for number, state, window in steps:
        stage.show(number, state, window)
        for subject, view in zip(SUBJECTS, views, strict=True):
            view.update({(HOST, PaneId(f"%{number}"))})
            fresh = View(stage.world, subject)
            assert (view.items(), view.summary()) == (fresh.items(), fresh.summary())


async def test_a_line_is_kept_for_so_many_so_much_and_so_long() -> None:
    for limits, happens in (
        (Limits(lines=10), lambda stage: None),
        (Limits(bytes=10_000), lambda stage: None),
        (Limits(microseconds=10_000_000), lambda stage: stage.time.pass_by(1.1)),
    ):
        stage = Stage(limits)
        stage.show(1, "idle")
        (first,) = decoded(stage.hub.once(PANES))
        for number in range(9):
            happens(stage)
            stage.show(1, ("running", "idle")[number % 2])
            assert stage.hub.kept["bytes"] <= limits.bytes
        assert len(decoded(stage.hub.once(PANES, first["cursor"]))) == 9
        for number in range(9, 40):
            happens(stage)
            stage.show(1, ("running", "idle")[number % 2])
            assert stage.hub.kept["bytes"] <= limits.bytes
        assert stage.hub.kept["lines"] < 20
        with pytest.raises(AgtmuxError) as refused:
            stage.hub.once(PANES, first["cursor"])
        assert refused.value.code is ErrorCode.CURSOR_EXPIRED
        assert kinds(await stage.reader(PANES, first["cursor"]).take()) == ["reset", "snapshot"]


async def test_one_line_that_is_larger_than_all_that_may_be_kept_still_reaches_who_waits() -> None:
    stage = Stage(Limits(bytes=10))
    reader = stage.reader()
    assert kinds(await reader.take()) == ["snapshot"]
    stage.show(1, "running")
    assert kinds(await reader.take()) == ["delta"]
    stage.show(1, "idle")
    stage.show(1, "running")
    assert kinds(await reader.take()) == ["reset", "snapshot"]
    await reader.leave()


async def test_what_nobody_reads_is_forgotten_first_of_all_what_was_left_first() -> None:
    stage = Stage(Limits(idle_feeds=3))
    reader = stage.reader(Subject(filters=Filters(session="read")))
    await reader.take()
    cursors = []
    for number in range(10):
        stage.time.pass_by(1)
        subject = Subject(filters=Filters(session=f"s{number}"))
        cursors.append((subject, decoded(stage.hub.once(subject))[0]["cursor"]))
    stage.show(1, "running")
    assert stage.hub.kept["feeds"] == 4
    assert stage.hub.kept["streams"] == 4
    for subject, cursor in cursors[-3:]:
        assert stage.hub.once(subject, cursor) == b""
    for subject, cursor in cursors[:-3]:
        with pytest.raises(AgtmuxError):
            stage.hub.once(subject, cursor)
    stage.time.pass_by(400)
    stage.show(1, "idle")
    assert stage.hub.kept["feeds"] == 1, "what is read stays"
    await reader.leave()


async def test_no_number_of_snapshots_makes_the_hub_grow() -> None:
    stage = Stage(Limits(streams=20))
    stage.show(1, "running")
    for _ in range(500):
        stage.hub.once(PANES)
    assert stage.hub.kept["streams"] <= 21


@pytest.mark.parametrize("began_since", [3, 50])
async def test_a_stream_that_was_read_for_long_can_be_come_back_to(began_since: int) -> None:
    """However many began since: it is young by when it was left."""
    stage = Stage(Limits(streams=5))
    reader = stage.reader()
    (first,) = await reader.take()
    for _ in range(began_since):
        stage.hub.once(PANES)
    stage.show(1, "running")
    (second,) = await reader.take()
    await reader.leave()
    for _ in range(3):
        stage.hub.once(PANES)
    stage.show(1, "idle")
    (third,) = decoded(stage.hub.once(PANES, second["cursor"]))
    assert (third["stream_id"], third["sequence"]) == (first["stream_id"], 3)


async def test_whoever_has_the_reset_and_not_the_snapshot_after_it_begins_anew() -> None:
    stage = Stage()
    (old,) = decoded(stage.hub.once(PANES))
    for state in ("running", "idle", "error"):
        stage.show(1, state)
    reader = stage.reader(PANES, "0" * 32 + ":1")
    reset, snapshot = await reader.take()
    await reader.leave()
    assert [reset["type"], snapshot["type"], snapshot["cursor"]] == ["reset", "snapshot", f"{reset['stream_id']}:2"]
    # The lines before the snapshot are there, and are no use to it.
    assert len(decoded(stage.hub.once(PANES, old["cursor"]))) == 3
    assert stage.hub.once(PANES, snapshot["cursor"]) == b""
    with pytest.raises(AgtmuxError) as refused:
        stage.hub.once(PANES, reset["cursor"])
    assert refused.value.code is ErrorCode.CURSOR_EXPIRED


async def test_a_stream_begun_while_the_daemon_goes_says_so() -> None:
    stage = Stage()
    reader = stage.reader()
    (first,) = await reader.take()
    stage.hub.close()
    (last,) = await reader.take()
    assert (last["type"], last["sequence"], last["stream_id"]) == ("reset", 2, first["stream_id"])
    for cursor in (None, first["cursor"], last["cursor"]):
        assert kinds(await stage.reader(PANES, cursor).take())[-1] == "reset"


def test_ages_are_told_by_the_moment_of_the_line(lines: list[Line]) -> None:
    snapshot, delta = lines
    assert snapshot["generated_at"] == snapshot["emitted_at"]
    assert delta["generated_at"] < delta["emitted_at"]


@pytest.fixture
def lines() -> list[Line]:
    """A snapshot, and a change that was read a minute after it came about."""
    stage = Stage()
    stage.time.pass_by(60)
    (snapshot,) = decoded(stage.hub.once(PANES))
    stage.show(1, "running")
    stage.time.pass_by(60)
    return [snapshot, *decoded(stage.hub.once(PANES, snapshot["cursor"]))]


async def test_a_target_that_fails_or_comes_back_is_told_also_where_nothing_else_changes() -> None:
    """Seed 003 §7.5. Requirements review, bug 7."""
    stage = Stage()
    vm = TargetId("vm1")
    for name in (HOST, vm):
        stage.world.targets[name] = Target(name, TargetKind.LOCAL)
    failing: list[dict[str, str]] = []
    stage.hub.errors = lambda: list(failing)
    stage.show(1, "running")
    reader, elsewhere = stage.reader(), stage.reader(Subject(filters=Filters(target=HOST)))
    for line in (*await reader.take(), *await elsewhere.take()):
        assert (line["type"], line["partial"], line["target_errors"]) == ("snapshot", False, [])
    failing.append({"target": "vm1", "code": "E_TARGET_UNREACHABLE", "message": "no route"})
    stage.hub.errors_changed()
    stage.hub.errors_changed()
    [told] = await reader.take()
    assert (told["type"], told["changes"], told["partial"]) == ("delta", [], True)
    assert told["requested_targets"] == ["host", "vm1"] and told["responded_targets"] == ["host"]
    assert told["target_errors"] == failing
    # Who has not asked for that target hears nothing of it.
    assert await elsewhere.take() == []
    stage.show(1, "idle")
    [told] = await reader.take()
    assert told["partial"] and told["changes"]
    [begun] = decoded(stage.hub.once(PANES))
    assert begun["partial"] and begun["target_errors"] == failing
    failing.clear()
    stage.hub.errors_changed()
    [told] = await reader.take()
    assert not told["partial"] and told["changes"] == [] and told["responded_targets"] == ["host", "vm1"]
    for each in (reader, elsewhere):
        await each.leave()


async def test_what_a_snapshot_tells_of_targets_is_not_told_again() -> None:
    """A target that fails is removed, and somebody begins to read before the next line."""
    stage = Stage()
    vm = TargetId("vm1")
    for name in (HOST, vm):
        stage.world.targets[name] = Target(name, TargetKind.LOCAL)
    stage.hub.errors = lambda: [{"target": "vm1", "code": "E_TARGET_UNREACHABLE", "message": "no route"}]
    before = stage.reader()
    assert [line["partial"] for line in await before.take()] == [True]
    del stage.world.targets[vm]
    after = stage.reader()
    assert [line["partial"] for line in await after.take()] == [False]
    [polled] = decoded(stage.hub.once(PANES))
    stage.hub.errors_changed()
    assert await after.take() == []
    assert stage.hub.once(PANES, polled["cursor"]) == b""
    # Who was there before is told once.
    assert [(line["type"], line["partial"]) for line in await before.take()] == [("delta", False)]
    for each in (before, after):
        await each.leave()
