"""Conversations of agents that write none down, or nobody knows where: cut out of what their panes show.

At the end of each turn, what is new is told, and only that. A conversation begins when agtmux begins to look: what was
there before may be somebody else's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import astuple, dataclass, field, replace
from typing import Final

from agtmux.agents.registry import Registry
from agtmux.agents.screen.said import Turn, content, long_content, read_turns
from agtmux.agents.sheet import AgentSheet
from agtmux.clock import Clock
from agtmux.conversations import roll
from agtmux.conversations.allowance import Allowance
from agtmux.conversations.archive import Archive, Conversation
from agtmux.conversations.message import Entry, Message, digest, entry
from agtmux.conversations.turns import MOST_TOLD, Told, as_told, drawn_anew, goes_on, known_part
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.targets.messages import Output

# How long a screen has to be as it is before it is read.
_QUIET: Final = 0.6
_HISTORY: Final = 2_000
_AT_REST: Final = frozenset({State.COMPLETED, State.IDLE, State.ERROR})


@dataclass(slots=True)
class _Roll:
    """What one pane has shown since its last turn that was told."""

    key: PaneKey
    lines: list[str] = field(default_factory=list)
    width: int = 80
    changed_at: float = 0.0
    # How many screens there were, the number of the last one that was read, and of the last within a turn.
    shown: int = 0
    read: int = -1
    worked: int = -1
    conversation: Conversation | None = None

    @property
    def is_due(self) -> bool:
        """Whether anything was shown that was not read."""
        return self.shown > self.read

    @property
    def has_news(self) -> bool:
        """Whether it was seen to work since."""
        return self.worked > self.read


@dataclass(frozen=True, slots=True)
class _Memory:
    """What was told before, which outlives a daemon."""

    count: int
    told: tuple[Told, ...]

    @classmethod
    def read(cls, text: str) -> _Memory:
        kept = json.loads(text)
        return cls(int(kept["count"]), tuple(Told(*each) for each in kept["told"]))

    def __str__(self) -> str:
        return json.dumps({"count": self.count, "told": [astuple(each) for each in self.told[-MOST_TOLD:]]})


class Screens:
    def __init__(
        self,
        archive: Archive,
        world: World,
        registry: Registry,
        fleet: Fleet,
        clock: Clock,
        on_messages: Callable[[list[Message]], None],
        worktree: Callable[[TargetId, str], Awaitable[tuple[str | None, str]]],
        allowance: Allowance,
    ) -> None:
        self._archive = archive
        self._world = world
        self._registry = registry
        self._fleet = fleet
        self._clock = clock
        self._on_messages = on_messages
        self._worktree = worktree
        self._allowance = allowance
        self._rolls: dict[RuntimeId, _Roll] = {}
        # Called when there is something to be read.
        self.on_due: Callable[[RuntimeId], None] = lambda _: None

    def forget(self, runtime_id: RuntimeId) -> None:
        """It has ended, or has a file."""
        self._rolls.pop(runtime_id, None)

    def showed(self, target_id: TargetId, screens: dict[PaneId, str]) -> None:
        for pane_id, text in screens.items():
            record = self._world.records.get((target_id, pane_id))
            followed = None if record is None else self._rolls.get(record.runtime.runtime_id)
            if record is None or followed is None:
                continue
            self._add(followed, record.runtime.agent_type, text)
            if record.row.state in _AT_REST:
                self.on_due(record.runtime.runtime_id)
            else:
                followed.worked = followed.shown

    async def take(self, key: PaneKey, runtime_id: RuntimeId) -> None:
        """Tell what is new, once it is over."""
        record = self._world.records.get(key)
        if record is None or record.runtime.runtime_id != runtime_id:
            return
        sheet = self._registry.sheet(record.runtime.agent_type)
        if not sheet.spoken.is_known:
            return
        state = record.row.state
        it = self._rolls.get(runtime_id)
        if it is None:
            it = self._rolls[runtime_id] = _Roll(key)
            it.conversation = await self._archive.find(digest("screen", runtime_id))
            if (text := self._fleet.screen(*key)) is not None:
                self._add(it, record.runtime.agent_type, text)
        if it.conversation is None:
            await self._begin(it, runtime_id, record.runtime.agent_type, is_busy=state not in _AT_REST)
        if state not in _AT_REST:
            if state is State.RUNNING:
                # What it shows next is of this turn.
                it.worked = it.shown + 1
            return
        loop = asyncio.get_running_loop()
        if (rest := it.changed_at + _QUIET - loop.time()) > 0:
            loop.call_later(rest, self.on_due, runtime_id)
        elif it.is_due:
            # What is shown while this one is read has to be read as well, and this one again if it fails.
            shown, worked, has_news = it.shown, it.worked, it.has_news
            await self._tell(it, await self._turns(it, record.runtime.agent_type), has_news=has_news)
            it.read = shown
            if it.worked == worked:
                it.worked = min(worked, shown)

    def _add(self, it: _Roll, agent_type: str, text: str) -> None:
        sheet = self._registry.sheet(agent_type)
        shown, width = content(sheet.screen, text)
        lines = roll.add(it.lines, shown)
        if width != it.width and lines.count(roll.GAP) > it.lines.count(roll.GAP):
            # Wrapped otherwise, it shares no lines with what was known, but it does share turns.
            before = read_turns(sheet.screen, sheet.spoken, it.lines, it.width)
            after = read_turns(sheet.screen, sheet.spoken, shown, width)
            if many := drawn_anew(before, after):
                lines = [*it.lines[: before[-many].at], *shown[after[0].at :]]
        it.lines, it.width = lines, width
        it.changed_at = asyncio.get_running_loop().time()
        it.shown += 1

    async def _turns(self, it: _Roll, agent_type: str) -> list[Turn]:
        record = self._world.records[it.key]
        instance, row = record.runtime.instance, self._fleet.pane(*it.key)
        sheet = self._registry.sheet(agent_type)
        if row is not None and row.pid is not None:
            who = {"server": instance.tmux_server_boot_id, "pane_id": instance.pane_id, "pid": row.pid}
            whole = await self._fleet.run(it.key[0], {"do": "history", **who, "lines": _HISTORY}, Output)
            if whole.text:
                # It scrolls, and nothing has to be put together.
                it.lines, it.width = long_content(sheet.screen, whole.text)
        return read_turns(sheet.screen, sheet.spoken, self._whole(it, sheet), it.width)

    def _whole(self, it: _Roll, sheet: AgentSheet) -> list[str]:
        """Without what follows a gap, as long as it is not known that a prompt was before it: it is the answer to one
        that nobody has seen."""
        if roll.GAP not in it.lines or it.conversation is None or it.conversation.seen is None:
            return it.lines
        at = it.lines.index(roll.GAP)
        before = read_turns(sheet.screen, sheet.spoken, it.lines[:at], it.width)
        told = _Memory.read(it.conversation.seen).told
        if known_part(told, before, has_news=False)[1] < len(before):
            return it.lines
        is_prompt = re.compile(sheet.screen.user).match
        rest = next((each for each in range(at + 1, len(it.lines)) if is_prompt(it.lines[each])), len(it.lines))
        it.lines = it.lines[:at] + it.lines[rest:]
        return it.lines

    async def _begin(self, it: _Roll, runtime_id: RuntimeId, agent_type: str, *, is_busy: bool) -> None:
        """What is there now is known; but a turn that is under way is to be told when it ends."""
        shown = it.shown
        turns = await self._turns(it, agent_type)
        before = turns[:-1] if is_busy else turns
        pane = self._world.panes.get(it.key)
        cwd = pane.cwd if pane is not None else ""
        worktree, branch = await self._worktree(it.key[0], cwd)
        now = self._clock.now()
        it.conversation = Conversation(
            conversation_id=digest("screen", runtime_id),
            target_id=it.key[0],
            agent_type=agent_type,
            session_id=None,
            runtime_id=runtime_id,
            cwd=cwd,
            worktree=worktree,
            branch=branch,
            title="",
            source="screen",
            started_at=now,
            updated_at=now,
            seen=str(_Memory(0, tuple(map(as_told, before)))),
        )
        await self._archive.write(it.conversation, [])
        self._allowance.spend_row(it.key[0], asyncio.get_running_loop().time())
        if not is_busy:
            it.read = shown

    async def _tell(self, it: _Roll, turns: list[Turn], *, has_news: bool) -> None:
        conversation = it.conversation
        if conversation is None or conversation.seen is None:
            return
        memory, now = _Memory.read(conversation.seen), self._clock.now()
        # Beside the loop: an answer may be long, and everything is looked through for secrets.
        there, known = await asyncio.to_thread(known_part, memory.told, turns, has_news=has_news)
        count, told = memory.count, [*there]
        entries: list[Entry] = []
        if known and count and told[-1] is memory.told[-1] and goes_on(told[-1], turns[known - 1]):
            told[-1] = as_told(turns[known - 1])
            entries += _entries(count, turns[known - 1], now)
        for turn in turns[known:]:
            count += 1
            told.append(as_told(turn))
            entries += _entries(count, turn, now)
        if entries:
            conversation = replace(conversation, seen=str(_Memory(count, tuple(told))))
            messages = await self._archive.write(conversation, entries)
            it.conversation = conversation
            self._allowance.spend(it.key[0], messages, asyncio.get_running_loop().time())
            self._on_messages(messages)


def _entries(number: int, turn: Turn, now: Timestamp) -> list[Entry]:
    found = [entry(f"{number}:user", "user", turn.prompt, now)]
    if turn.answer:
        found.append(entry(f"{number}:assistant", "assistant", turn.answer, now))
    return found
