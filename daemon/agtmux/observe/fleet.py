"""The targets that are watched: one observer with one probe each, here or at the end of an SSH connection.

What a target's probe reports is about that target, or about another tmux server of the same account on the same
machine. It can say nothing about any other, and ask for nothing but what agents there ask through their bridges.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.health import HealthPolicy
from agtmux.domain.limits import Limits
from agtmux.domain.panes import CHAT, HOST, Target, TargetKind
from agtmux.domain.refs import is_ssh_target, is_target_name
from agtmux.domain.runtimes import PaneId, TargetId
from agtmux.domain.states import Health
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.transitions import Policy
from agtmux.observe.allowances import Allowance
from agtmux.observe.files import Files
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import HOOK_TYPE, Intake
from agtmux.observe.observer import Observer
from agtmux.observe.submissions import AddTarget, RemoveTarget
from agtmux.observe.supervisor import Supervisor
from agtmux.observe.world import World
from agtmux.probe import tmux
from agtmux.targets.bridges import Channel
from agtmux.targets.executor import Known, ProbeExecutor
from agtmux.targets.link import Line
from agtmux.targets.local import open_local
from agtmux.targets.messages import Grown, Hook, Notice, PaneRow, SessionFile, Stirred, Woken, refused

_log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_LOOK: Final = 2.0
# Since the start: how long the first answers wait for the first look at every target.
_FIRST_ANSWER: Final = 3.0
# A connection, a probe that starts, and a look.
_CONNECT_LIMIT: Final = 15.0
# A hostile machine must not fill the log.
_TELL_REFUSALS_EVERY: Final = 60.0
# Of a hook's report: what it says itself, and what stands for a payload that is left out. It is no JSON, like one that
# was cut short.
_LONGEST_FACTS: Final = 4_096
_LEFT_OUT: Final = "(left out)"


@dataclass(frozen=True, slots=True)
class _Watch:
    target: Target
    executor: ProbeExecutor
    observer: Observer
    task: asyncio.Task[None]
    # Of what another machine says; what this one does is its user's own.
    allowance: Allowance | None


class Fleet:
    def __init__(
        self,
        world: World,
        ingest: Ingest,
        registry: Registry,
        clock: Clock,
        supervisor: Supervisor,
        *,
        on_events: Callable[[list[Event]], Awaitable[object]],
        on_refusal: Callable[[AgtmuxError], None],
        on_health: Callable[[TargetId], Awaitable[None]],
        health_policy: HealthPolicy,
        limits: Limits,
        policy: Policy,
    ) -> None:
        self._policy = policy
        self._world = world
        self._ingest = ingest
        self._registry = registry
        self._clock = clock
        self._supervisor = supervisor
        self._on_events = on_events
        self._on_refusal = on_refusal
        self._on_health = on_health
        self._health_policy = health_policy
        self._limits = limits
        self._watches: dict[TargetId, _Watch] = {}
        # Of this machine's tmux servers, to the target that watches each.
        self._sockets: dict[str, TargetId] = {}
        self._refused_at: dict[TargetId, float] = {}
        self._changing = asyncio.Lock()
        # Those that the first answers wait for, and until when.
        self._first: list[Observer] = []
        self._answer_by = 0.0
        # By the account they are in; empty for this one.
        self._files: dict[str, Files] = {}
        # Called with a target whose tmux server is seen for the first time.
        self.on_server: list[Callable[[TargetId], None]] = []
        # Called before a target is removed, while it may still be reached; with what of ours stays there, in sentences.
        self.on_remove: list[Callable[[Target], Awaitable[list[str]]]] = []
        # Called with what panes with agents show, of those where it has changed.
        self.on_screens: list[Callable[[TargetId, dict[PaneId, str]], None]] = []
        # Called when a target cannot be looked at, can be again, or fails for another reason.
        self.on_errors: list[Callable[[], None]] = []
        # Called with files of a target's account that have grown, of those that are followed.
        self.on_grown: list[Callable[[TargetId, list[str]], None]] = []
        # Serves a bridge of an agent on another machine, to its end.
        self.on_bridge: Callable[[Target, Channel], Awaitable[None]] | None = None

    async def start(self) -> None:
        """All that are known. Whoever started the daemon to ask it wants to know what is there."""
        if HOST not in self._world.targets:
            await self._ingest.submit(AddTarget(Target(HOST, TargetKind.LOCAL, is_default=True)))
        watched = [target for target in self._world.targets.values() if target.kind is not TargetKind.CHAT]
        # What an earlier daemon knew of them is remembered until they were looked at.
        self._world.opened_at = self._clock.now()
        self._world.unobserved = {target.target_id for target in watched}
        for target in watched:
            self._watch(target, is_known=True)
        self._first = [watch.observer for watch in self._watches.values()]
        self._answer_by = asyncio.get_running_loop().time() + _FIRST_ANSWER
        # Another machine may take its time, and the daemon does not wait for it to be asked at all.
        here = [watch for watch in self._watches.values() if watch.target.kind is TargetKind.LOCAL]
        looks = [asyncio.create_task(watch.observer.has_looked.wait()) for watch in here]
        _, late = await asyncio.wait(looks, timeout=_FIRST_LOOK)
        for look in late:
            look.cancel()

    async def first_answers(self) -> None:
        """Return once every target that was known at the start was looked at or could not be; within seconds of the
        start, whatever they do. Before that, nobody can say who needs anybody."""
        if not self._first:
            return
        late = [observer for observer in self._first if not observer.has_answered.is_set()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._answer_by):
                for observer in late:
                    await observer.has_answered.wait()
        self._first = []

    async def add(self, target: Target) -> Target:
        _check(target)
        async with self._changing:
            existing = self._world.targets.get(target.target_id)
            if existing is not None:
                if _place(existing) == _place(target):
                    return existing
                raise AgtmuxError(
                    ErrorCode.TARGET_EXISTS, f"a target {target.target_id} exists already; remove it first"
                )
            for other in self._world.targets.values():
                if _place(other) == _place(target):
                    raise AgtmuxError(
                        ErrorCode.TARGET_EXISTS, f"that tmux server is watched already, as {other.target_id}"
                    )
            await self._ingest.submit(AddTarget(target))
            self._watch(target)
        return target

    async def remove(self, name: str) -> list[str]:
        """Returns what there is to say about it."""
        target_id = TargetId(name)
        async with self._changing:
            if target_id not in self._world.targets:
                raise _not_found(name)
            if target_id == HOST:
                raise AgtmuxError(ErrorCode.USAGE, "the target host is built in and cannot be removed")
            if self._world.targets[target_id].kind is TargetKind.CHAT:
                raise AgtmuxError(ErrorCode.USAGE, f"the target {CHAT} goes with the last chat session; stop that")
            target = self._world.targets[target_id]
            told = [sentence for leave in self.on_remove for sentence in await leave(target)]
            await self._ingest.submit(RemoveTarget(target_id))
            # Only now: had the store refused, the target would still have to be looked at.
            if (watch := self._watches.get(target_id)) is not None:
                watch.task.cancel()
                await asyncio.gather(watch.task, return_exceptions=True)
        return told

    async def connect(self, name: str) -> Target:
        """Look at the target now, until it counts as well again; raises what keeps it from being looked at."""
        watch = self._watches.get(TargetId(name))
        if watch is None:
            raise _not_found(name)
        try:
            async with asyncio.timeout(_CONNECT_LIMIT):
                for _ in range(self._health_policy.successes_to_ok):
                    await watch.observer.looked()
                    if watch.observer.error is not None or self._is_well(watch.target.target_id):
                        break
        except TimeoutError:
            raise AgtmuxError(
                ErrorCode.TARGET_UNREACHABLE, f"{name} did not answer within {_CONNECT_LIMIT:.0f} seconds"
            ) from None
        if watch.observer.error is not None:
            raise watch.observer.error
        return self._world.targets.get(watch.target.target_id, watch.target)

    def _is_well(self, target_id: TargetId) -> bool:
        """Or gone, as a target of passage may be by now."""
        target = self._world.targets.get(target_id)
        return target is None or target.health is Health.OK

    def check_reachable(self, target_id: TargetId) -> None:
        """Raises AgtmuxError(E_TARGET_UNREACHABLE) while nothing is known of what runs there now."""
        watch = self._watches.get(target_id)
        if watch is None:
            # Chat sessions connect by themselves.
            return
        if watch.observer.error is not None:
            error = watch.observer.error
            raise AgtmuxError(ErrorCode.TARGET_UNREACHABLE, error.message, error.details)
        if not watch.executor.is_reachable:
            raise AgtmuxError(
                ErrorCode.TARGET_UNREACHABLE,
                f"{target_id}: it is not connected; `agtmux target connect {target_id}` tries now",
                {"target": target_id},
            )

    def executor(self, name: str) -> ProbeExecutor:
        """The way to a target's probe, for what is no look."""
        watch = self._watches.get(TargetId(name))
        if watch is None:
            raise _not_found(name)
        return watch.executor

    async def run(self, target_id: TargetId, errand: dict[str, Any], kind: type[T], limit: float | None = None) -> T:
        """Have something done there; raises AgtmuxError. `limit` is for what takes longer than usual."""
        watch = self._watches.get(target_id)
        if watch is None:
            raise _not_found(target_id)
        return await watch.executor.run(errand, kind, limit)

    def follow(self, target_id: TargetId, paths: list[str]) -> None:
        """Be told when one of these files grows there."""
        if (watch := self._watches.get(target_id)) is not None:
            watch.executor.follow(paths)

    def pane(self, target_id: TargetId, pane_id: PaneId) -> PaneRow | None:
        """As it was last seen."""
        watch = self._watches.get(target_id)
        return None if watch is None else watch.executor.pane(pane_id)

    def look_at(self, target_id: TargetId) -> None:
        if target_id in self._watches:
            self._watches[target_id].observer.look_now()

    def error_of(self, target_id: TargetId) -> dict[str, str] | None:
        """What keeps a target from being looked at."""
        watch = self._watches.get(target_id)
        error = watch.observer.error if watch is not None else None
        return None if error is None else {"code": str(error.code), "message": error.message}

    def mend_of(self, target_id: TargetId) -> str:
        """The command that mends it, where one does; empty otherwise."""
        watch = self._watches.get(target_id)
        error = watch.observer.error if watch is not None else None
        return "" if error is None else str(error.details.get("mend", ""))

    def warning_of(self, target_id: TargetId) -> str | None:
        """What works less well than it could."""
        watch = self._watches.get(target_id)
        if watch is None:
            return None
        if watch.observer.lacks_server and watch.target.tmux_socket and watch.target.kind is TargetKind.LOCAL:
            socket = watch.target.tmux_socket
            return (
                f"no tmux server answers on {'-S' if '/' in socket else '-L'} {socket}; one that starts there is seen"
            )
        complaint = watch.executor.complaint
        return f"hooks there are not heard: {complaint}" if complaint else None

    def excess_of(self, target_id: TargetId) -> str | None:
        """What it has, or reports, more of than is taken in."""
        watch = self._watches.get(target_id)
        return None if watch is None else watch.observer.excess()

    def known_of(self, target_id: TargetId) -> Known | None:
        """What its last look told of its machine; None before the first."""
        watch = self._watches.get(target_id)
        return watch.executor.known if watch is not None else None

    def errors(self) -> list[dict[str, str]]:
        """The same of all that have one."""
        found = ((target_id, self.error_of(target_id)) for target_id in sorted(self._watches))
        return [{"target": target_id, **error} for target_id, error in found if error is not None]

    def listing_errors(self) -> list[dict[str, str]]:
        """What a listing lacks: targets that cannot be looked at, and those that were not yet since the start."""
        errors = self.errors()
        failed = {error["target"] for error in errors}
        code = str(ErrorCode.TARGET_UNREACHABLE)
        why = "not looked at yet since agtmuxd started; its panes are as an earlier agtmuxd left them"
        late = [each for each in self._watches if each in self._world.unobserved and each not in failed]
        return errors + [{"target": each, "code": code, "message": f"{each}: {why}"} for each in sorted(late)]

    def _errors_changed(self) -> None:
        for hear in self.on_errors:
            hear()

    def local_target_at(self, socket_path: str) -> TargetId | None:
        """Which target watches the tmux server at that socket of this machine."""
        if "\0" in socket_path:
            return None
        return self._sockets.get(os.path.realpath(socket_path))

    def _watch(self, target: Target, *, is_known: bool = False) -> None:
        is_ssh = target.kind is TargetKind.SSH
        allowance = Allowance() if is_ssh else None
        executor = ProbeExecutor(
            target,
            partial(_open_ssh, target.connection_ref, self._limits) if is_ssh else open_local,
            limits=self._limits,
            # The daemon has a door of its own for the hooks of this machine, and one probe sees its files.
            hooks=is_ssh,
            session_files=self._registry.session_files if is_ssh or target.target_id == HOST else [],
            on_notice=lambda notice: self._hear(target, notice),
            on_refusal=lambda error: self._refuse(target, error),
            on_end=lambda: self._line_ended(target, observer),
            on_server=lambda: self._server_began(target.target_id),
            on_bridge=(lambda channel: self._serve_bridge(target, channel)) if is_ssh else None,
            admit=lambda hook: hook if allowance is None else _admitted(hook, allowance),
        )
        observer = Observer(
            target,
            executor,
            self._ingest,
            self._world,
            self._registry,
            self._clock,
            on_health=self._on_health,
            health_policy=self._health_policy,
            limits=self._limits,
            policy=self._policy,
            files=self._files_beside(target),
            is_known=is_known,
            allowance=allowance,
        )
        observer.on_screens = lambda screens: self._showed(target.target_id, screens)
        observer.on_error = self._errors_changed
        task = self._supervisor.spawn(observer.run, f"observer-{target.target_id}")
        task.add_done_callback(lambda ended: self._watched(target.target_id, ended))
        self._watches[target.target_id] = _Watch(target, executor, observer, task, allowance)
        self._find_sockets()

    def reported(self, keys: Iterable[tuple[TargetId, PaneId]], _: Timestamp) -> None:
        """What is known of these panes has changed."""
        for target_id, pane_id in keys:
            if (watch := self._watches.get(target_id)) is not None:
                watch.observer.reported(pane_id)

    def _files_beside(self, target: Target) -> Files:
        """What agents write on that target's machine and account."""
        return self._files.setdefault(target.connection_ref, Files(self._registry, self._clock))

    def screen(self, target_id: TargetId, pane_id: PaneId) -> str | None:
        """What that pane showed last."""
        watch = self._watches.get(target_id)
        return None if watch is None else watch.observer.screens.get(pane_id)

    def _showed(self, target_id: TargetId, screens: dict[PaneId, str]) -> None:
        for hear in self.on_screens:
            try:
                hear(target_id, screens)
            except Exception:
                # It is told in the middle of a look, which must not fail over it.
                _log.exception("what %s shows could not be told of", target_id)

    def _line_ended(self, target: Target, observer: Observer) -> None:
        if target.kind is TargetKind.SSH or target.target_id == HOST:
            self._files_beside(target).forget()
        observer.stirred()

    def _watched(self, target_id: TargetId, task: asyncio.Task[None]) -> None:
        """Removed, or gone by itself as a target of passage does."""
        if target_id in self._watches and self._watches[target_id].task is task:
            del self._watches[target_id]
            self._find_sockets()

    def _server_began(self, target_id: TargetId) -> None:
        for hear in self.on_server:
            try:
                hear(target_id)
            except Exception:
                # It is told in the middle of a look, which must not fail over it.
                _log.exception("a new tmux server of %s could not be told of", target_id)

    async def _serve_bridge(self, target: Target, channel: Channel) -> None:
        if self.on_bridge is not None:
            await self.on_bridge(target, channel)

    def _find_sockets(self) -> None:
        local = (watch.target for watch in self._watches.values() if watch.target.kind is TargetKind.LOCAL)
        self._sockets = {tmux.socket_path(target.tmux_socket): target.target_id for target in local}

    async def _hear(self, target: Target, notice: Notice) -> None:
        watch = self._watches.get(target.target_id)
        if watch is None:
            return
        if isinstance(notice, Hook):
            await self._take(target, notice)
        elif isinstance(notice, Stirred):
            watch.observer.stirred()
        elif isinstance(notice, Woken):
            watch.observer.woken()
        elif isinstance(notice, Grown):
            for hear in self.on_grown:
                hear(target.target_id, notice.paths)
        elif isinstance(notice, SessionFile) and self._files_beside(target).hear(notice):
            # One probe sees the files of this machine, whichever of its tmux servers they are about.
            for each in self._watches.values():
                if each.target.connection_ref == target.connection_ref:
                    each.observer.woken()

    async def _take(self, target: Target, hook: Hook) -> None:
        try:
            events = self._read(target, hook)
            watch = self._watches.get(target.target_id)
            if watch is not None and watch.allowance is not None:
                events = watch.allowance.take(events, time.monotonic())
            if events:
                await self._on_events(events)
        except AgtmuxError as error:
            self._refuse(target, error)

    def _read(self, target: Target, hook: Hook) -> list[Event]:
        """What a target's hooks say; raises for the first event that is about anything but that target."""
        intake = Intake(self._registry, self._clock, lambda socket: self._target_beside(target, socket))
        if hook.type.startswith(HOOK_TYPE):
            return [intake.hook(hook.body.encode(), lambda: hook.lineage)]
        taken, _ = intake.envelopes(hook.body.encode())
        events = []
        for each in taken:
            if isinstance(each, AgtmuxError):
                raise each
            if each.runtime_id is not None:
                key = self._world.by_runtime.get(each.runtime_id)
                whose = key[0] if key is not None else None
            else:
                whose = each.target_id
            if whose != target.target_id:
                raise refused("it reports about another target, or about a runtime that is not its own")
            events.append(each)
        return events

    def _target_beside(self, target: Target, socket_path: str) -> TargetId:
        """Which tmux server of that account a hook comes from: each has a target and a probe of its own."""
        for watch in self._watches.values():
            begun = watch.executor.begun
            is_beside = watch.target.connection_ref == target.connection_ref
            if is_beside and begun is not None and socket_path in begun.sockets:
                return watch.target.target_id
        # The pid of the server, which the hook tells too, keeps it from being taken for this one's if it is not.
        return target.target_id

    def _refuse(self, target: Target, error: AgtmuxError) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._refused_at.get(target.target_id, -math.inf) > _TELL_REFUSALS_EVERY:
            self._refused_at[target.target_id] = now
            _log.warning("refused what %s reports: %s", target.target_id, error.message)
        self._on_refusal(error)


