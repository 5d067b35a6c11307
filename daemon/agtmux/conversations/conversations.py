"""What was asked and answered: taken from where agents write it down, kept, found again, and told to who listens."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Literal

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.conversations.allowance import Allowance
from agtmux.conversations.archive import Archive, Conversation, of_chat
from agtmux.conversations.follower import Followed, Follower
from agtmux.conversations.markdown import document, file_name
from agtmux.conversations.message import Message, Role, entry
from agtmux.conversations.screens import Screens
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import machine_of
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.store.database import Database
from agtmux.targets.messages import LogKept
from agtmux.worktrees.trees import Trees

_log = logging.getLogger(__name__)

# Of one conversation, as Markdown: what a frame to a probe has room for.
_LARGEST: Final = 5_000_000


class Conversations:
    def __init__(
        self,
        database: Database,
        world: World,
        registry: Registry,
        fleet: Fleet,
        trees: Trees,
        clock: Clock,
        oldest: int,
        sources: Literal["all", "transcripts", "screens", "none"] = "all",
    ) -> None:
        self.archive = Archive(database)
        self.allowance = Allowance()
        self._clock = clock
        self._sources = sources
        self._fleet = fleet
        self._follower = Follower(
            self.archive, world, registry, fleet, trees, clock, oldest, self._tell, self._without_file, self.allowance
        )
        self._follower.reads_files = sources in ("all", "transcripts")
        self._screens = Screens(
            self.archive, world, registry, fleet, clock, self._tell, self._follower.worktree, self.allowance
        )
        self._screens.on_due = self._follower.wake
        self._follower.on_file.append(self._screens.forget)
        # Called with the panes whose agents have another session.
        self.on_session: list[Callable[[set[PaneKey], Timestamp], None]] = []
        self._follower.on_session = self._has_session
        # Called on the event loop with each message once it is durable.
        self.on_message: list[Callable[[Message], None]] = []
        # Set, and another in its place, when there is something new.
        self.news = asyncio.Event()
        self.is_closed = False

    def _has_session(self, key: PaneKey) -> None:
        for hear in self.on_session:
            hear({key}, self._clock.now())

    async def load(self) -> None:
        if self._sources != "none":
            await self._follower.load()

    def end_waits(self) -> None:
        """Nothing comes any more."""
        self.is_closed = True
        self.news.set()

    async def close(self) -> None:
        await self._follower.close()

    def changed(self, keys: Iterable[PaneKey], now: Timestamp) -> None:
        if self._sources != "none":
            self._follower.changed(keys, now)

    def told(self, events: Iterable[tuple[RuntimeId, Event]]) -> None:
        if self._sources in ("all", "transcripts"):
            self._follower.told(events)

    def showed(self, target_id: TargetId, screens: dict[PaneId, str]) -> None:
        self._screens.showed(target_id, screens)
        if self._sources != "none":
            # Its file may be there by now: some turns are over before anybody sees that they began.
            self._follower.showed((target_id, pane_id) for pane_id in screens)

    def grown(self, target_id: TargetId, paths: list[str]) -> None:
        self._follower.grown(target_id, paths)

    async def add(
        self,
        *,
        target_id: TargetId,
        agent_type: str,
        session_id: str,
        role: Role,
        text: str,
        entry_id: str,
        runtime_id: RuntimeId | None = None,
        cwd: str = "",
        at: Timestamp | None = None,
        request_id: str | None = None,
    ) -> Message | None:
        """A message of a chat session. The same `entry_id` of the same session is one message, however often it is
        handed in; None if it is known already or told otherwise, or nothing is to be kept."""
        if self._sources == "none":
            return None
        now = self._clock.now()
        conversation_id = of_chat(target_id, agent_type, session_id)
        conversation = await self.archive.find(conversation_id)
        if conversation is None:
            worktree, branch = await self._worktree(target_id, cwd)
            conversation = Conversation(
                conversation_id=conversation_id,
                target_id=target_id,
                agent_type=agent_type,
                session_id=session_id,
                runtime_id=runtime_id,
                cwd=cwd,
                worktree=worktree,
                branch=branch,
                title="",
                source="chat",
                started_at=now,
                updated_at=now,
            )
        if runtime_id is not None:
            conversation = replace(conversation, runtime_id=runtime_id)
        said = entry(entry_id, role, text, now if at is None else at, request_id)
        if self._follower.reads(agent_type, session_id):
            # It is open in a terminal as well, and tells this from its file.
            return None
        messages = await self.archive.write(conversation, [said])
        self._tell(messages)
        return messages[0] if messages else None

    async def _worktree(self, target_id: TargetId, cwd: str) -> tuple[str | None, str]:
        """Nobody waits until git can be asked again: what is said is kept without."""
        try:
            return await self._follower.worktree(target_id, cwd)
        except AgtmuxError as error:
            _log.warning("the work tree of %s cannot be told: %s", cwd, error.message)
            return None, ""

    async def keep(self, conversation: Conversation) -> tuple[str, int]:
        """Written as Markdown into its work tree: where, and of how many messages."""
        if conversation.worktree is None:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                f"the conversation {conversation.conversation_id[:12]} is in no git work tree; print it instead",
            )
        messages, is_whole = await self.archive.last(conversation.conversation_id, _LARGEST)
        data, messages = await asyncio.to_thread(_written, conversation, messages, is_whole)
        errand = {
            **{"do": "keep_log", "path": conversation.worktree, "name": file_name(conversation)},
            "data": base64.b64encode(data).decode(),
        }
        kept = await self._fleet.run(machine_of(conversation.target_id), errand, LogKept)
        return kept.path, len(messages)

    async def _without_file(self, followed: Followed) -> None:
        """Nobody knows where it writes what, so there is only what it shows."""
        if self._sources in ("all", "screens"):
            await self._screens.take(followed.key, followed.runtime_id)

    def _tell(self, messages: list[Message]) -> None:
        if messages:
            self.news.set()
            self.news = asyncio.Event()
        for message in messages:
            for hear in self.on_message:
                try:
                    hear(message)
                except Exception:
                    # It is on the disk; who listens must not be able to stop what comes next.
                    _log.exception("a listener failed")


def _written(conversation: Conversation, messages: list[Message], is_whole: bool) -> tuple[bytes, list[Message]]:
    """As Markdown, with those that it has room for."""
    while True:
        data = document(conversation, messages, is_whole=is_whole).encode("utf-8", "replace")
        if len(data) <= _LARGEST:
            return data, messages
        # What is quoted may be longer than it was.
        messages, is_whole = messages[len(messages) // 4 + 1 :], False
