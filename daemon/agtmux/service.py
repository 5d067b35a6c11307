"""The composition root: the one place where the parts are wired together, and what the API may ask of them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from agtmux import __version__, paths
from agtmux.actions.answers import answer
from agtmux.actions.attach import attach
from agtmux.actions.chats import routed
from agtmux.actions.decisions import Decisions, Form
from agtmux.actions.desk import Desk
from agtmux.actions.history import History
from agtmux.actions.kill import kill
from agtmux.actions.ledger import Ledger
from agtmux.actions.output import view_output
from agtmux.actions.send import send
from agtmux.actions.supported import governed
from agtmux.actions.typing import Typist
from agtmux.agents.registry import AGENTS_FOLDER, Registry
from agtmux.bridge.asker import AskerKind, Askers
from agtmux.bridge.caller import Peer
from agtmux.bridge.registrar import Registrar
from agtmux.bridge.sessions import FarSessions
from agtmux.bridge.tools import Toolbox
from agtmux.bridge.tools.agents import AgentDesk
from agtmux.bridge.tools.launches import LaunchDesk
from agtmux.bridge.tools.mail import MailDesk
from agtmux.clock import Clock
from agtmux.config import Config
from agtmux.conversations.conversations import Conversations
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import CHAT
from agtmux.domain.runtimes import Runtime
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.engine.resolve import Signal
from agtmux.hook import spool_reader
from agtmux.messages.directory import OUTSIDE, Directory
from agtmux.messages.gate import ACTION, Gate
from agtmux.messages.mailbox import Mailbox
from agtmux.messages.policy import Policy as MailPolicy
from agtmux.messages.post import Post, Sender
from agtmux.messages.postman import Postman
from agtmux.messages.team import Timeouts
from agtmux.messages.teams import Teams
from agtmux.observe import views
from agtmux.observe.chats import Chats, Turn
from agtmux.observe.fleet import Fleet
from agtmux.observe.hooking import Hooks
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import Intake
from agtmux.observe.reconciler import Reconciler
from agtmux.observe.streams import Hub
from agtmux.observe.submissions import Receipt, TargetsSeen
from agtmux.observe.supervisor import Supervisor
from agtmux.observe.world import PaneKey, World
from agtmux.store.adapters import AdapterRow, disabled_agents, note_adapters
from agtmux.store.database import DATABASE_FILE, Database
from agtmux.store.retention import Retention, forget, shrink
from agtmux.worktrees.launcher import Launcher
from agtmux.worktrees.launches import Launches
from agtmux.worktrees.order import THE_USER, By, outside
from agtmux.worktrees.stop import stop
from agtmux.worktrees.stopper import Stopper
from agtmux.worktrees.trees import Trees

_log = logging.getLogger(__name__)

_SPOOL_EVERY: Final = 5.0
_FORGET_EVERY: Final = 3600.0


class Service:
    """A running agtmux, without its doors. Build it with `open`, end it with `close`."""

    def __init__(
        self,
        state_directory: Path,
        config: Config,
        clock: Clock,
        database: Database,
        switched_off: Collection[str] = (),
    ) -> None:
        """`switched_off` are the agents whose adapter the database says is not enabled."""
        self.state_directory = self._state_directory = state_directory
        self._config = config
        self.board_settings = config.board
        self.clock = clock
        self.database = database
        self.world = World()
        disabled = {*switched_off, *config.agents.disable}
        self.registry = Registry.load(Path(paths.config_file()).parent / AGENTS_FOLDER, disabled)
        if unknown := sorted(disabled - set(self.registry.disabled)):
            _log.warning("no agent is called %s, which the settings disable", ", ".join(unknown))
        self.world.flags = {name: self.registry.flags(name) for name in self.registry.agent_types}
        policy = config.policy()
        self.ingest = Ingest(database, self.world, clock, policy)
        self.hub = Hub(self.world, clock)
        self.chats = Chats(self.world, self.ingest, self.registry, clock)
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
        self.hub.errors = self.fleet.listing_errors
        self.fleet.on_errors.append(self.hub.errors_changed)
        self.ingest.on_pending.append(self.fleet.look_at)
        self.ingest.on_change.append(self.fleet.reported)
        self.hooks = Hooks(self.world, self.registry, self.fleet, self._supervisor, state_directory)
        self.directory = Directory(self.world, database)
        self.directory.on_change.append(self.hub.publish)
        self.ingest.on_change.append(self.directory.changed)
        self.registrar = Registrar(
            self.registry, self.world.targets, self.fleet, state_directory, setting=config.mcp.register
        )
        self.askers = Askers(self.world, self.registry, self.fleet)
        self._trusts_outside = config.launch.trust_outside
        self.intake = Intake(self.registry, clock, self.fleet.local_target_at)
        self.ledger = Ledger(database)
        typist = Typist(self.fleet, self.registry)
        self.history = History(database)
        self.trees = Trees(self.fleet, self.world, config.launch.worktrees)
        self.conversations = Conversations(
            database,
            self.world,
            self.registry,
            self.fleet,
            self.trees,
            clock,
            parse_duration(config.retention.conversations),
            config.conversations.sources,
        )
        self.chats.on_said.append(self._keep_turn)
        self.conversations.on_session.append(self.hub.publish)
        self.ingest.on_change.append(self.conversations.changed)
        self.ingest.on_events.append(self.conversations.told)
        self.fleet.on_grown.append(self.conversations.grown)
        self.fleet.on_screens.append(self.conversations.showed)
        kinds = {
            "view-output": view_output(self.fleet),
            "attach": attach(self.fleet, self.world),
            "send": send(typist),
            "kill": kill(typist, self.fleet),
            "stop": stop(typist, self.fleet, self.registry, self.trees),
            "approve": answer(self.decisions, self.world, typist, allow=True),
            "deny": answer(self.decisions, self.world, typist, allow=False),
        }
        kinds = routed(self.chats, governed(kinds, self.registry))
        mailbox = Mailbox(database)
        gate = Gate(mailbox, self.world, self.registry, typist, self.chats)
        kinds[ACTION] = gate.kind
        self.desk = Desk(self.world, self.ledger, clock, kinds, self.fleet.check_reachable)
        self.postman = Postman(mailbox, gate, self.world, clock, self._supervisor)
        self.ingest.on_change.append(self.postman.changed)
        mail_policy = MailPolicy(config.mail_limits(), config.messages.deny)
        ttl = parse_duration(config.messages.ttl)
        self.post = Post(self.world, clock, self.directory, mailbox, self.postman, mail_policy, ttl)
        self.launches = Launches(self.world, database, config.launch_limits())
        self.launcher = Launcher(
            self.fleet,
            self.world,
            self.registry,
            self.directory,
            self.trees,
            self.launches,
            self.ledger,
            typist,
            clock,
            parse_duration(config.launch.start_timeout) / SECOND,
        )
        self.ingest.on_change.append(self.launcher.waiting.changed)
        self.stopper = Stopper(self.world, self.fleet, self.desk, self.launches)
        self.post.on_shutdown = self._shut_down
        self.teams = Teams(self.world, clock, database, self.directory, self.post, _timeouts(config))
        # Where roles of teams have settings of their own.
        self.homes = state_directory / "teams"
        self.tools = Toolbox(
            AgentDesk(self.world, self.registry, self.fleet, self.directory),
            MailDesk(self.world, self.post),
            LaunchDesk(self.world, self.directory, self.trees, self.launcher, self.stopper),
        )
        is_registered = self.registrar.elsewhere.is_registered
        self.fleet.on_bridge = FarSessions(self.world, self.registry, self.tools, is_registered).serve
        self._started_at = clock.now()
        self.spool: Counter[str] = Counter()
        # Events from no tmux server that is watched.
        self.homeless = 0

    @classmethod
    async def open(cls, state_directory: Path, config: Config, clock: Clock) -> Service:
        database = await Database.open(state_directory / DATABASE_FILE, clock)
        try:
            service = cls(state_directory, config, clock, database, await disabled_agents(database))
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
        await self.directory.load()
        await self.launches.load(self.clock.now())
        self._started_at = self.clock.now()
        self.ingest.start()
        await self.chats.start()
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
        await self.post.load()
        await self.teams.load()
        await self.postman.start(self.desk)
        await self.conversations.load()
        await self.registrar.start()
        self._supervisor.spawn(self._reconciler.run, "reconciler")
        self._supervisor.spawn(self._housekeeping, "housekeeping")
        self._supervisor.spawn(self.teams.run, "teams")

    def _adapters(self) -> list[AdapterRow]:
        return [
            AdapterRow(each.sheet.name, each.sheet.agent_type, each.contract_version, asdict(each.capabilities))
            for each in self.registry.installed
        ]

    def end_waits(self) -> None:
        """Requests that last as long as the daemon does come to their end: streams with `reset`, hooks with nothing."""
        self.hub.close()
        self.decisions.close()
        self.conversations.end_waits()
        self.post.end_waits()

    async def close(self) -> None:
        """Nothing new is taken in, what was taken is flushed."""
        self.end_waits()
        await self.launcher.close()
        await self.conversations.close()
        await self._supervisor.close()
        try:
            await self.registrar.close()
            await self._note_seen()
            await self.ingest.stop()
        finally:
            # Its threads would keep the process alive for ever.
            await self.database.close()

    async def _note_seen(self) -> None:
        try:
            await self.ingest.submit(TargetsSeen())
        except AgtmuxError as error:
            _log.warning("when targets were last seen is not written down: %s", error.message)

    async def _keep_turn(self, turn: Turn) -> None:
        await self.conversations.add(
            target_id=CHAT,
            agent_type=turn.agent_type,
            session_id=turn.session_id,
            role=turn.role,
            text=turn.content,
            entry_id=turn.entry_id,
            runtime_id=turn.runtime_id,
            cwd=turn.cwd,
            at=turn.at,
        )

    async def _shut_down(self, sender: Sender, key: PaneKey) -> None:
        """A message that asks an agent to end is as good as stopping it, and as guarded."""
        runtime_id = sender.party.runtime_id
        if runtime_id is not None:
            by = By(runtime_id, sender.party.name)
        else:
            by = self.by_outside("it wrote as outside") if sender.party.name == OUTSIDE else THE_USER
        await self.stopper.stop_agent(key, by)

    async def by(self, peer: Peer) -> By:
        """Whose word a request is. What an agent runs in its shell speaks for the agent."""
        asker = await self.askers.find(peer)
        if asker.key is not None:
            runtime = self.world.records[asker.key].runtime
            return By(runtime.runtime_id, self.directory.name(runtime))
        return THE_USER if asker.kind is AskerKind.USER else self.by_outside(asker.why_not)

    def by_outside(self, why_not_user: str) -> By:
        return THE_USER if self._trusts_outside else outside(why_not_user)

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
        """What works here and what does not."""
        # Seldom asked for, and a tenth of what it takes to start.
        from agtmux.doctor.examiner import Examiner
        from agtmux.doctor.facts import Daemon

        now = self.clock.now()
        uptime = now - self._started_at
        daemon = Daemon(
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
        wants_bridge = self.registrar.consent.read().everyone is not False
        examiner = Examiner(
            self.world, self.fleet, self.registry, self.hooks, self.registrar, self._state_directory, wants_bridge
        )
        return await examiner.examine(daemon, now, target, callers_tmux, client_version)

    def _form_of(self, runtime: Runtime, report: Signal) -> Form | None:
        agent_type, _, event = report.event_type.partition(".")
        if agent_type != runtime.agent_type or not self.registry.knows(agent_type):
            return None
        hooks = self.registry.sheet(agent_type).hooks
        return None if hooks is None else hooks.answers_to(event, report.verdict.reason_code, runtime.agent_version)

    def health(self) -> dict[str, Any]:
        errors = {error["target"]: error for error in self.fleet.errors()}
        targets = [
            {
                "name": target_id,
                "health": target.health.value,
                "error": errors.get(target_id),
                "warning": self.fleet.excess_of(target_id) or self.fleet.warning_of(target_id),
            }
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
                "bytes": self.database.size(),
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
            conversations=parse_duration(self._config.retention.conversations),
            most_bytes=self._config.retention.max_bytes,
        )
        forgotten_at: Timestamp | None = None
        while True:
            now = self.clock.now()
            try:
                if forgotten_at is None or now - forgotten_at > _FORGET_EVERY * SECOND:
                    forgotten_at = now
                    await forget(self.database, retention, now)
                    await self.post.mailbox.redact_old()
                    await self.post.mailbox.sweep(now)
                if touched := await shrink(self.database, retention.most_bytes):
                    _log.warning("the database had grown too large; %d of its oldest rows were forgotten", touched)
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


def _timeouts(config: Config) -> Timeouts:
    mail = config.messages
    return Timeouts(
        send=mail.send_timeout, receive=mail.receive_timeout, task=mail.task_timeout, idle=mail.idle_timeout
    )