def _admitted(hook: Hook, allowance: Allowance) -> Hook | None:
    """What is taken in of a report. Where there is too much to read, what the hook says itself, without what the agent
    gave it: an agent that waits is then still known to wait, with less confidence."""
    if allowance.reads(len(hook.body), time.monotonic()):
        return hook
    facts, _, _ = hook.body[:_LONGEST_FACTS].partition("\n")
    if not hook.type.startswith(HOOK_TYPE) or len(facts) == _LONGEST_FACTS:
        return None
    return Hook(hook.type, f"{facts}\n{_LEFT_OUT}", hook.lineage)


async def _open_ssh(ssh_target: str, limits: Limits) -> Line:
    # Takes a fifth of a second, and many have no such target. In a thread, as nobody else is to wait for it.
    await asyncio.to_thread(importlib.import_module, "agtmux.targets.ssh")
    from agtmux.targets.ssh import open_ssh

    return await open_ssh(ssh_target, limits)


def _check(target: Target) -> None:
    name = target.target_id
    if not is_target_name(name):
        raise AgtmuxError(ErrorCode.USAGE, f"{name[:64]!r} is no target name; use letters, digits, . _ and -")
    if name == CHAT or target.kind is TargetKind.CHAT:
        raise AgtmuxError(ErrorCode.USAGE, f"the target {CHAT} is that of chat sessions and comes with them")
    if ":" in target.connection_ref.removeprefix("ssh://").rpartition("@")[0]:
        # Not told again: it would stand in a terminal and in a log.
        raise AgtmuxError(ErrorCode.USAGE, "a password has no place in an ssh target; give a host or user@host")
    if target.kind is TargetKind.SSH and not is_ssh_target(target.connection_ref):
        raise AgtmuxError(
            ErrorCode.USAGE, f"{target.connection_ref[:64]!r} is no host as ssh takes it; give a host or user@host"
        )
    if target.kind is TargetKind.LOCAL and target.connection_ref:
        raise AgtmuxError(ErrorCode.USAGE, "a local target has no ssh target; say --kind ssh if it is one")
    if target.tmux_socket.startswith("-") or not target.tmux_socket.isprintable() or len(target.tmux_socket) > 1_024:
        raise AgtmuxError(ErrorCode.USAGE, f"{target.tmux_socket[:64]!r} is no name and no path of a tmux socket")


def _place(target: Target) -> tuple[str, str]:
    if target.kind is TargetKind.LOCAL:
        return "", tmux.socket_path(target.tmux_socket)
    return target.connection_ref, target.tmux_socket


def _not_found(name: str) -> AgtmuxError:
    return AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {name[:64]!r}")
