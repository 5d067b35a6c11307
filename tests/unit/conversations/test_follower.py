"""Who tells of a file without end neither fills the disk nor keeps the daemon busy, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.conversations.allowance import Allowance
from agtmux.conversations.archive import Archive, Conversation, Wanted, of_chat
from agtmux.conversations.follower import Follower
from agtmux.conversations.message import entry
from agtmux.domain.panes import CHAT, TargetKind
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.targets.messages import Slice, TranscriptFound
from unit.builders import FakeTime

KEY = ("vm", "%1")
SESSION = "0a1b2c3d-0000-4000-8000-000000000001"


def line(number: int, size: int) -> bytes:
    entry = {"type": "user", "uuid": f"u{number}", "isSidechain": False, "message": {"content": "x" * size}}
    return json.dumps(entry).encode() + b"\n"


class Endless:
    """A fleet of one pane, whose file goes on for ever."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.slices = 0
        self.waiting: list[tuple[int, asyncio.Event]] = []

    def pane(self, *_: Any) -> Any:
        return SimpleNamespace(foreground=[])

    def follow(self, *_: Any) -> None: ...

    async def run(self, _: str, errand: dict[str, Any], kind: type) -> Any:
        if kind is TranscriptFound:
            return TranscriptFound(path="/f", session_id=SESSION, is_proven=True)
        self.slices += 1
        for number, reached in self.waiting:
            if self.slices >= number:
                reached.set()
        lines = line(self.slices, self.size) if self.size else b""
        return Slice(is_there=True, lines=lines, offset=self.slices, mark="m", has_more=True)

    async def until(self, number: int) -> None:
        reached = asyncio.Event()
        self.waiting.append((number, reached))
        async with asyncio.timeout(10):
            await reached.wait()


class Followed:
    def __init__(
        self, archive: Archive, fleet: Endless, allowance: Allowance, kind: TargetKind = TargetKind.SSH
    ) -> None:
        runtime = SimpleNamespace(runtime_id="r1", agent_type="claude", has_agent=True)
        record = SimpleNamespace(runtime=runtime, row=SimpleNamespace(state=State.RUNNING))
        target = SimpleNamespace(connection_ref="x", kind=kind)
        world = SimpleNamespace(
            records={KEY: record}, by_runtime={"r1": KEY}, targets={"vm": target}, panes={}, sessions={}
        )
        self.archive = archive

        async def none(_: Any) -> None: ...

        def follower(trees: Any, on_messages: Callable[..., None]) -> Follower:
            clock = FakeTime().clock()
            return Follower(archive, world, Registry.load(), fleet, trees, clock, 10**15, on_messages, none, allowance)  # type: ignore[arg-type]

        self.follower = follower(None, lambda _: None)

    async def kept(self) -> list[str]:
        return [str.__str__(each.content) for each in await self.archive.messages(Wanted(), 10_000)]


async def test_a_target_that_says_too_much_has_to_wait_and_goes_on_where_it_was(tmp_path: Path):
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    # It has room for two and a half of them, and for five more in a second, which is when it is told to look again.
    allowance = Allowance(50_000, 86_400 * 100_000)
    fleet = Endless(20_000)
    it = Followed(Archive(database), fleet, allowance)
    seconds = 0.0
    has_stopped = asyncio.Event()

    async def stops(_: float) -> None:
        has_stopped.set()

    it.follower._monotonic = lambda: seconds
    it.follower._sleep = stops
    it.follower.changed([KEY], FakeTime().clock().now())  # type: ignore[list-item]
    async with asyncio.timeout(10):
        await has_stopped.wait()
    assert (fleet.slices, allowance.held_back) == (3, {"vm": 1})
    seconds = 2.0
    # When it may, it goes on by itself.
    await fleet.until(4)
    await it.follower.close()
    assert [len(each) for each in await it.kept()][:3] == [20_000] * 3
    await database.close()


async def test_a_file_that_has_always_more_of_nothing_is_read_ever_slower(tmp_path: Path):
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    fleet = Endless(0)
    it = Followed(Archive(database), fleet, Allowance())
    pauses: list[float] = []
    slow = asyncio.Event()

    async def at_once(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            slow.set()
            await asyncio.Event().wait()

    it.follower._sleep = at_once
    it.follower.changed([KEY], FakeTime().clock().now())  # type: ignore[list-item]
    async with asyncio.timeout(20):
        await slow.wait()
    await it.follower.close()
    assert pauses[0] < 1 and pauses[11] >= 5
    await database.close()


@pytest.mark.parametrize(("kind", "is_replaced"), [(TargetKind.LOCAL, True), (TargetKind.SSH, False)])
async def test_a_file_takes_the_place_of_what_its_chat_handed_in_but_only_where_chats_are(
    tmp_path: Path, kind: TargetKind, is_replaced: bool
):
    """Another machine may call a session what it likes."""
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    fleet = Endless(10)
    it = Followed(Archive(database), fleet, Allowance(), kind)
    at = Timestamp(FakeTime().clock().now())
    chat = Conversation(
        conversation_id=of_chat(CHAT, "claude", SESSION),
        **dict.fromkeys(("cwd", "branch", "title"), ""),
        **dict.fromkeys(("runtime_id", "worktree"), None),
        **{"target_id": CHAT, "agent_type": "claude", "session_id": SESSION, "source": "chat"},
        **{"started_at": at, "updated_at": at},
    )  # type: ignore[arg-type]
    await it.archive.write(chat, [entry("1", "user", "said in a chat", at)])
    is_read_before = it.follower.reads("claude", SESSION)
    it.follower.changed([KEY], at)  # type: ignore[list-item]
    await fleet.until(2)
    is_read = it.follower.reads("claude", SESSION)
    await it.follower.close()
    kept = await it.kept()
    await database.close()
    assert (is_read_before, is_read) == (False, is_replaced)
    assert ("said in a chat" not in kept) is is_replaced
