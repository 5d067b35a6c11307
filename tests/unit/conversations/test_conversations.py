"""What chat sessions hand in is kept, if it is to be, once, and whatever git says."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agtmux.agents.registry import Registry
from agtmux.conversations.archive import Wanted
from agtmux.conversations.conversations import Conversations
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import CHAT
from agtmux.observe.world import World
from agtmux.store.database import Database
from unit.builders import FakeTime

SESSION = "0a1b2c3d-0000-4000-8000-000000000001"


class Trees:
    """What git says of every folder."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def look(self, *_: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@contextlib.asynccontextmanager
async def conversations(directory: Path, git: Any = None, **settings: Any) -> AsyncIterator[Conversations]:
    clock = FakeTime().clock()
    database = await Database.open(directory / "agtmux.db", clock)
    made = Conversations(
        database,
        World(),
        Registry.load(),
        None,
        Trees(git),
        clock,
        10**15,
        **settings,  # type: ignore[arg-type]
    )
    yield made
    await made.close()
    await database.close()


async def say(to: Conversations, text: str) -> None:
    await to.add(
        target_id=CHAT, agent_type="claude", session_id=SESSION, role="user", text=text, entry_id=text, cwd="/work"
    )


async def kept(of: Conversations) -> list[tuple[str, str | None]]:
    return [(str.__str__(each.content), each.worktree) for each in await of.archive.messages(Wanted(), 100)]


@pytest.mark.parametrize(
    ("git", "worktree"),
    [
        (SimpleNamespace(top="/work", branch="main"), "/work"),
        (AgtmuxError(ErrorCode.PRECONDITION_FAILED, "no repository"), None),
        (AgtmuxError(ErrorCode.TIMEOUT, "git takes too long"), None),
        (AgtmuxError(ErrorCode.TARGET_UNREACHABLE, "nobody can ask it"), None),
    ],
    ids=["work tree", "none", "slow", "unreachable"],
)
async def test_what_is_said_in_a_chat_is_kept_whatever_git_says(tmp_path: Path, git: Any, worktree: str | None):
    async with conversations(tmp_path, git) as it:
        await say(it, "hello")
        await say(it, "hello")
        assert await kept(it) == [("hello", worktree)]


@pytest.mark.parametrize("sources", ["all", "transcripts", "screens", "none"])
async def test_where_nothing_is_to_be_kept_no_chat_is(tmp_path: Path, sources: str):
    async with conversations(tmp_path, sources=sources) as it:
        await say(it, "hello")
        assert await kept(it) == ([] if sources == "none" else [("hello", None)])
