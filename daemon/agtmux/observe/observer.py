"""Looks at a target, again and again, and hands on what it saw: sooner when something moves, seldom when not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.health import HealthPolicy, HealthRecord
from agtmux.domain.panes import Pane, SeenPane, Target, Topology
from agtmux.domain.refs import is_pane_id
from agtmux.domain.runtimes import NO_AGENT, BootId, Inhabitant, PaneId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.ingest import Ingest
from agtmux.observe.submissions import HealthChanged, RemoveTarget

_log = logging.getLogger(__name__)

# Seconds between looks: soon after something moved, then ever more seldom, but never longer than it takes a person
# to start an agent and wonder.
_SOONEST: Final = 0.5
_LONGEST_WITH_AGENTS: Final = 1.0
_LONGEST_WITHOUT: Final = 5.0
_SLOWER: Final = 1.5


class Executor(Protocol):
    async def snapshot(self) -> tuple[list[dict[str, str]], dict[int, list[dict[str, Any]]]]: ...


class Observer:
    def __init__(
        self,
        target: Target,
        executor: Executor,
        ingest: Ingest,
        registry: Registry,
        clock: Clock,
        *,
        on_health: Callable[[TargetId], Awaitable[None]],
        health_policy: HealthPolicy,
        is_known: bool = False,
    ) -> None:
        self._target = target
        self._executor = executor
        self._ingest = ingest
        self._registry = registry
        self._clock = clock
        self._on_health = on_health
        self._health_policy = health_policy
        self._health = HealthRecord(target.health)
        self._last: Topology | None = None
        self._wake = asyncio.Event()
        self._must_report = True
        # A target from an earlier daemon had its server then; if that is gone now, it went in between.
        self._seen_server = is_known
        self.error: AgtmuxError | None = None
        # Set once the target has been looked at, or could not be.
        self.has_looked = asyncio.Event()

    def look_now(self) -> None:
        """Somebody waits for what this target looks like: look at once, and say so even if nothing changed."""
        self._must_report = True
        self._wake.set()

    async def run(self) -> None:
        pause = _SOONEST
        while True:
            self._wake.clear()
            # Whoever asks from now on is not answered by the look that is about to begin.
            must_report, self._must_report = self._must_report, False
            longest = _LONGEST_WITHOUT
            try:
                topology = await self._look()
                self.error = None
                await self._note(self._health.succeeded(self._health_policy))
                is_news = self._is_news(topology)
                pause = _SOONEST if is_news else pause * _SLOWER
                if self._is_gone(topology):
                    await self._ingest.submit(RemoveTarget(self._target.target_id))
                    return
                if is_news or must_report:
                    await self._ingest.submit(topology)
                    self._last = topology
                if any(seen.inhabitant.agent_type != NO_AGENT for seen in topology.panes):
                    longest = _LONGEST_WITH_AGENTS
            except AgtmuxError as error:
                self._must_report |= must_report
                await self._complain(error)
            finally:
                self.has_looked.set()
            pause = min(pause, longest)
            # Not wait_for: on Python 3.11 it loses a cancellation that comes in the moment it is woken.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _note(self, health: HealthRecord) -> None:
        """Make a change of health known; what the store refuses is tried again at the next look."""
        if health.health is not self._health.health:
            await self._ingest.submit(HealthChanged(self._target.target_id, health.health))
            self._health = health
            await self._on_health(self._target.target_id)
        self._health = health

    async def _complain(self, error: AgtmuxError) -> None:
        name = self._target.target_id
        if error.code is not ErrorCode.TARGET_UNREACHABLE:
            # The store has refused, which says nothing about the target.
            _log.warning("what %s looks like could not be written: %s", name, error.message)
            return
        if self.error is None or self.error.message != error.message:
            _log.warning("cannot look at %s: %s", name, error.message)
        self.error = error
        try:
            await self._note(self._health.failed(self._clock.now(), self._health_policy))
        except AgtmuxError as refused:
            _log.warning("the health of %s could not be written: %s", name, refused.message)

    async def _look(self) -> Topology:
        taken_at = self._clock.now()
        rows, foregrounds = await self._executor.snapshot()
        return read_snapshot(self._target.target_id, rows, foregrounds, taken_at, self._registry)

    def _is_gone(self, topology: Topology) -> bool:
        """Whether the target was one of passage and has lost its server."""
        self._seen_server |= topology.tmux_server_boot_id is not None
        return self._target.is_ephemeral and self._seen_server and topology.tmux_server_boot_id is None

    def _is_news(self, topology: Topology) -> bool:
        last = self._last
        return last is None or (last.tmux_server_boot_id, last.panes) != (
            topology.tmux_server_boot_id,
            topology.panes,
        )


def read_snapshot(
    target_id: TargetId,
    rows: list[dict[str, str]],
    foregrounds: Mapping[int, Sequence[Mapping[str, Any]]],
    taken_at: Timestamp,
    registry: Registry,
) -> Topology:
    """tmux's answer as values; a pane that cannot be read is left out, and the rest stays."""
    panes: dict[str, SeenPane] = {}
    boot_id = None
    for row in rows:
        pane_id = row["pane_id"]
        if not is_pane_id(pane_id):
            continue
        boot_id = BootId(f"{row['pid']}-{row['start_time']}")
        pid = int(row["pane_pid"]) if row["pane_pid"].isdigit() else None
        if row["pane_dead"] == "1" or pid is None:
            inhabitant = Inhabitant(NO_AGENT, None, None)
        else:
            inhabitant = _inhabitant(row, pid, foregrounds.get(pid, ()), registry)
        # A pane linked into several sessions is listed once for each: the first is as good as any.
        panes.setdefault(
            pane_id,
            SeenPane(
                Pane(
                    target_id=target_id,
                    pane_id=PaneId(pane_id),
                    session_name=row["session_name"],
                    window_id=row["window_id"],
                    window_name=row["window_name"],
                    title=row["pane_title"],
                    cwd=row["pane_current_path"],
                ),
                inhabitant,
            ),
        )
    return Topology(target_id, taken_at, boot_id, tuple(panes.values()))


def _inhabitant(
    row: Mapping[str, str], pid: int, foreground: Sequence[Mapping[str, Any]], registry: Registry
) -> Inhabitant:
    who = registry.identify(row["@agtmux_agent"], row["pane_current_command"], foreground)
    if who.agent_type == NO_AGENT:
        # Whatever a shell runs, the pane's inhabitant is the shell: commands come and go.
        return Inhabitant(NO_AGENT, pid, None)
    started_at = None if who.started is None else Timestamp(int(who.started * SECOND))
    return Inhabitant(who.agent_type, who.pid if who.pid is not None else pid, started_at, who.version)
