"""Looks at a target, again and again, and hands on what it saw: sooner when something moves, seldom when not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.health import HealthPolicy, HealthRecord
from agtmux.domain.limits import Limits
from agtmux.domain.panes import Pane, SeenPane, Target, TargetKind, Topology
from agtmux.domain.runtimes import NO_AGENT, BootId, Inhabitant, PaneId, TargetId
from agtmux.domain.states import Health, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.transitions import Policy
from agtmux.observe.allowances import Allowance
from agtmux.observe.chats import is_chat
from agtmux.observe.files import Files, Told
from agtmux.observe.ingest import Ingest
from agtmux.observe.pace import SOONEST, Pace
from agtmux.observe.sightings import Sightings
from agtmux.observe.submissions import FirstObserved, HealthChanged, RemoveTarget
from agtmux.observe.world import World
from agtmux.targets.executor import Sighting
from agtmux.targets.link import unreachable
from agtmux.targets.messages import PaneRow

_log = logging.getLogger(__name__)

_BUSY = frozenset({State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT})
# Clocks of two machines differ a little; runtimes and events are compared within seconds.
_CLOCKS_AGREE = 2 * SECOND
_JITTER = 0.2
_ONE_MOMENT = 0.03
# In a row, to settle what the last look has left open: a screen that never rests is no reason to.
_MOST_QUICK_LOOKS = 4
# Characters of all screens of a target together.
_MOST_SCREENS = 16_000_000
# Agents of one target. Whoever has more has them on several.
MOST_AGENTS = 512
# A target that reports more than is taken in is looked at this seldom, in seconds, whatever it says.
_SPENT_SPACING = 2.0
# What turns before an agent's title is no part of it, and would be news at every look.
_SPINNER = re.compile(r"^[\u2800-\u28ff◐◓◑◒✳✶✻✽✢·*]\s+")


class Executor(Protocol):
    async def look(self, captures: list[str], anew: list[str]) -> Sighting: ...

    async def close(self) -> None: ...


class Observer:
    def __init__(
        self,
        target: Target,
        executor: Executor,
        ingest: Ingest,
        world: World,
        registry: Registry,
        clock: Clock,
        *,
        on_health: Callable[[TargetId], Awaitable[None]],
        health_policy: HealthPolicy,
        limits: Limits,
        policy: Policy,
        files: Files | None = None,
        is_known: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        """`allowance` is for a target on another machine."""
        self._allowance = allowance
        # How many agents there are that are not shown.
        self._left_out = 0
        # As it was made known, which also says whether too much is reported.
        self._shown_health = target.health
        self._target = target
        self._executor = executor
        self._ingest = ingest
        self._world = world
        self._registry = registry
        self._clock = clock
        self._on_health = on_health
        self._health_policy = health_policy
        self._limits = limits
        self._health = HealthRecord(target.health)
        # In a row, with single successes in between not counted.
        self._failures = 0
        self._has_failed = False
        self._pace = Pace()
        self._sightings = Sightings(target.target_id, world, registry, clock, policy)
        self._last: Topology | None = None
        # By pane: what was said of it, and what was made of that.
        self._seen: dict[str, tuple[PaneRow, SeenPane]] = {}
        # Those that are not shown as well.
        self._read_before: dict[str, tuple[PaneRow, SeenPane]] = {}
        # By pane: whether the process of its agent was seen.
        self._is_proven: dict[str, bool] = {}
        self._wake = asyncio.Event()
        self._has_stirred = False
        self._rests = False
        self._must_report = True
        self._quick_looks = 0
        # Those of its machine, which other targets may share.
        self._files = files or Files(registry, clock)
        self._askers: list[asyncio.Future[None]] = []
        # A target from an earlier daemon had its server then; if that is gone now, it went in between.
        self._seen_server = is_known
        self.error: AgtmuxError | None = None
        # Set once the target has been looked at, or could not be.
        self.has_looked = asyncio.Event()
        # Set once every agent there was looked at, as often as it takes to be sure; or it could not be.
        self.has_answered = asyncio.Event()
        self.has_observed = False
        # Those whose screens the last look asked for.
        self._captured: frozenset[str] = frozenset()
        # What the panes with agents show, as far as it was captured.
        self.screens: dict[PaneId, str] = {}
        # Called with those that have changed.
        self.on_screens: Callable[[dict[PaneId, str]], None] = lambda _: None
        # Called when `error` is another, and at the end of the first look.
        self.on_error: Callable[[], None] = lambda: None

    def look_now(self) -> None:
        """Somebody waits for what this target looks like: look at once, and say so even if nothing changed."""
        self._must_report = True
        self._wake.set()

    def stirred(self) -> None:
        """There may be something to see, or the line was cut: look as soon as the target has had its rest."""
        self._has_stirred = True
        if self._rests:
            self._wake.set()

    def woken(self) -> None:
        """There is something to see. Several of these in one moment are one."""
        self._has_stirred = True
        asyncio.get_running_loop().call_later(_ONE_MOMENT, self._wake.set)

    def reported(self, pane_id: PaneId) -> None:
        """Something was told of that pane: if a dialog is on its screen, whether that is still so is to be seen."""
        if self._sightings.shows_dialog(pane_id):
            self.woken()

    @property
    def lacks_server(self) -> bool:
        """Whether the last look found no tmux server there."""
        return self._last is not None and self._last.tmux_server_boot_id is None

    async def looked(self) -> None:
        """Look now, and return when a look that began after this call is over."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._askers.append(asked)
        self.look_now()
        await asked

    async def run(self) -> None:
        try:
            while await self._look_once():
                await self._rest()
        finally:
            await self._executor.close()

    async def _look_once(self) -> bool:
        """False when there is nothing to look at any more."""
        self._wake.clear()
        self._has_stirred = False
        # Whoever asks from now on is not answered by the look that is about to begin.
        must_report, self._must_report = self._must_report, False
        askers, self._askers = self._askers, []
        try:
            topology, sighting = await self._look()
            if is_news := self._is_news(topology):
                self._check_starts(topology)
            self._world.seen_at[self._target.target_id] = topology.taken_at
            self._set_error(None)
            self._has_failed = False
            await self._note(self._health.succeeded(self._health_policy))
            if self._health.health is Health.OK:
                self._failures = 0
            if self._is_gone(topology):
                await self._ingest.submit(RemoveTarget(self._target.target_id))
                self.has_answered.set()
                return False
            if is_news or must_report:
                await self._ingest.submit(topology)
                self._last = topology
            titles = {PaneId(row.pane_id): row.title for row in sighting.panes.values()}
            proven = frozenset(PaneId(pane_id) for pane_id in self._seen if self._is_proven.get(pane_id))
            if changed := {PaneId(each.pane_id) for each in sighting.screens} & self.screens.keys():
                self.on_screens({pane_id: self.screens[pane_id] for pane_id in changed})
            if events := self._sightings.look(self.screens, titles, self._by_files(), proven, topology.taken_at):
                await self._ingest.submit(events)
            await self._hand_on_late(len(events))
            await self._note_first()
            self._pace.looked(
                is_news=is_news or bool(sighting.screens),
                is_busy=self._is_busy(),
                has_agents=any(_has_agent(seen) for seen in topology.panes),
                is_metered=sighting.is_metered,
            )
        except AgtmuxError as error:
            self._must_report |= must_report
            await self._complain(error)
            self.has_answered.set()
        except Exception as error:
            # A fault of ours: nobody may be told that all is well meanwhile.
            self._must_report |= must_report
            await self._complain(unreachable(f"{self._target.target_id}: looking failed: {type(error).__name__}"))
            self.has_answered.set()
            raise
        finally:
            self.has_looked.set()
            for asked in askers:
                if not asked.done():
                    asked.set_result(None)
        return True

    def excess(self) -> str | None:
        """What there is more of than is taken in, in a sentence."""
        many = f"it has {MOST_AGENTS + self._left_out} agents, and only the first {MOST_AGENTS} are shown"
        much = None if self._allowance is None else self._allowance.excess(time.monotonic())
        return "; ".join(each for each in (many if self._left_out else None, much) if each) or None

    def _check_starts(self, topology: Topology) -> None:
        """Raises if more agents come and go there than can be; each is a row that is kept for days."""
        if self._allowance is None:
            return
        last = self._last
        is_same_server = last is not None and last.tmux_server_boot_id == topology.tmux_server_boot_id
        before = {seen.pane.pane_id: seen.inhabitant for seen in last.panes} if last and is_same_server else {}
        new = sum(before.get(seen.pane.pane_id) != seen.inhabitant for seen in topology.panes)
        if new and not self._allowance.starts(new, time.monotonic()):
            raise unreachable(f"{self._target.target_id}: more agents come and go there than can be; it is left alone")

    async def _hand_on_late(self, observed: int) -> None:
        if self._allowance is None:
            return
        self._allowance.observed(observed, time.monotonic())
        if late := self._allowance.late(time.monotonic()):
            await self._ingest.submit(tuple(late))

    def _by_files(self) -> dict[PaneId, Told]:
        """What agents' files say of the panes they are in."""
        found = {
            PaneId(pane_id): self._files.of(seen.inhabitant.agent_type, _own_pids(row, seen.inhabitant.pid))
            for pane_id, (row, seen) in self._seen.items()
            if _has_agent(seen)
        }
        return {pane_id: told for pane_id, told in found.items() if told is not None}

    async def _note_first(self) -> None:
        """Make known that what is stored of this target is no longer only remembered."""
        is_open = self._sightings.look_again is not None and self._quick_looks < _MOST_QUICK_LOOKS
        if self.has_observed or is_open or self._lacks_captures():
            return
        await self._ingest.submit(FirstObserved(self._target.target_id))
        self.has_observed = True
        self.has_answered.set()
        # A listing told that this target was yet to be looked at.
        self.on_error()

    def _lacks_captures(self) -> bool:
        """Whether agents were found whose screens the look could not ask for yet."""
        return any(_has_agent(seen) and pane_id not in self._captured for pane_id, (_, seen) in self._seen.items())

    async def _rest(self) -> None:
        if self._has_failed:
            # Many targets behind one line do not all come back in the same moment.
            pause = self._limits.pause(self._failures) / SECOND
            await self._woken_within(pause * random.uniform(1 - _JITTER, 1 + _JITTER))
            return
        if self._health.health is not Health.OK:
            # It has answered; the sooner it does so again, the sooner its panes are known again.
            await self._woken_within(SOONEST)
            return
        if self._allowance is not None and self._allowance.is_spent(time.monotonic()):
            await asyncio.sleep(_SPENT_SPACING)
        if self._lacks_captures() and self._quick_looks < _MOST_QUICK_LOOKS:
            # An agent that was just found is looked at now.
            self._quick_looks += 1
            return
        if self._sightings.look_again is not None and self._quick_looks < _MOST_QUICK_LOOKS:
            self._quick_looks += 1
            await self._woken_within(self._sightings.look_again)
            return
        self._quick_looks = 0
        spacing, longest = self._pace.spacing, self._pace.longest
        if await self._woken_within(spacing) or self._has_stirred:
            return
        self._rests = True
        try:
            await self._woken_within(longest - spacing)
        finally:
            self._rests = False

    async def _woken_within(self, seconds: float) -> bool:
        # Not wait_for: on Python 3.11 it loses a cancellation that comes in the moment it is woken.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
                return True
        return False

    async def _note(self, health: HealthRecord) -> None:
        """Make a change of health known; what the store refuses is tried again at the next look."""
        is_too_much = health.health is Health.OK and self.excess() is not None
        shown = Health.DEGRADED if is_too_much else health.health
        if shown is not self._shown_health:
            await self._ingest.submit(HealthChanged(self._target.target_id, shown))
            self._health, self._shown_health = health, shown
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
        self._set_error(error)
        self._failures += 1
        self._has_failed = True
        try:
            await self._note(self._health.failed(self._clock.now(), self._health_policy))
        except AgtmuxError as refused:
            _log.warning("the health of %s could not be written: %s", name, refused.message)

    def _set_error(self, error: AgtmuxError | None) -> None:
        is_another = _words(self.error) != _words(error)
        self.error = error
        if is_another:
            self.on_error()

    async def _look(self) -> tuple[Topology, Sighting]:
        taken_at = self._clock.now()
        captures = [str(pane_id) for pane_id, (_, seen) in self._seen.items() if _has_agent(seen)]
        anew = [pane_id for pane_id in captures if pane_id not in self.screens]
        self._captured = frozenset(captures)
        before = {pane_id: seen.inhabitant for pane_id, (_, seen) in self._seen.items()}
        sighting = await self._executor.look(captures, anew)
        ahead = int(sighting.ahead * SECOND) + self._clock.lead
        self._read(sighting.panes.values(), ahead if abs(ahead) > _CLOCKS_AGREE else 0)
        room = _MOST_SCREENS - sum(map(len, self.screens.values()))
        for screen in sighting.screens:
            room -= len(screen.text) - len(self.screens.get(PaneId(screen.pane_id), ""))
            if room >= 0:
                self.screens[PaneId(screen.pane_id)] = screen.text
        is_same_server = self._last is not None and self._last.tmux_server_boot_id == (sighting.server or None)
        for pane_id in list(self.screens):
            seen_now = self._seen.get(pane_id)
            # What somebody else has left there is not on the screen of who is there now.
            if seen_now is None or not is_same_server or seen_now[1].inhabitant != before.get(pane_id):
                del self.screens[pane_id]
        boot_id = BootId(sighting.server) if sighting.server else None
        seen = tuple(seen for _, seen in self._seen.values())
        return Topology(self._target.target_id, taken_at, boot_id, seen), sighting

    def _read(self, rows: Iterable[PaneRow], ahead: int) -> None:
        """Who is in each pane; what has not changed is not asked again."""
        before, self._read_before = self._read_before, {}
        self._is_proven = {pane_id: is_proven for pane_id, is_proven in self._is_proven.items() if pane_id in before}
        for row in rows:
            known = before.get(row.pane_id)
            is_same = known is not None and (known[0] is row or known[0] == row)
            self._read_before[row.pane_id] = known if known and is_same else (row, self._seen_pane(row, ahead))
        agents = [pane_id for pane_id, (_, seen) in self._read_before.items() if _has_agent(seen)]
        self._left_out = max(len(agents) - MOST_AGENTS, 0)
        self._seen = dict(self._read_before)
        for pane_id in sorted(agents, key=_number_of)[MOST_AGENTS:] if self._left_out else ():
            del self._seen[pane_id]

    def _seen_pane(self, row: PaneRow, ahead: int) -> SeenPane:
        inhabitant = self._inhabitant(row, ahead)
        pane = Pane(
            target_id=self._target.target_id,
            pane_id=PaneId(row.pane_id),
            session_name=row.session_name,
            window_id=row.window_id,
            window_name=row.window_name,
            title=row.title if inhabitant.agent_type == NO_AGENT else _SPINNER.sub("", row.title),
            cwd=row.cwd,
            branch=row.branch,
            worktree=row.worktree,
        )
        return SeenPane(pane, inhabitant)

    def _inhabitant(self, row: PaneRow, ahead: int) -> Inhabitant:
        if row.pid is None:
            return Inhabitant(NO_AGENT, None, None)
        foreground = [process.as_process() for process in row.foreground]
        if self._target.kind is TargetKind.LOCAL and any(map(is_chat, foreground)):
            # The session tells of itself, and the agent below it draws nothing here.
            return Inhabitant(NO_AGENT, row.pid, None)
        who = self._registry.identify(row.mark, row.command, foreground)
        self._is_proven[row.pane_id] = who.is_by_process
        if who.agent_type == NO_AGENT:
            # Whatever a shell runs, the pane's inhabitant is the shell: commands come and go.
            return Inhabitant(NO_AGENT, row.pid, None)
        started_at = None if who.started is None else Timestamp(int(who.started * SECOND) + ahead)
        return Inhabitant(who.agent_type, who.pid if who.pid is not None else row.pid, started_at, who.version)

    def _is_busy(self) -> bool:
        name = self._target.target_id
        return any(key[0] == name and record.row.state in _BUSY for key, record in self._world.records.items())

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


def _own_pids(row: PaneRow, agent_pid: int | None) -> list[int]:
    """The agent's process and what it has started, without the shell that it was started from."""
    pids = [process.pid for process in row.foreground]
    return pids[pids.index(agent_pid) :] if agent_pid in pids else pids


def _number_of(pane_id: str) -> int:
    return int(pane_id.removeprefix("%"))


def _has_agent(seen: SeenPane) -> bool:
    return seen.inhabitant.agent_type != NO_AGENT


def _words(error: AgtmuxError | None) -> tuple[str, str] | None:
    return None if error is None else (error.code, error.message)
