"""How many may be launched, and by whom. Time is an argument."""

from pathlib import Path

import pytest

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import LaunchLimits
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import BootId, PaneId, PaneInstance, RuntimeId
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.world import World
from agtmux.store.database import DATABASE_FILE, Database
from agtmux.store.retention import Retention, forget
from agtmux.worktrees.launches import Launch, Launches
from unit.builders import T0

A, B = RuntimeId("a"), RuntimeId("b")


def at(seconds: float) -> Timestamp:
    return Timestamp(int(T0 + seconds * SECOND))


class Book:
    """The launches of one database, before and after a restart."""

    def __init__(self, database: Database, limits: LaunchLimits) -> None:
        self.database = database
        self.limits = limits
        self.number = 0

    async def open(self, now: float = 0) -> Launches:
        launches = Launches(World(), self.database, self.limits)
        await launches.load(at(now))
        return launches

    async def begin(self, launches: Launches, by: RuntimeId | None, now: float) -> str:
        launches.check(by, at(now))
        self.number += 1
        await launches.begin(Launch(f"x{self.number}", by, HOST, "parrot", at(now)))
        return f"x{self.number}"


async def opened(tmp_path: Path, **limits: int) -> Book:
    return Book(await Database.open(tmp_path / DATABASE_FILE, Clock()), LaunchLimits(**limits))


async def test_the_fifth_in_a_minute_waits_for_the_first_to_be_a_minute_old(tmp_path: Path) -> None:
    book = await opened(tmp_path)
    try:
        launches = await book.open()
        for second in (0, 10, 20):
            await launches.settle(await book.begin(launches, A, second), at(second))
        # One that a daemon has died over.
        await book.begin(launches, A, 30)
        for each in (launches, await book.open(40)):
            with pytest.raises(AgtmuxError) as refused:
                each.check(A, at(40))
            assert refused.value.code is ErrorCode.LIMIT_RATE
            assert refused.value.details["retry_after_seconds"] == 20 and "in 20 s" in refused.value.message
            each.check(B, at(40))
            each.check(None, at(40))
            each.check(A, at(60.1))
    finally:
        await book.database.close()


async def test_many_who_launch_one_each_are_too_many(tmp_path: Path) -> None:
    book = await opened(tmp_path)
    try:
        launches = await book.open()
        for number in range(12):
            await launches.settle(await book.begin(launches, RuntimeId(f"r{number}"), 0), at(0))
        with pytest.raises(AgtmuxError, match="12 launches in a minute"):
            launches.check(RuntimeId("another"), at(1))
    finally:
        await book.database.close()


async def test_what_is_under_way_counts_and_what_has_gone_does_not(tmp_path: Path) -> None:
    book = await opened(tmp_path, most_agents=3, most_per_agent=2, per_minute=100, per_minute_overall=100)
    try:
        launches = await book.open()
        first = await book.begin(launches, A, 0)
        await book.begin(launches, A, 0)
        with pytest.raises(AgtmuxError, match="you have launched 2"):
            launches.check(A, at(1))
        await book.begin(launches, B, 0)
        for by in (A, B, None):
            with pytest.raises(AgtmuxError) as refused:
                launches.check(by, at(1))
            assert refused.value.code is ErrorCode.LIMIT_PANES
        # Over, and nothing of it is to be seen.
        await launches.settle(first, at(1))
        launches.check(A, at(1))
        launches.check(None, at(1))
    finally:
        await book.database.close()


async def test_who_launched_whom_is_known_by_pane_and_process_also_later(tmp_path: Path) -> None:
    book = await opened(tmp_path)
    try:
        launches = await book.open()
        instance = PaneInstance(HOST, BootId("7-9"), PaneId("%3"))
        await launches.placed(await book.begin(launches, A, 0), instance, 42)
        for each in (launches, await book.open(100)):
            found = each.launcher_of(instance, 42)
            assert found is not None and found.launcher_id == A
            # Another program in the same pane, and the same pane of another server.
            assert each.launcher_of(instance, 43) is None
            assert each.launcher_of(PaneInstance(HOST, BootId("8-9"), PaneId("%3")), 42) is None
    finally:
        await book.database.close()


async def test_a_launch_is_forgotten_in_its_time_unless_its_pane_is_there(tmp_path: Path) -> None:
    book = await opened(tmp_path)
    try:
        launches = await book.open()
        for pane_id in ("%1", "%2"):
            action_id = await book.begin(launches, A, 0)
            await launches.placed(action_id, PaneInstance(HOST, BootId("7-9"), PaneId(pane_id)), 42)
        await book.database.writer.write(
            lambda tx: tx.execute(
                "INSERT INTO panes (target_id, pane_id, session_name, window_id, window_name, updated_at)"
                " VALUES ('host', '%2', 'cw_labels', '@1', 'parrot', 0)"
            )
        )
        await forget(book.database, Retention(payload=SECOND, metadata=SECOND), at(100))
        assert [tuple(row) for row in await book.database.read("SELECT pane_id FROM launches")] == [("%2",)]
    finally:
        await book.database.close()
