"""Time alone changes what it must, by events like any other, and nobody has to ask."""

import asyncio
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST
from agtmux.domain.states import State
from agtmux.engine.transitions import Policy
from agtmux.observe.reconciler import Reconciler
from unit.builders import POLICY, Core, FakeTime, a_core, a_pane, an_event, end, rows, seen, unbound

SOON = SECOND // 20
HASTY = replace(
    POLICY, completed_to_idle=SOON, told_ttl=dict.fromkeys(State, 4 * SOON), pending_bind_ttl=SOON, seen_ttl=SOON
)


class RealTime:
    clock = staticmethod(Clock)


@asynccontextmanager
async def a_reconciled_core(directory: Path, time: FakeTime | RealTime | None = None, policy: Policy = HASTY):
    async with a_core(directory, time or RealTime(), policy) as core:
        reconciler = Reconciler(core.world, core.ingest, core.clock, policy)
        await reconciler.catch_up()
        task = asyncio.create_task(reconciler.run())
        try:
            yield core
        finally:
            await end(task)


def now(core: Core, event: Event) -> Event:
    moment = core.clock.now()
    return replace(event, event_time=moment, ingested_at=moment)


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it never came to pass"
        await asyncio.sleep(0.005)


async def test_a_finished_turn_becomes_idle_and_then_unknown_by_itself(tmp_path: Path) -> None:
    async with a_reconciled_core(tmp_path) as core:
        await core.look(seen())
        await core.take(now(core, an_event("stop", "completed")))
        version = core.record.row.state_version
        await until(lambda: core.record.row.reason_code == "completed_demoted")
        await until(lambda: core.record.row.reason_code == "stale_signal")
        assert core.record.row.state_version == version + 2
    told = rows(tmp_path, "SELECT source, event_type FROM events ORDER BY ingested_at")
    assert told == [("hook", "claude.stop"), ("reconciler", "demotion_due"), ("reconciler", "stale_detected")]


async def test_what_is_due_is_said_of_exactly_the_state_that_was_seen(tmp_path: Path) -> None:
    """Whatever changes on the way to the disk makes the reminder void."""
    async with a_reconciled_core(tmp_path) as core:
        submitted: list[Event] = []
        submit = core.ingest.submit

        async def listen(submission):
            submitted.extend(submission if isinstance(submission, tuple) else ())
            return await submit(submission)

        core.ingest.submit = listen  # type: ignore[method-assign]
        await core.look(seen())
        await core.take(now(core, an_event("stop", "completed")))
        version = core.record.row.state_version
        await until(lambda: core.record.row.state is not State.COMPLETED)
        due = next(event for event in submitted if event.source == "reconciler")
        assert (due.if_state_version, due.runtime_id) == (version, core.record.runtime.runtime_id)


async def test_a_turn_that_goes_on_is_not_demoted(tmp_path: Path) -> None:
    async with a_reconciled_core(tmp_path) as core:
        await core.look(seen())
        await core.take(now(core, an_event("stop", "completed")), now(core, an_event("prompt", "running")))
        await until(lambda: core.record.row.reason_code == "stale_signal")
    kinds = {row[0] for row in rows(tmp_path, "SELECT event_type FROM events WHERE source = 'reconciler'")}
    assert kinds == {"stale_detected"}


DUE = {
    "running": (POLICY.told_ttl[State.RUNNING], "stale_signal"),
    "completed": (POLICY.completed_to_idle, "completed_demoted"),
}


@pytest.mark.parametrize(("state", "due"), DUE.items(), ids=DUE.keys())
async def test_what_fell_due_while_no_daemon_was_there_is_done_by_the_next(tmp_path: Path, state: str, due) -> None:
    lasts, reason_code = due
    machine = FakeTime()
    async with a_core(tmp_path, machine) as core:
        await core.look(seen())
        await core.take(an_event("e1", state))
    machine.pass_by(lasts / SECOND + 1)
    async with a_reconciled_core(tmp_path, machine, POLICY) as core:
        assert core.record.row.reason_code == reason_code, "before anyone could ask"


async def test_what_is_not_due_yet_when_a_daemon_starts_is_left_alone(tmp_path: Path) -> None:
    machine = FakeTime()
    async with a_core(tmp_path, machine) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        earlier = core.world.records[HOST, "%2"].runtime.runtime_id
        await core.take(an_event("e1", "completed", at=60), an_event("e2", "completed", runtime_id=earlier))
        before = core.record
    machine.pass_by(POLICY.completed_to_idle / SECOND + 1)
    async with a_reconciled_core(tmp_path, machine, POLICY) as core:
        assert core.world.records[HOST, "%2"].row.state is State.IDLE
        assert core.record == before


async def test_an_event_that_nobody_looks_for_is_let_go_by_itself(tmp_path: Path) -> None:
    async with a_reconciled_core(tmp_path) as core:
        assert await core.take(now(core, unbound(an_event("e1")))) == ["pending_bind"]
        await until(lambda: not core.world.pending)
    assert rows(tmp_path, "SELECT status, reason_code FROM event_inbox") == [("dropped_unbound", "bind_ttl_expired")]
