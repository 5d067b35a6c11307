"""The composition root: the one place where the parts are wired together, and what the API may ask of them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from agtmux import __version__, paths
from agtmux.actions.answers import answer
from agtmux.actions.attach import attach
from agtmux.actions.decisions import Decisions, Form
from agtmux.actions.desk import Desk
from agtmux.actions.history import History
from agtmux.actions.kill import kill
from agtmux.actions.ledger import Ledger
from agtmux.actions.output import view_output
from agtmux.actions.send import send
from agtmux.actions.typing import Typist
from agtmux.agents.registry import AGENTS_FOLDER, Registry
from agtmux.bridge.registrar import Registrar
from agtmux.bridge.tools import Desk as Tools
from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.doctor.checks import examine
from agtmux.doctor.facts import AgentBridge, AgentHooks, Daemon, Facts
from agtmux.doctor.here import agent_versions, installed_versions, look_here, other_servers, read_bridges, read_hooks
from agtmux.doctor.watched import agent_panes, running_versions, unknown_panes, watched_targets
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import Runtime, TargetId
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.engine.resolve import Signal
from agtmux.hook import spool_reader
from agtmux.observe import views
from agtmux.observe.fleet import Fleet
from agtmux.observe.hooking import Hooks
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import Intake
from agtmux.observe.reconciler import Reconciler
from agtmux.observe.streams import Hub
from agtmux.observe.submissions import Receipt
from agtmux.observe.supervisor import Supervisor
from agtmux.observe.world import World
from agtmux.store.adapters import AdapterRow, note_adapters
from agtmux.store.database import DATABASE_FILE, Database
from agtmux.store.retention import Retention, forget

_log = logging.getLogger(__name__)

_SPOOL_EVERY: Final = 5.0
_FORGET_EVERY: Final = 3600.0


class Service:
    """A running agtmux, without its doors. Build it with `open`, end it with `close`."""

    def __init__(self, state_directory: Path, config: Config, clock: Clock, database: Database) -> None:
        self._state_directory = state_directory
        self._config = config
        self.clock = clock
        self.database = database
        self.world = World()
        self.registry = Registry.load(Path(paths.config_file()).parent / AGENTS_FOLDER)
        policy = config.policy()
        self.ingest = Ingest(database, self.world, clock, policy)
        self.hub = Hub(self.world, clock)
        self.decisions = Decisions(self.world, clock, policy, self._form_of)
        self.ingest.on_change += [self.hub.publish, self.decisions.changed]
        self._reconciler = Reconciler(self.world, self.ingest, clock, policy)
        self._supervisor = Supervisor()
        self.refusals: Counter[str] = Counter()
        self.fleet = Fleet(
            self.world,
            self.ingest,
            self.registry,
            clock,
            self._supervisor,
            on_events=self.take,
            on_refusal=lambda error: self.refusals.update([str(error.code)]),
            on_health=self._reconciler.health_changed,
            health_policy=config.health_policy(),
            limits=config.limits(),
            policy=policy,
        )
        self.ingest.on_pending.append(self.fleet.look_at)
        self.ingest.on_change.append(self.fleet.reported)
        self.hooks = Hooks(self.world, self.registry, self.fleet, self._supervisor, state_directory)
        self.registrar = Registrar(self.registry, self.world.targets, state_directory, is_wanted=config.mcp.register)
        self.tools = Tools(self.world, self.registry, self.fleet)
        self.intake = Intake(self.registry, clock, self.fleet.local_target_at)
        self.ledger = Ledger(database)
        typist = Typist(self.fleet, self.registry)
        self.history = History(database)
        kinds = {
            "view-output": view_output(self.fleet),
            "attach": attach(self.fleet, self.world),
            "send": send(typist),
            "kill": kill(typist, self.fleet),
            "approve": answer(self.decisions, self.world, typist, allow=True),
            "deny": answer(self.decisions, self.world, typist, allow=False),
        }
        self.desk = Desk(self.world, self.ledger, clock, kinds)
        self._started_at = clock.now()
        self.spool: Counter[str] = Counter()
        # Events from no tmux server that is watched.
        self.homeless = 0

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
        if unfinished := await self.ledger.settle(self.clock.now()):
            _log.warning("%d actions were under way when the daemon ended; what came of them is not known", unfinished)
        # First who is there now: what hooks had to keep may be of somebody who is there no more.
        await self.fleet.start()
        try:
            # Twice if an earlier daemon was killed over it: what it had taken aside comes first.
            if await self._drain_spool():
                await self._drain_spool()
            await self._reconciler.catch_up()
            await note_adapters(self.database, self._adapters(), self.clock.now())
        except AgtmuxError as error:
            _log.warning("what happened meanwhile has to wait: %s", error.message)
        await self.registrar.start()
        self._supervisor.spawn(self._reconciler.run, "reconciler")
        self._supervisor.spawn(self._housekeeping, "housekeeping")

    def _adapters(self) -> list[AdapterRow]:
        return [
            AdapterRow(each.sheet.name, each.sheet.agent_type, each.contract_version, asdict(each.capabilities))
            for each in self.registry.adapters
        ]

    def end_waits(self) -> None:
        """Requests that last as long as the daemon does come to their end: streams with `reset`, hooks with nothing."""
        self.hub.close()
        self.decisions.close()

    async def close(self) -> None:
        """Nothing new is taken in, what was taken is flushed."""
        self.end_waits()
        await self._supervisor.close()
        try:
            await self.registrar.close()
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
                self.homeless += 1
                result.append(Receipt(event.event_id, homeless.status, reason_code=homeless.reason_code))
        return result

    async def doctor(self, target: str | None, callers_tmux: str, client_version: str) -> dict[str, Any]:
        """What works here and what does not. Nothing waits for a target: what is known of it is told."""
        only = None if target is None else TargetId(target)
        if only is not None and only not in self.world.targets:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {only[:64]!r}")
        here, installed, others, hooks, bridges = await asyncio.gather(
            asyncio.to_thread(look_here, self._state_directory),
            asyncio.to_thread(installed_versions, self.registry),
            asyncio.to_thread(other_servers, lambda path: self.fleet.local_target_at(path) is not None, callers_tmux),
            self._hooks_found(),
            self._bridges_found(),
        )
        panes = agent_panes(self.world, only)
        facts = Facts(
            here=here,
            daemon=self._found(),
            client_version=client_version,
            target=target,
            targets=watched_targets(self.world, self.fleet, only),
            other_servers=others if only in (None, HOST) else (),
            hooks=hooks,
            bridges=bridges,
            wants_bridge=self._config.mcp.register,
            agents=agent_versions(running_versions(panes), installed if only in (None, HOST) else {}, self.registry),
            unknown_panes=unknown_panes(panes),
            agent_panes=Counter(item.identity.target for item in panes),
        )
        return examine(facts, format_timestamp(self.clock.now()))

    async def _hooks_found(self) -> tuple[AgentHooks, ...]:
        if paths.hook_command() is None:
            # That is a finding of its own.
            return ()
        try:
            return read_hooks(await self.hooks.found_here())
        except AgtmuxError as error:
            return (AgentHooks(None, error=error.message),)

    async def _bridges_found(self) -> tuple[AgentBridge, ...]:
        try:
            return read_bridges(await self.registrar.found_here())
        except AgtmuxError as error:
            return (AgentBridge(None, error=error.message),)

    def _found(self) -> Daemon:
        uptime = self.clock.now() - self._started_at
        return Daemon(
            version=__version__,
            pid=os.getpid(),
            started_at=time.time() - uptime / SECOND,
            uptime_seconds=uptime // SECOND,
            database_notice=self.database.notice,
            failed_commits=self.database.writer.failures,
            is_failing=self.database.writer.last_failed,
            clock_ahead_seconds=self.clock.lead // SECOND,
            failures=self._supervisor.failures,
            refused=self.refusals,
            spool=self.spool,
            homeless=self.homeless,
        )

    def _form_of(self, runtime: Runtime, report: Signal) -> Form | None:
        agent_type, _, event = report.event_type.partition(".")
        if agent_type != runtime.agent_type or not self.registry.knows(agent_type):
            return None
        hooks = self.registry.sheet(agent_type).hooks
        return None if hooks is None else hooks.answers_to(event, report.verdict.reason_code, runtime.agent_version)

    def health(self) -> dict[str, Any]:
        errors = {error["target"]: error for error in self.fleet.errors()}
        targets = [
            {"name": target_id, "health": target.health.value, "error": errors.get(target_id)}
            for target_id, target in self.world.targets.items()
        ]
        degraded = self.database.writer.last_failed or bool(errors) or bool(self._supervisor.failures)
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
            "waiting_hooks": self.decisions.waiter_count,
            "failures": dict(self._supervisor.failures),
            "targets": targets,
        }

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
