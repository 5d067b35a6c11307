"""Small builders that the tests of the core share: events, runtimes, looks at a tmux server, a core on a real file."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.events import Attention, Event, Verdict
from agtmux.domain.health import HealthPolicy
from agtmux.domain.limits import Limits
from agtmux.domain.panes import HOST, Pane, SeenPane, Target, TargetKind, Topology
from agtmux.domain.redact import Redacted
from agtmux.domain.runtimes import BootId, Inhabitant, PaneId, PaneInstance, Runtime, TargetId, start_runtime
from agtmux.domain.states import Confidence, Health, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record, begin
from agtmux.engine.order import OrderKey
from agtmux.engine.resolve import Signal
from agtmux.engine.transitions import Policy
from agtmux.observe.allowances import Allowance
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import Intake
from agtmux.observe.observer import Executor, Observer
from agtmux.observe.submissions import AddTarget
from agtmux.observe.world import World
from agtmux.store.database import DATABASE_FILE, Database

POLICY = Policy()
# Some moment in 2027: far from zero, so that nothing is right by accident.
T0 = Timestamp(1_800_000_000 * SECOND)
BOOT = BootId("4711-1799999999")
PANE = PaneId("%1")


def after(seconds: float) -> Timestamp:
    return Timestamp(T0 + round(seconds * SECOND))


class FakeTime:
    """Wall and steady clock of a machine, moved by hand."""

    def __init__(self, moment: int = T0) -> None:
        self.wall = moment
        self.steady = 1_000 * SECOND

    def pass_by(self, seconds: float) -> None:
        self.wall += round(seconds * SECOND)
        self.steady += round(seconds * SECOND)

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.wall, steady=lambda: self.steady)


def a_runtime(agent_type: str = "claude", pid: int | None = 100, epoch: int = 1, pane_id: str = PANE) -> Runtime:
    return start_runtime(PaneInstance(HOST, BOOT, PaneId(pane_id)), epoch, Inhabitant(agent_type, pid, T0), T0)


def a_record(runtime: Runtime | None = None, policy: Policy = POLICY) -> Record:
    return begin(runtime or a_runtime(), after_version=0, health=Health.OK, now=T0, policy=policy)


def a_verdict(state: str = "running", reason_code: str | None = None, **other: Any) -> Verdict:
    return Verdict(State(state), reason_code or f"said_{state}", **other)


def an_attention(summary: str = "rm -rf build", kind: str = "approval") -> Attention:
    return Attention(kind, Redacted(summary), incomplete=None, subject=Redacted(summary))


def an_event(event_id: str = "e1", state: str | None = "running", *, at: float = 0.0, **other: Any) -> Event:
    """An event of the hook about `a_runtime()`, taken in `at` seconds after T0; a state of None is no verdict."""
    fields: dict[str, Any] = {
        "event_id": event_id,
        "event_type": f"claude.{event_id}",
        "source": Source.HOOK,
        "dedupe_key": f"key-{event_id}",
        "event_time": after(at),
        "ingested_at": after(at),
        "runtime_id": a_runtime().runtime_id,
        "verdict": None if state is None else a_verdict(state),
    }
    return Event(**(fields | other))


def unbound(event: Event, pane_id: str = PANE, target_id: str = HOST, **hints: Any) -> Event:
    """The same event, saying where it happened instead of whom it is about."""
    return replace(event, runtime_id=None, target_id=TargetId(target_id), pane_id=PaneId(pane_id), **hints)


def a_signal(source: Source, state: str, *, at: float = 0.0, **other: Any) -> Signal:
    key = OrderKey(True, False, 0, after(at), after(at), f"{source}-{state}")
    return Signal(source, f"{source}.{state}", key, a_verdict(state, **other))


def unsupported() -> Verdict:
    return Verdict(State.UNKNOWN, "unsupported_signal", Confidence.LOW)


def a_pane(pane_id: str = PANE, **other: Any) -> Pane:
    fields: dict[str, Any] = {"session_name": "main", "window_id": "@1", "window_name": "code"}
    return Pane(HOST, PaneId(pane_id), **(fields | other))


def a_look(*panes: SeenPane, at: float = 1.0, boot: str | None = BOOT) -> Topology:
    return Topology(HOST, after(at), None if boot is None else BootId(boot), panes)


def seen(agent_type: str = "claude", pid: int | None = 100, pane: Pane | None = None, started: float = 0.0) -> SeenPane:
    return SeenPane(pane or a_pane(), Inhabitant(agent_type, pid, after(started)))


@dataclass
class Core:
    """Store, world and ingest on a real file, as the daemon wires them."""

    database: Database
    world: World
    ingest: Ingest
    clock: Clock
    intake: Intake

    @property
    def record(self) -> Record:
        return self.world.records[HOST, PANE]

    async def look(self, *panes: SeenPane, **how: Any) -> None:
        await self.ingest.submit(a_look(*panes, **how))

    async def take(self, *events: Event) -> list[str]:
        return [receipt.status for receipt in await self.ingest.submit(tuple(events))]


@contextlib.asynccontextmanager
async def a_core(directory: Path, time: FakeTime | None = None, policy: Policy = POLICY) -> AsyncIterator[Core]:
    """Opens what lies in the directory, as a daemon that starts does; `host` is there from the start."""
    clock = (time or FakeTime()).clock()
    database = await Database.open(directory / DATABASE_FILE, clock)
    world = World()
    ingest = Ingest(database, world, clock, policy)
    try:
        await ingest.load()
        ingest.start()
        if HOST not in world.targets:
            await ingest.submit(AddTarget(Target(HOST, TargetKind.LOCAL, is_default=True)))
        yield Core(database, world, ingest, clock, Intake(Registry.load(), clock, lambda _: HOST))
    finally:
        await ingest.stop()
        await database.close()


async def end(task: asyncio.Task[Any]) -> None:
    """Cancelled until it is over; that once is enough is for tests/unit/observe/test_stopping.py to say."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)


def rows(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    """Read beside the daemon, straight from the file."""
    with contextlib.closing(sqlite3.connect(directory / DATABASE_FILE)) as connection:
        return connection.execute(sql).fetchall()


def an_observer_of(
    core: Core, target: Target, executor: Executor, *, is_known: bool = False, allowance: Allowance | None = None
) -> Observer:
    async def unheard(_: TargetId) -> None:
        return None

    return Observer(
        target,
        executor,
        core.ingest,
        core.world,
        Registry.load(),
        core.clock,
        on_health=unheard,
        health_policy=HealthPolicy(),
        limits=Limits(),
        policy=POLICY,
        is_known=is_known,
        allowance=allowance,
    )
