"""Conversations on the disk. What was read of a file and how far it was read are written together, so that a daemon
that dies in between neither doubles nor loses anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.conversations.message import Entry, Message, Source, digest, distinct
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import printable
from agtmux.domain.redact import Redacted
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.store.writer import Parameters, Transaction

_COLUMNS: Final = (
    "conversation_id, target_id, agent_type, session_id, runtime_id, cwd, worktree, branch, title, source, started_at,"
    " updated_at, path, offset, mark, is_within, seen"
)
_SAID: Final = (
    "s.seq, s.message_id, s.conversation_id, c.target_id, c.agent_type, s.runtime_id, c.worktree, s.role, s.content,"
    " s.summary, s.at, s.request_id, c.source, s.is_cut"
)
# The index is made of pieces of three letters.
_SHORTEST: Final = 3
_MOST_WORDS: Final = 64
_PAGE: Final = 50
# What stands around a message where it is written down.
_AROUND: Final = 200


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read."""

    path: str = ""
    offset: int = 0
    mark: str = ""
    is_within: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    conversation_id: str
    target_id: TargetId
    agent_type: str
    session_id: str | None
    runtime_id: RuntimeId | None
    cwd: str
    worktree: str | None
    branch: str
    title: str
    source: Source
    started_at: Timestamp
    updated_at: Timestamp
    place: Place = Place()
    # Of a screen, how it looked when it was last read.
    seen: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages; what is None does not matter."""

    conversation_id: str | None = None
    runtime_id: RuntimeId | None = None
    target_id: TargetId | None = None
    worktree: str | None = None
    search: str | None = None
    # By seq, neither included.
    after: int | None = None
    before: int | None = None


class Archive:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, conversation_id: str) -> Conversation | None:
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM conversations WHERE conversation_id = ?", (conversation_id,)
        )
        return _conversation(rows[0]) if rows else None

    async def write(
        self, conversation: Conversation, entries: Sequence[Entry], replaces: Sequence[str] = ()
    ) -> list[Message]:
        """What was said, and how far that goes, in one; returns what is new or has changed. `replaces` are
        conversations that tell the same less well."""
        added = [*distinct(entries)]

        def job(tx: Transaction) -> list[Message]:
            for other in replaces:
                tx.execute("DELETE FROM conversations WHERE conversation_id = ?", (other,))
            _save(tx, conversation)
            told = [message for each in added if (message := _put(tx, conversation, each)) is not None]
            if told:
                tx.execute(
                    "UPDATE conversations SET updated_at = max(updated_at, ?), started_at = min(started_at, ?),"
                    " title = CASE WHEN title = '' THEN ? ELSE title END WHERE conversation_id = ?",
                    (
                        max(each.at for each in told),
                        min(each.at for each in told),
                        next((str(each.summary) for each in told if each.role == "user"), ""),
                        conversation.conversation_id,
                    ),
                )
            return told

        return await self._database.writer.write(job)

    async def listing(
        self, runtime_id: str | None, worktree: str | None, target: str | None, limit: int
    ) -> list[tuple[Conversation, int]]:
        """With the number of their messages, the latest first. One that nobody has said anything in is none."""
        conditions = {"runtime_id = ?": runtime_id, "worktree = ?": worktree, "target_id = ?": target}
        wanted = {text: value for text, value in conditions.items() if value is not None}
        where = "".join(f" AND {text}" for text in wanted)
        rows = await self._database.read(
            f"SELECT {_COLUMNS}, (SELECT count(*) FROM said s WHERE s.conversation_id = c.conversation_id) AS many"
            f" FROM conversations c WHERE EXISTS (SELECT 1 FROM said s WHERE s.conversation_id = c.conversation_id)"
            f"{where} ORDER BY updated_at DESC LIMIT ?",
            (*wanted.values(), limit),
        )
        return [(_conversation(row), int(row[-1])) for row in rows]

    async def messages(self, wanted: Wanted, limit: int) -> list[Message]:
        """The oldest first: those right after `after`, else the latest of those that fit."""
        conditions: dict[str, list[str | int | None]] = {}
        for condition, value in {
            "s.conversation_id = ?": wanted.conversation_id,
            "c.target_id = ?": wanted.target_id,
            "c.worktree = ?": wanted.worktree,
            "s.seq > ?": wanted.after,
            "s.seq < ?": wanted.before,
        }.items():
            if value is not None:
                conditions[condition] = [value]
        if wanted.runtime_id is not None:
            # What the one in that pane takes part in now, also what was said before it was started again.
            sql = "s.conversation_id IN (SELECT conversation_id FROM conversations WHERE runtime_id = ?)"
            conditions[sql] = [wanted.runtime_id]
        conditions |= _search(wanted.search or "")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        is_on = wanted.after is not None
        rows = await self._database.read(
            f"SELECT {_SAID} FROM said s JOIN conversations c USING (conversation_id){where}"
            f" ORDER BY s.seq {'ASC' if is_on else 'DESC'} LIMIT ?",
            (*(value for values in conditions.values() for value in values), limit),
        )
        found = [_message(row) for row in rows]
        return found if is_on else found[::-1]

    async def last(self, conversation_id: str, most: int) -> tuple[list[Message], bool]:
        """The last of a conversation that fit into so many bytes, and whether that is all of it."""
        found: list[Message] = []
        before = None
        while page := await self.messages(Wanted(conversation_id=conversation_id, before=before), _PAGE):
            for each in reversed(page):
                most -= len(each.content.encode("utf-8", "replace")) + _AROUND
                if most < 0:
                    return found[::-1], False
                found.append(each)
            before = page[0].seq
        return found[::-1], True

    async def latest(self) -> dict[tuple[str, str], tuple[str, Timestamp]]:
        """Of each work tree, by target: the last thing that was said there, in a line, and when."""
        rows = await self._database.read(
            "SELECT c.target_id, c.worktree, s.summary, s.at, max(s.seq) FROM conversations c"
            " JOIN said s USING (conversation_id) WHERE c.worktree IS NOT NULL GROUP BY c.target_id, c.worktree"
        )
        return {(row[0], row[1]): (row[2], Timestamp(row[3])) for row in rows}

    async def of_runtimes(self) -> list[Conversation]:
        """Those of runtimes that have not ended."""
        rows = await self._database.read(
            f"SELECT {_COLUMNS} FROM conversations WHERE runtime_id IN"
            " (SELECT runtime_id FROM runtimes WHERE ended_at IS NULL) ORDER BY updated_at"
        )
        return [_conversation(row) for row in rows]


def of_chat(target_id: TargetId, agent_type: str, session_id: str) -> str:
    """The conversation that a chat session hands in itself."""
    return digest("chat", target_id, agent_type, session_id)


def _search(text: str) -> dict[str, list[str | int | None]]:
    """All of these words, wherever and in whatever order, also as pieces of longer ones."""
    # What does not print is never kept, and a NUL would end the query within its quotes.
    words = printable(text).split()
    if len(words) > _MOST_WORDS:
        raise AgtmuxError(
            ErrorCode.USAGE, f"{_MOST_WORDS} words can be searched for at once, and these are {len(words)}"
        )
    long = [word for word in words if len(word) >= _SHORTEST]
    found: dict[str, list[str | int | None]] = {}
    if long:
        quoted = " ".join('"' + word.replace('"', '""') + '"' for word in long)
        found["s.seq IN (SELECT rowid FROM said_index WHERE said_index MATCH ?)"] = [quoted]
    for number, word in enumerate(word for word in words if len(word) < _SHORTEST):
        # Too short for the index.
        pattern = re.sub(r"([\\%_])", r"\\\1", word)
        found[f"s.content LIKE ? ESCAPE '\\' /* {number} */"] = [f"%{pattern}%"]
    return found


def _save(tx: Transaction, it: Conversation) -> None:
    place = it.place
    values: Parameters = (
        *(it.conversation_id, it.target_id, it.agent_type, it.session_id, it.runtime_id, it.cwd, it.worktree),
        *(it.branch, it.title, it.source, it.started_at, it.updated_at),
        *(place.path, place.offset, place.mark, int(place.is_within), it.seen),
    )
    tx.execute(
        f"INSERT INTO conversations ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})"
        " ON CONFLICT (conversation_id) DO UPDATE SET target_id = excluded.target_id, runtime_id = excluded.runtime_id,"
        " path = excluded.path, offset = excluded.offset, mark = excluded.mark, is_within = excluded.is_within,"
        " seen = excluded.seen",
        values,
    )


def _put(tx: Transaction, conversation: Conversation, entry: Entry) -> Message | None:
    """None if it is known already, word for word."""
    message_id = digest(conversation.conversation_id, entry.entry_id)
    before = tx.fetch("SELECT seq, content, at FROM said WHERE message_id = ?", (message_id,))
    if before and before[0][1] == entry.content:
        return None
    if before:
        # Some agents write an answer down before it is whole.
        entry = replace(entry, at=Timestamp(before[0][2]))
        last = tx.fetch("SELECT max(seq) FROM said WHERE conversation_id = ?", (conversation.conversation_id,))
        if before[0][0] == last[0][0]:
            # Whoever has read on to it asks for what is after it. Further up, its place says what it answers.
            tx.execute("DELETE FROM said WHERE message_id = ?", (message_id,))
            before = []
    if before:
        tx.execute(
            "UPDATE said SET content = ?, summary = ?, is_cut = ? WHERE message_id = ?",
            (entry.content, entry.summary, int(entry.is_cut), message_id),
        )
        seq = int(before[0][0])
    else:
        tx.execute(
            "INSERT INTO said (message_id, conversation_id, runtime_id, role, content, summary, at, request_id, is_cut)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(message_id, conversation.conversation_id, conversation.runtime_id, entry.role, entry.content),
                *(entry.summary, entry.at, entry.request_id, int(entry.is_cut)),
            ),
        )
        seq = int(tx.fetch("SELECT seq FROM said WHERE message_id = ?", (message_id,))[0][0])
    return Message(
        seq=seq,
        message_id=message_id,
        conversation_id=conversation.conversation_id,
        target_id=conversation.target_id,
        agent_type=conversation.agent_type,
        runtime_id=conversation.runtime_id,
        worktree=conversation.worktree,
        role=entry.role,
        content=entry.content,
        summary=entry.summary,
        at=entry.at,
        request_id=entry.request_id,
        source=conversation.source,
        is_cut=entry.is_cut,
    )


def _conversation(row: Any) -> Conversation:
    return Conversation(
        conversation_id=row[0],
        target_id=TargetId(row[1]),
        agent_type=row[2],
        session_id=row[3],
        runtime_id=None if row[4] is None else RuntimeId(row[4]),
        cwd=row[5],
        worktree=row[6],
        branch=row[7],
        title=row[8],
        source=row[9],
        started_at=Timestamp(row[10]),
        updated_at=Timestamp(row[11]),
        place=Place(row[12], row[13], row[14], bool(row[15])),
        seen=row[16],
    )


def _message(row: Any) -> Message:
    return Message(
        seq=row[0],
        message_id=row[1],
        conversation_id=row[2],
        target_id=TargetId(row[3]),
        agent_type=row[4],
        runtime_id=None if row[5] is None else RuntimeId(row[5]),
        worktree=row[6],
        role=row[7],
        # It was redacted before it was written.
        content=Redacted(row[8]),
        summary=Redacted(row[9]),
        at=Timestamp(row[10]),
        request_id=row[11],
        source=row[12],
        is_cut=bool(row[13]),
    )
