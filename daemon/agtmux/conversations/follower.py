"""Follows the files that agents write their conversations to: whose is which, and on from where it was read last.

Nothing is read unless something says that there is something to read: a state that changes, a hook, a file that grows.
Who has no file that is proven to be its own has no conversation here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from agtmux.agents.registry import Registry
from agtmux.agents.transcript import TranscriptSheet
from agtmux.clock import Clock
from agtmux.conversations.allowance import Allowance
from agtmux.conversations.archive import Archive, Conversation, Place, of_chat
from agtmux.conversations.message import Entry, Message, digest, entry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import CHAT, TargetKind
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.targets.messages import Slice, TranscriptFound
from agtmux.worktrees.trees import Trees

_log = logging.getLogger(__name__)

# Of a file in one go, and of one that is new to us: a conversation goes back for years sometimes.
MOST_AT_ONCE: Final = 1_000_000
TAIL: Final = 8_000_000
# Between two looks at the same one.
_SPACING: Final = 0.3
_AT_ONCE: Final = 4
_MOST_PARTS: Final = 32
# What is read of an honest file without a pause is a matter of a few rounds; then it has time.
_MOST_ROUNDS: Final = 8
_LONG_SPACING: Final = 5.0
_LONGEST_REST: Final = 600.0


@dataclass(slots=True)
class Followed:
    """An agent that is there, and the file of its conversation as far as it is known."""

    key: PaneKey
    runtime_id: RuntimeId
    agent_type: str
    conversation: Conversation | None = None
    # The file that its hooks name.
    claimed: str = ""
    state: State | None = None
    # Whether it has to be asked anew which file is its.
    is_to_be_found: bool = True
    is_over: bool = False
    # How often in a row there was still more to read.
    rounds: int = 0
    # Whether its target has to wait, and it is woken when that is over.
    is_held: bool = False
    again: asyncio.Event = field(default_factory=asyncio.Event)


class Follower:
    def __init__(
        self,
        archive: Archive,
        world: World,
        registry: Registry,
        fleet: Fleet,
        trees: Trees,
        clock: Clock,
        oldest: int,
        on_messages: Callable[[list[Message]], None],
        on_none: Callable[[Followed], Awaitable[None]],
        allowance: Allowance,
    ) -> None:
        self._archive = archive
        self._world = world
        self._registry = registry
        self._fleet = fleet
        self._trees = trees
        self._clock = clock
        # How long what was said is kept.
        self._oldest = oldest
        self._on_messages = on_messages
        # For who has no file.
        self._on_none = on_none
        self._allowance = allowance
        self._sleep = asyncio.sleep
        self._monotonic: Callable[[], float] = time.monotonic
        self._followed: dict[RuntimeId, Followed] = {}
        self._tasks: dict[RuntimeId, asyncio.Task[None]] = {}
        self._turns: dict[TargetId, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
        self.failures = 0
        self.reads_files = True
        # Called when an agent's session is another.
        self.on_session: Callable[[PaneKey], None] = lambda _: None
        # Called with who has a file from now on, or has ended.
        self.on_file: list[Callable[[RuntimeId], None]] = []

    async def load(self) -> None:
        """Take up what an earlier daemon followed."""
        for conversation in await self._archive.of_runtimes():
            key = self._world.by_runtime.get(conversation.runtime_id or RuntimeId(""))
            if key is not None and conversation.source == "transcript" and self.reads_files:
                followed = self._follow(key, self._world.records[key])
                followed.conversation = conversation
                self._note_session(followed)
        for target_id in {followed.key[0] for followed in self._followed.values()}:
            self._watch(target_id)
        self.changed(self._world.records, self._clock.now())

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def changed(self, keys: Iterable[PaneKey], _: Timestamp) -> None:
        """What is known of these panes has changed."""
        for key in keys:
            record = self._world.records.get(key)
            if record is not None and record.runtime.has_agent and self._registry.knows(record.runtime.agent_type):
                followed = self._follow(key, record)
                if followed.state is not record.row.state:
                    followed.state = record.row.state
                    self._wake(followed, is_to_be_found=True)
        for runtime_id in [each for each in self._followed if each not in self._world.by_runtime]:
            # The last words may not have been read.
            self._followed[runtime_id].is_over = True
            self._wake(self._followed[runtime_id])

    def told(self, events: Iterable[tuple[RuntimeId, Event]]) -> None:
        """Hooks name the file that their agent writes to."""
        for runtime_id, event in events:
            key = self._world.by_runtime.get(runtime_id)
            if not event.transcript or key is None or event.agent_type != self._world.records[key].runtime.agent_type:
                continue
            followed = self._follow(key, self._world.records[key])
            followed.claimed = event.transcript
            self._wake(followed, is_to_be_found=True)

    def grown(self, target_id: TargetId, paths: list[str]) -> None:
        for followed in self._followed.values():
            if followed.key[0] == target_id and followed.conversation and followed.conversation.place.path in paths:
                self._wake(followed)

    def showed(self, keys: Iterable[PaneKey]) -> None:
        """Something has happened there that no state may tell of."""
        for key in keys:
            record = self._world.records.get(key)
            followed = None if record is None else self._followed.get(record.runtime.runtime_id)
            if followed is not None and followed.conversation is None:
                self._wake(followed, is_to_be_found=True)

    def wake(self, runtime_id: RuntimeId) -> None:
        """There is something to be read of who has no file."""
        if (followed := self._followed.get(runtime_id)) is not None:
            self._wake(followed)

    def reads(self, agent_type: str, session_id: str) -> bool:
        """Whether somebody on this machine has that session open, so that its file is read."""
        return any(
            (each.agent_type, each.conversation.session_id) == (agent_type, session_id) and self._is_here(each.key[0])
            for each in self._followed.values()
            if each.conversation is not None and not each.is_over
        )

    def _has_file(self, followed: Followed) -> None:
        for hear in self.on_file:
            hear(followed.runtime_id)

    def _follow(self, key: PaneKey, record: Record) -> Followed:
        runtime = record.runtime
        return self._followed.setdefault(runtime.runtime_id, Followed(key, runtime.runtime_id, runtime.agent_type))

    def _wake(self, followed: Followed, *, is_to_be_found: bool = False) -> None:
        followed.is_to_be_found |= is_to_be_found
        followed.again.set()
        if followed.runtime_id not in self._tasks:
            task = asyncio.create_task(self._run(followed), name=f"follow-{followed.key[0]}-{followed.key[1]}")
            self._tasks[followed.runtime_id] = task

    async def _run(self, followed: Followed) -> None:
        """As long as there is something to do."""
        while followed.again.is_set():
            followed.again.clear()
            try:
                async with self._turns[followed.key[0]]:
                    await self._take_up(followed)
            except AgtmuxError as error:
                # Its target is out of reach, or the store is. Whatever comes next begins here again.
                followed.is_to_be_found = True
                _log.debug("the conversation in %s has to wait: %s", followed.key, error.message)
            except Exception:
                self.failures += 1
                _log.exception("the conversation in %s could not be read", followed.key)
            await self._sleep(_SPACING if followed.rounds < _MOST_ROUNDS else _LONG_SPACING)
        # From here on whoever wakes it begins anew.
        self._tasks.pop(followed.runtime_id, None)
        if followed.is_over:
            self._followed.pop(followed.runtime_id, None)
            self._has_file(followed)
            self._watch(followed.key[0])

    def _has_to_wait(self, followed: Followed) -> bool:
        """Its target has said too much; what it says now stays where it is until there is room again."""
        rest = self._allowance.rest(followed.key[0], self._monotonic())
        if rest > 0 and not followed.is_held:
            followed.is_held = True
            asyncio.get_running_loop().call_later(min(rest, _LONGEST_REST), self._let_go, followed)
        return rest > 0

    def _let_go(self, followed: Followed) -> None:
        followed.is_held = False
        self.wake(followed.runtime_id)

    async def _take_up(self, followed: Followed) -> None:
        if self._has_to_wait(followed):
            return
        sheet = self._registry.sheet(followed.agent_type).transcript if self.reads_files else None
        if followed.is_to_be_found and not followed.is_over:
            followed.is_to_be_found = False
            before = followed.conversation
            found = None if sheet is None else await self._find(followed, sheet)
            if found is not None and (before is None or before.place.path != found.place.path):
                if before is not None and sheet is not None:
                    # What was said there last.
                    await self._read(followed, sheet)
                followed.conversation = found
                self._note_session(followed)
                self._allowance.spend_row(followed.key[0], self._monotonic())
                self._watch(followed.key[0])
                self._has_file(followed)
        if sheet is not None and followed.conversation is not None:
            await self._read(followed, sheet)
        else:
            await self._on_none(followed)

    def _note_session(self, followed: Followed) -> None:
        session_id = None if followed.conversation is None else followed.conversation.session_id
        if session_id and self._world.by_runtime.get(followed.runtime_id) == followed.key:
            self._world.sessions[followed.runtime_id] = session_id
            self.on_session(followed.key)

    async def _find(self, followed: Followed, sheet: TranscriptSheet) -> Conversation | None:
        row = self._fleet.pane(*followed.key)
        if row is None or not (sheet.by or followed.claimed):
            return None
        processes = [[each.pid, each.started] for each in row.foreground]
        errand = {"do": "transcript", "processes": processes, "rule": sheet.rule, "claimed": followed.claimed}
        found = await self._fleet.run(followed.key[0], errand, TranscriptFound)
        if not found.path:
            return None
        account = self._world.targets[followed.key[0]].connection_ref
        conversation_id = digest(account, followed.agent_type, found.session_id)
        known = await self._archive.find(conversation_id)
        if known is not None:
            place = known.place if known.place.path == found.path else Place(found.path)
            return replace(known, target_id=followed.key[0], runtime_id=followed.runtime_id, place=place)
        now = self._clock.now()
        pane = self._world.panes.get(followed.key)
        cwd = pane.cwd if pane is not None else ""
        worktree, branch = await self.worktree(followed.key[0], cwd)
        return Conversation(
            conversation_id=conversation_id,
            target_id=followed.key[0],
            agent_type=followed.agent_type,
            session_id=found.session_id,
            runtime_id=followed.runtime_id,
            cwd=cwd,
            worktree=worktree,
            branch=branch,
            title="",
            source="transcript",
            started_at=now,
            updated_at=Timestamp(0),
            place=Place(found.path),
        )

    async def worktree(self, target_id: TargetId, cwd: str) -> tuple[str | None, str]:
        """The work tree that a folder is in, and its branch."""
        try:
            found = await self._trees.look(target_id, cwd) if cwd else None
        except AgtmuxError as error:
            if error.code is not ErrorCode.PRECONDITION_FAILED:
                raise
            return None, ""
        return (None, "") if found is None else (found.top or None, found.branch)

    async def _read(self, followed: Followed, sheet: TranscriptSheet) -> None:
        conversation = followed.conversation
        rounds, followed.rounds = followed.rounds, 0
        for _ in range(_MOST_PARTS):
            if conversation is None or self._has_to_wait(followed):
                return
            place = conversation.place
            errand = {
                **{"do": "slice", "path": place.path, "offset": place.offset, "mark": place.mark},
                **{"is_within": place.is_within, "most": MOST_AT_ONCE, "tail": TAIL},
            }
            part = await self._fleet.run(followed.key[0], errand, Slice)
            reached = Place(place.path, part.offset, part.mark, part.is_within)
            if not part.is_there or reached == place:
                return
            # Beside the loop: an answer may be long, and everything in it is looked through for secrets.
            entries = await asyncio.to_thread(self._entries, sheet, part.lines, self._clock.now())
            conversation = replace(conversation, place=reached)
            messages = await self._archive.write(conversation, entries, self._told_otherwise(followed, conversation))
            followed.conversation = conversation
            self._allowance.spend(followed.key[0], messages, self._monotonic())
            self._on_messages(messages)
            if not part.has_more:
                return
        # Others have their turn in between.
        followed.rounds = rounds + 1
        followed.again.set()

    def _told_otherwise(self, followed: Followed, conversation: Conversation) -> list[str]:
        """What was seen of it in its pane, and what it handed in while it was a chat."""
        found = [digest("screen", followed.runtime_id)]
        if conversation.session_id is not None and self._is_here(followed.key[0]):
            found.append(of_chat(CHAT, followed.agent_type, conversation.session_id))
        return found

    def _is_here(self, target_id: TargetId) -> bool:
        """Chats are: of theirs, other machines may tell nothing, whatever they call their own."""
        target = self._world.targets.get(target_id)
        return target is not None and target.kind is TargetKind.LOCAL

    def _entries(self, sheet: TranscriptSheet, lines: bytes, now: Timestamp) -> list[Entry]:
        found = []
        for said in sheet.read(lines):
            at = Timestamp(now if said.at is None else min(said.at, now))
            if at >= now - self._oldest:
                found.append(entry(said.entry_id, said.role, said.text, at, said.request_id))
        return found

    def _watch(self, target_id: TargetId) -> None:
        paths = (
            each.conversation.place.path
            for each in self._followed.values()
            if each.key[0] == target_id and each.conversation is not None and not each.is_over
        )
        self._fleet.follow(target_id, sorted(paths))
