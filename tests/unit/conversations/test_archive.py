"""What was said is written once, found by its words whatever these are, and told again where it went on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agtmux.conversations.archive import Archive, Conversation, Wanted
from agtmux.conversations.message import entry
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.runtimes import TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from unit.builders import FakeTime

AT = Timestamp(1_700_000_000_000_000)


def conversation(name: str = "c1") -> Conversation:
    return Conversation(
        conversation_id=name,
        target_id=TargetId("host"),
        agent_type="some",
        session_id=None,
        runtime_id=None,
        cwd="/",
        worktree="/work",
        branch="main",
        title="",
        source="transcript",
        started_at=AT,
        updated_at=AT,
    )


@pytest_asyncio.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    yield Archive(database)
    await database.close()


async def contents(archive: Archive, **wanted: object) -> list[str]:
    return [str.__str__(each.content) for each in await archive.messages(Wanted(**wanted), 100)]  # type: ignore[arg-type]


async def test_an_answer_that_went_on_is_told_to_who_has_read_its_beginning(archive: Archive):
    """Whoever follows asks for what is after the last that it has."""
    await archive.write(conversation(), [entry("1", "user", "go", AT), entry("2", "assistant", "half", AT)])
    seen = (await archive.messages(Wanted(), 10))[-1].seq
    (told,) = await archive.write(conversation(), [entry("2", "assistant", "half and whole", AT)])
    assert await contents(archive, after=seen) == ["half and whole"]
    assert told.seq == (await archive.messages(Wanted(after=seen), 10))[0].seq
    assert await contents(archive) == ["go", "half and whole"]
    assert await contents(archive, search="whole") == ["half and whole"]
    assert await archive.write(conversation(), [entry("2", "assistant", "half and whole", AT)]) == []


async def test_what_changes_further_up_stays_in_its_place(archive: Archive):
    await archive.write(conversation(), [entry("1", "user", "go", AT), entry("2", "assistant", "done", AT)])
    await archive.write(conversation("c2"), [entry("1", "user", "elsewhere", AT)])
    await archive.write(conversation(), [entry("1", "user", "go on", AT)])
    assert await contents(archive, conversation_id="c1") == ["go on", "done"]
    assert await contents(archive, search="elsewhere") == ["elsewhere"] and await contents(archive, search="done")


@pytest.mark.parametrize(
    "words",
    ['"', '""', '"""', "a\0b", "abc\0def", "NOT NOT NOT", "content:x", "x* AND", "NEAR(a b, 3)", "{a b}:c", "^abc",
     "%%%", "__", "'; DROP TABLE said; --", "-abc", "+abc", "\\", "a\u0301bc", "\U0001f600", "\ufffd\ufffd\ufffd"],
)  # fmt: skip
async def test_any_words_can_be_asked_for(archive: Archive, words: str):
    await archive.write(conversation(), [entry("1", "user", "zzz", AT)])
    assert await contents(archive, search=words) == []
    text = f"before {words} after"
    await archive.write(conversation(), [entry("2", "user", text, AT)])
    if words.isprintable():
        assert len(await contents(archive, search=words)) == 1


async def test_all_of_many_words_have_to_be_there(archive: Archive):
    words = [f"word{number}" for number in range(40)]
    await archive.write(conversation(), [entry("1", "user", " ".join(words), AT)])
    await archive.write(conversation(), [entry("2", "user", " ".join(words[:39]), AT)])
    assert await contents(archive, search=" ".join(words)) == [" ".join(words)]
    with pytest.raises(AgtmuxError, match="E_USAGE"):
        await archive.messages(Wanted(search="word " * 1_000), 10)


async def test_of_a_long_conversation_the_end_is_had_without_the_rest(archive: Archive):
    entries = [entry(str(number), "user", f"{number} " + "x" * 1_000, AT) for number in range(300)]
    await archive.write(conversation(), entries)
    found, is_whole = await archive.last("c1", 50_000)
    assert [int(each.content.split()[0]) for each in found] == list(range(300 - len(found), 300))
    assert 40 <= len(found) <= 50 and not is_whole
    found, is_whole = await archive.last("c1", 10_000_000)
    assert (len(found), is_whole) == (300, True)
