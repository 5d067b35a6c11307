"""The composition root: the one place where the parts are wired together, and what the API may ask of them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from agtmux import __version__
from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.refs import is_target_name
from agtmux.domain.runtimes import TargetId
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.hook import spool_reader
from agtmux.observe import views
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import Intake
from agtmux.observe.observer import Observer
from agtmux.observe.reconciler import Reconciler
from agtmux.observe.streams import Hub
from agtmux.observe.submissions import AddTarget, Receipt, RemoveTarget
from agtmux.observe.world import World
from agtmux.probe import tmux
from agtmux.store.database import DATABASE_FILE, Database
from agtmux.store.retention import Retention, forget
from agtmux.targets.local import LocalExecutor

_log = logging.getLogger(__name__)

_SPOOL_EVERY: Final = 5.0
_FIRST_LOOK: Final = 2.0
_BEGIN_AGAIN: Final = 5.0
_CONNECT_LIMIT: Final = 10.0
_FORGET_EVERY: Final = 3600.0


class Service:
    """A running agtmux, without its doors. Build it with `open`, end it with `close`."""

    def __init__(self, state_directory: Path, config: Config, clock: Clock, database: Database) -> None:
        self._state_directory = state_directory
        self._config = config
        self.clock = clock
        self.database = database
        self.world = World()
        self.registry = Registry.load()
        policy = config.policy()
        self.ingest = Ingest(database, self.world, clock, policy)
        self.intake = Intake(self.registry, clock, self._target_at)
        self.hub = Hub(self.world, clock)
        self.ingest.on_change.append(self.hub.publish)
        self.ingest.on_pending.append(self._look_at)
        self._reconciler = Reconciler(self.world, self.ingest, clock, policy)
        self._observers: dict[TargetId, tuple[Observer, asyncio.Task[None]]] = {}
        self._sockets: dict[str, TargetId] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._started_at = clock.now()
        self._changing_targets = asyncio.Lock()
        self._failures: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.spool: Counter[str] = Counter()

    @classmethod
    async def open(cls, state_directory: Path, config: Config, clock: Clock) -> Service:
        database = await Database.open(state_directory / DATABASE_FILE, clock)
        try:
            service = cls(state_directory, config, clock, database)
        except BaseException:
            # Its threads would keep the process alive for ever.
            await database.close()
            raise
        try:
            await service._start()
        except BaseException:
            await service.close()
            raise
        return service

    async def _start(self) -> None:
        if self.database.notice:
            _log.warning(self.database.notice)
        await self.ingest.load()
        self._started_at = self.clock.now()
        self.ingest.start()
        if HOST not in self.world.targets:
            await self.ingest.submit(AddTarget(Target(HOST, TargetKind.LOCAL, is_default=True)))
        self._find_sockets()
        for target in self.world.targets.values():
            self._observe(target, is_known=True)
        # First who is there now: what hooks had to keep may be of somebody who is there no more.
        await self._first_look()
        try:
            # Twice if an earlier daemon was killed over it: what it had taken aside comes first.
            if await self._drain_spool():
                await self._drain_spool()
            await self._reconciler.catch_up()
        except AgtmuxError as error:
            _log.warning("what happened meanwhile has to wait: %s", error.message)
        self._spawn(self._reconciler.run, "reconciler")
        self._spawn(self._housekeeping, "housekeeping")

    async def _first_look(self) -> None:
        """Whoever started the daemon to ask it wants to know what is there, not that it has not looked yet."""
        looks = [asyncio.create_task(observer.has_looked.wait()) for observer, _ in self._observers.values()]
        _, late = await asyncio.wait(looks, timeout=_FIRST_LOOK)
        for look in late:
            look.cancel()

    async def close(self) -> None:
        """Nothing new is taken in, what was taken is flushed, streams end with `reset`."""
        self.hub.close()
        running = [task for _, task in self._observers.values()] + self._tasks
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        try:
            await self.ingest.stop()
        finally:
            # Its threads would keep the process alive for ever.
            await self.database.close()

    async def take(self, events: list[Event]) -> list[Receipt]:
        """Events from outside, each with its receipt, in order and durable."""
        placed = [event for event in events if _has_place(event)]
        receipts = iter(await self.ingest.submit(tuple(placed)) if placed else [])
        homeless = Receipt("", "dropped_unbound", reason_code=Reason.BIND_NO_CANDIDATE)
        result = []
        for event in events:
            if _has_place(event):
                result.append(next(receipts))
            else:
                # Not from a tmux that is watched: there is no pane it could belong to.
                self.ingest.counts[homeless.status] += 1
                result.append(Receipt(event.event_id, homeless.status, reason_code=homeless.reason_code))
        return result

    async def add_target(self, name: str, kind: str, tmux_socket: str, ephemeral: bool) -> Target:
        if not is_target_name(name):
            raise AgtmuxError(ErrorCode.USAGE, f"{name[:64]!r} is no target name; use letters, digits, . _ and -")
        if kind != TargetKind.LOCAL:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"targets of kind {kind[:32]!r} are not supported yet")
        target = Target(TargetId(name), TargetKind.LOCAL, tmux_socket=tmux_socket, is_ephemeral=ephemeral)
        async with self._changing_targets:
            existing = self.world.targets.get(target.target_id)
            if existing is not None:
                if existing.tmux_socket == tmux_socket:
                    return existing
                raise AgtmuxError(ErrorCode.TARGET_EXISTS, f"a target {name} exists already; remove it first")
            watched_by = self._target_at(tmux.socket_path(tmux_socket))
            if watched_by is not None:
                raise AgtmuxError(ErrorCode.TARGET_EXISTS, f"that tmux server is watched already, as {watched_by}")
            await self.ingest.submit(AddTarget(target))
            self._find_sockets()
            self._observe(target)
        return target

    async def remove_target(self, name: str) -> None:
        target_id = TargetId(name)
        async with self._changing_targets:
            if target_id not in self.world.targets:
                raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {name[:64]!r}")
            if target_id == HOST:
                raise AgtmuxError(ErrorCode.USAGE, "the target host is built in and cannot be removed")
            await self.ingest.submit(RemoveTarget(target_id))
            # Only now: had the store refused, the target would still have to be looked at.
            if target_id in self._observers:
                self._observers.pop(target_id)[1].cancel()
            self._find_sockets()

    async def connect_target(self, name: str) -> Target:
        """Look at the target now; raises what keeps it from being looked at."""
        target = self.world.targets.get(TargetId(name))
        entry = self._observers.get(TargetId(name))
        if target is None or entry is None:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {name[:64]!r}")
        observer = entry[0]
        observer.has_looked.clear()
        observer.look_now()
        try:
            await asyncio.wait_for(observer.has_looked.wait(), _CONNECT_LIMIT)
        except TimeoutError:
            raise AgtmuxError(
                ErrorCode.TARGET_UNREACHABLE, f"{name} did not answer within {_CONNECT_LIMIT:.0f} seconds"
            ) from None
        if observer.error is not None:
            raise observer.error
        return target

    def target_errors(self) -> list[dict[str, Any]]:
        """What keeps a target from being looked at, one entry for each that is."""
        return [
            {"target": target_id, "code": str(observer.error.code), "message": observer.error.message}
            for target_id, (observer, _) in sorted(self._observers.items())
            if observer.error is not None
        ]

    def health(self) -> dict[str, Any]:
        errors = {error["target"]: error for error in self.target_errors()}
        targets = [
            {"name": target_id, "health": target.health.value, "error": errors.get(target_id)}
            for target_id, target in self.world.targets.items()
        ]
        degraded = self.database.writer.last_failed or bool(errors) or bool(self._failures)
        now = self.clock.now()
        return {
            "schema_version": views.SCHEMA_VERSION,
            "generated_at": format_timestamp(now),
            "status": "degraded" if degraded else "ok",
            "version": __version__,
            "pid": os.getpid(),
            "uptime_seconds": (now - self._started_at) // SECOND,
            "state_directory": str(self._state_directory),
            "database": {
                "notice": self.database.notice,
                "commits": self.database.writer.commits,
                "failed_commits": self.database.writer.failures,
            },
            "clock": {"jumps": self.clock.jumps, "ahead_seconds": self.clock.lead // SECOND},
            "events": dict(self.ingest.counts),
            "pending_bind": len(self.world.pending),
            "refused": dict(self.refusals),
            "spool": dict(self.spool),
            "streams": self.hub.stream_count,
            "failures": dict(self._failures),
            "targets": targets,
        }

    def _target_at(self, socket_path: str) -> TargetId | None:
        return None if "\0" in socket_path else self._sockets.get(os.path.realpath(socket_path))

    def _find_sockets(self) -> None:
        local = (target for target in self.world.targets.values() if target.kind is TargetKind.LOCAL)
        self._sockets = {tmux.socket_path(target.tmux_socket): target.target_id for target in local}

    def _observe(self, target: Target, *, is_known: bool = False) -> None:
        executor = LocalExecutor(target)
        observer = Observer(
            target,
            executor,
            self.ingest,
            self.registry,
            self.clock,
            on_health=self._reconciler.health_changed,
            health_policy=self._config.health_policy(),
            is_known=is_known,
        )
        name = f"observer-{target.target_id}"
        task = asyncio.create_task(self._keep_going(observer.run, name), name=name)
        task.add_done_callback(lambda ended: self._observed(target.target_id, ended))
        self._observers[target.target_id] = (observer, task)

    def _observed(self, target_id: TargetId, task: asyncio.Task[None]) -> None:
        """An observer ends by itself when its target was one of passage."""
        if target_id in self._observers and self._observers[target_id][1] is task:
            del self._observers[target_id]
            self._find_sockets()

    def _look_at(self, target_id: TargetId) -> None:
        if target_id in self._observers:
            self._observers[target_id][0].look_now()

    def _spawn(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        self._tasks.append(asyncio.create_task(self._keep_going(work, name), name=name))

    async def _keep_going(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Until it is done or cancelled: what fails is logged, shown in `health`, and begun again."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                self._failures[name] += 1
                _log.error("%s failed and is begun again", name, exc_info=error)
                await asyncio.sleep(_BEGIN_AGAIN)

    async def _housekeeping(self) -> None:
        retention = Retention(
            payload=parse_duration(self._config.retention.payload),
            metadata=parse_duration(self._config.retention.metadata),
        )
        forgotten_at: Timestamp | None = None
        while True:
            now = self.clock.now()
            try:
                if forgotten_at is None or now - forgotten_at > _FORGET_EVERY * SECOND:
                    forgotten_at = now
                    await forget(self.database, retention, now)
                await self._drain_spool()
            except (AgtmuxError, OSError) as error:
                _log.warning("housekeeping was refused: %s", error)
            await asyncio.sleep(_SPOOL_EVERY)

    async def _drain_spool(self) -> bool:
        """Take in what hooks had to keep; False when there was nothing."""
        try:
            drained = await asyncio.to_thread(spool_reader.drain, self._state_directory)
        except OSError as error:
            raise AgtmuxError(ErrorCode.STORE, f"the spool cannot be read: {error}") from None
        if not (drained.records or drained.dropped or drained.damaged):
            return False
        outcomes: Counter[str] = Counter(dropped=drained.dropped, damaged=drained.damaged)
        events = []
        for record in drained.records:
            try:
                events.append(self.intake.spooled(record))
            except AgtmuxError as error:
                self.refusals[error.code] += 1
        outcomes["ingested"] = len(events)
        await self._take_spooled(events)
        try:
            spool_reader.finish(self._state_directory)
        except OSError as error:
            raise AgtmuxError(ErrorCode.STORE, f"the spool cannot be emptied: {error}") from None
        self.spool.update(outcomes)
        return True

    async def _take_spooled(self, events: list[Event]) -> None:
        """All at once; one by one if that fails, as a bad one must not hold up the others at every start."""
        try:
            await self.take(events)
        except AgtmuxError as error:
            if error.code is not ErrorCode.INTERNAL:
                raise
            if len(events) == 1:
                self.refusals[error.code] += 1
                return
            for event in events:
                await self._take_spooled([event])


def _has_place(event: Event) -> bool:
    return event.runtime_id is not None or (event.target_id is not None and event.pane_id is not None)
