"""Messages on the disk. Every step that one takes is a row's change that happens only if it was where it should be, so
that two who want the same message never both have it.

A row holds the redacted form of its message and never anything else. Where that differs from what was sent, the text is
in `cleartexts.py` until the message has ended, and only those who deliver it or are given it get it from there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, MessageType, Party, Priority, Reason, Stage, Status, Via
from agtmux.domain.redact import redact_text
from agtmux.domain.runtimes import RuntimeId
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.cleartexts import LONGEST_KEPT, READ_AGAIN, ClearTexts
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

_COLUMNS: Final = (
    "seq, message_id, sender_id, sender_name, receiver_id, receiver_name, request_ref, type, priority, content,"
    " thinking, size, reply_to, task_id, correlation_id, sent_at, expires_at, status, reason, stage, via, attempts,"
    " action_id, settled_at, is_redacted"
)
# Rows of an earlier agtmux that are redacted in one transaction.
_BITE: Final = 50
# A text that is longer is redacted in a thread of its own.
_LONG: Final = 20_000
# Bytes of messages that are handed over at once. An answer to an agent has each text twice, the second time as JSON in
# JSON, up to six times as long in all, and its bridge takes no more than 16 MiB.
_MOST_TOLD: Final = 2_000_000
# Of a message's id, so that it can be copied from a table.
_SHORTEST_ID: Final = 6


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages; what is None does not matter."""

    # From it or to it.
    party: Party | None = None
    receiver_id: RuntimeId | None = None
    receiver_name: str | None = None
    # To any of these, who may be none.
    receivers: tuple[RuntimeId, ...] | None = None
    sender_id: RuntimeId | None = None
    status: Status | None = None
    type: MessageType | None = None
    correlation_id: str | None = None
    # Of the request that they came with; a broadcast's messages have one each that begins with it.
    request_ref: str | None = None
    since: Timestamp | None = None


class Mailbox:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._clear = ClearTexts(database.path.parent)
        self._sweeps: set[asyncio.Future[None]] = set()

    async def put(self, messages: Sequence[Message]) -> list[Message]:
        """Accept them, all or none; one that was asked for with the same reference before is told as it is."""
        return await self.putting(messages)

    def putting(self, messages: Sequence[Message]) -> asyncio.Future[list[Message]]:
        """The same for one who may leave meanwhile: it is done all the same."""
        return asyncio.ensure_future(self._put(messages))

    async def _put(self, messages: Sequence[Message]) -> list[Message]:
        texts = {text for each in messages for text in (each.content, each.thinking) if text}
        if sum(map(len, texts)) > _LONG:
            redacted = await asyncio.to_thread(_redacted, texts)
        else:
            redacted = _redacted(texts)

        def job(tx: Transaction) -> list[Message]:
            return [self._put_one(tx, _sealed(message, redacted), message) for message in messages]

        return await self._database.writer.begin(job)

    def _put_one(self, tx: Transaction, sealed: Message, message: Message) -> Message:
        """`sealed` is `message` as the database has it."""
        if (earlier := _requested(tx, sealed)) is not None:
            return earlier
        if sealed.is_redacted and not sealed.status.is_over:
            self._clear.write(sealed.message_id, message.content or "")
        kept = _inserted(tx, sealed)
        return kept if sealed.status.is_over else replace(kept, content=message.content, is_redacted=False)

    async def begin(self, message: Message) -> Message | None:
        """Its typing begins; None if it is not to be had any more."""
        return await self._step(
            "UPDATE messages SET status = 'delivering', stage = 'pasting', reason = '', attempts = attempts + 1"
            " WHERE message_id = ? AND status = 'queued'",
            (message.message_id,),
            message.message_id,
        )

    async def enter(self, message: Message) -> Message | None:
        """It stands in the prompt, and Enter is pressed next."""
        return await self._step(
            "UPDATE messages SET stage = 'entering' WHERE message_id = ? AND status = 'delivering'",
            (message.message_id,),
            message.message_id,
        )

    async def stay(self, message: Message) -> Message | None:
        """It stood in the prompt, and Enter was surely not pressed."""
        return await self._step(
            "UPDATE messages SET stage = 'typed' WHERE message_id = ? AND status = 'delivering'",
            (message.message_id,),
            message.message_id,
        )

    async def back(self, message: Message, reason: Reason) -> Message | None:
        """Nothing of it was typed; it waits again."""
        return await self._step(
            "UPDATE messages SET status = 'queued', stage = '', reason = ? WHERE message_id = ?"
            " AND status IN ('queued', 'delivering')",
            (reason, message.message_id),
            message.message_id,
        )

    async def note(self, message: Message, reason: Reason) -> Message | None:
        """Why it waits, wherever it is; and with it all that wait behind it."""
        return await self._step(
            "UPDATE messages SET reason = ? WHERE status IN ('queued', 'delivering') AND receiver_id ="
            " (SELECT receiver_id FROM messages WHERE message_id = ? AND status IN ('queued', 'delivering'))",
            (reason, message.message_id),
            message.message_id,
        )

    async def settle(
        self,
        message: Message,
        now: Timestamp,
        status: Status,
        reason: Reason = Reason.NONE,
        via: Via = Via.NONE,
        action_id: str | None = None,
    ) -> Message | None:
        """The end of it; None if it has ended otherwise. What is being typed is not refused any more."""
        before = "('queued')" if status in (Status.REFUSED, Status.EXPIRED) else "('queued', 'delivering')"
        return await self._step(
            "UPDATE messages SET status = ?, reason = ?, via = ?, settled_at = ?, action_id = coalesce(?, action_id)"
            f" WHERE message_id = ? AND status IN {before}",
            (status, reason, via, now, action_id, message.message_id),
            message.message_id,
        )

    async def take(self, receiver: Party, now: Timestamp, most: int, reply_to: str | None = None) -> list[Message]:
        """What waits for it, handed over: the more urgent first, and no more than fits into one answer."""
        whose, name = ("receiver_id = ?", str(receiver.runtime_id))
        if receiver.runtime_id is None:
            whose, name = ("receiver_id IS NULL AND receiver_name = ?", receiver.name)
        matching = "" if reply_to is None else " AND reply_to = ?"
        parameters: list[str | int | None] = [name, *([] if reply_to is None else [reply_to]), most]

        def job(tx: Transaction) -> tuple[list[Message], bool]:
            rows = tx.fetch(
                f"SELECT {_COLUMNS} FROM messages WHERE {whose} AND status = 'queued'{matching}"
                " ORDER BY priority DESC, seq LIMIT ?",
                parameters,
            )
            found = [_read(row) for row in rows]
            taken = that_fit([self.whole(each) for each in found])
            tx.execute_many(
                "UPDATE messages SET status = 'delivered', reason = '', via = 'pulled', settled_at = ?"
                " WHERE message_id = ?",
                [(now, each.message_id) for each in taken],
            )
            done, way = Status.DELIVERED, Via.PULLED
            has_secrets = any(each.is_redacted for each in found[: len(taken)])
            return [
                replace(each, status=done, reason=Reason.NONE, via=way, settled_at=now) for each in taken
            ], has_secrets

        taken, has_secrets = await self._database.writer.write(job)
        if has_secrets:
            # What was fetched can be read again for a while, and is gone then.
            later = Timestamp(now + READ_AGAIN)
            asyncio.get_running_loop().call_later(READ_AGAIN / SECOND, lambda: self._sweep_later(later))
        return taken

    def _sweep_later(self, now: Timestamp) -> None:
        task = asyncio.ensure_future(self.sweep(now))
        self._sweeps.add(task)
        task.add_done_callback(self._sweeps.discard)

    def whole(self, message: Message) -> Message:
        """As it was sent, as long as its text is there; for those who deliver it or are given it."""
        text = self._clear.read(message.message_id) if message.is_redacted else None
        return message if text is None else replace(message, content=text, is_redacted=False)

    async def sweep(self, now: Timestamp) -> None:
        """Texts of messages that have ended, or that have waited for too long, are removed."""

        def job(tx: Transaction) -> None:
            for message_id in self._clear.ids():
                rows = tx.fetch(f"SELECT {_COLUMNS} FROM messages WHERE message_id = ?", (message_id,))
                if not rows or not _keeps_text(_read(rows[0]), now):
                    self._clear.remove(message_id)

        if self._clear.ids():
            await self._database.writer.write(job)

    async def redact_old(self) -> None:
        """Rows that an earlier agtmux wrote as they were sent are made like the others."""
        touched = False
        while await self._database.writer.write(self._redact_bite):
            touched = True
        if touched:
            # What they held is in the log of the database still.
            await self._database.writer.checkpoint()

    def _redact_bite(self, tx: Transaction) -> int:
        rows = tx.fetch(f"SELECT {_COLUMNS} FROM messages WHERE is_redacted IS NULL LIMIT ?", (_BITE,))
        for old in map(_read, rows):
            sealed = _sealed(old, _redacted({text for text in (old.content, old.thinking) if text}))
            if sealed.is_redacted and not sealed.status.is_over:
                self._clear.write(old.message_id, old.content or "")
            tx.execute(
                "UPDATE messages SET content = ?, thinking = ?, expires_at = ?, is_redacted = ? WHERE message_id = ?",
                (sealed.content, sealed.thinking, sealed.expires_at, int(sealed.is_redacted), old.message_id),
            )
        return len(rows)

    async def give_back(self, taken: Sequence[Message]) -> list[Message]:
        """They wait again: whoever took them was not there any more to have them."""

        def job(tx: Transaction) -> None:
            tx.execute_many(
                "UPDATE messages SET status = 'queued', via = '', settled_at = NULL, reason = ? WHERE message_id = ?",
                [(each.receiver.waits_for, each.message_id) for each in taken],
            )

        await self._database.writer.write(job)
        return [
            replace(each, status=Status.QUEUED, reason=each.receiver.waits_for, via=Via.NONE, settled_at=None)
            for each in taken
        ]

    async def waiting_for(self, name: str) -> tuple[int, int]:
        """How many wait for one who is no agent, and how large they are together."""
        rows = await self._database.read(
            "SELECT count(*), coalesce(sum(size), 0) FROM messages"
            " WHERE status = 'queued' AND receiver_id IS NULL AND receiver_name = ?",
            (name,),
        )
        return int(rows[0][0]), int(rows[0][1])

    async def open(self) -> list[Message]:
        """All for agents that have not ended."""
        where = "WHERE status IN ('queued', 'delivering') AND receiver_id IS NOT NULL ORDER BY seq"
        return [self.whole(message) for message in await self._select(where, ())]

    async def sent_since(self, moment: Timestamp) -> list[tuple[str, str, Timestamp]]:
        # An answer to a ping is ours, in the name of who was asked.
        rows = await self._database.read(
            "SELECT sender_name, receiver_name, sent_at FROM messages"
            " WHERE sent_at > ? AND NOT (type = 'pong' AND via = 'agtmux') ORDER BY sent_at",
            (moment,),
        )
        return [(row[0], row[1], Timestamp(row[2])) for row in rows]

    async def listing(self, wanted: Wanted, limit: int) -> list[Message]:
        """The newest first."""
        conditions: dict[str, list[str | int | None]] = {}
        if wanted.party is not None:
            one = wanted.party
            key, value = ("id", one.runtime_id) if one.runtime_id is not None else ("name", one.name)
            conditions[f"(sender_{key} = ? OR receiver_{key} = ?)"] = [value, value]
        if wanted.receivers is not None:
            conditions[f"receiver_id IN ({', '.join('?' * len(wanted.receivers))})"] = list(wanted.receivers)
        if wanted.request_ref is not None:
            one_each = f"{wanted.request_ref}:"
            values_of = [wanted.request_ref, one_each, one_each + chr(sys.maxunicode)]
            conditions["(request_ref = ? OR (request_ref >= ? AND request_ref < ?))"] = [*values_of]
        for condition, only in {
            "receiver_id = ?": wanted.receiver_id,
            "receiver_name = ?": wanted.receiver_name,
            "sender_id = ?": wanted.sender_id,
            "status = ?": wanted.status,
            "type = ?": wanted.type,
            "correlation_id = ?": wanted.correlation_id,
            "sent_at >= ?": wanted.since,
        }.items():
            if only is not None:
                conditions[condition] = [only]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        values = [value for each in conditions.values() for value in each]
        return await self._select(f"{where} ORDER BY seq DESC LIMIT ?", (*values, limit))

    async def find(self, message_id: str) -> Message:
        """The one with that id, or with an id that begins so."""
        if not _SHORTEST_ID <= len(message_id) <= 64:
            raise AgtmuxError(ErrorCode.USAGE, f"a message_id has {_SHORTEST_ID} characters at least")
        # A range, as there is an index for that.
        beyond = message_id + chr(sys.maxunicode)
        found = await self._select("WHERE message_id >= ? AND message_id < ? LIMIT 2", (message_id, beyond))
        if len(found) > 1:
            raise AgtmuxError(ErrorCode.REF_AMBIGUOUS, f"several messages begin with {message_id!r}; give the whole id")
        if not found:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"no message has the id {message_id!r}")
        return found[0]

    async def _step(self, sql: str, values: Sequence[str | int | None], message_id: str) -> Message | None:
        def job(tx: Transaction) -> Message | None:
            tx.execute(sql, values)
            if not tx.fetch("SELECT changes()")[0][0]:
                return None
            message = _read(tx.fetch(f"SELECT {_COLUMNS} FROM messages WHERE message_id = ?", (message_id,))[0])
            return message if message.status.is_over else self.whole(message)

        message = await self._database.writer.write(job)
        if message is not None and message.is_redacted and message.status.is_over:
            # After the commit: a daemon that is killed in between removes it at its next start.
            await self._database.writer.write(lambda tx: self._clear.remove(message_id))
        return message

    async def _select(self, where: str, values: Sequence[str | int | None]) -> list[Message]:
        return [_read(row) for row in await self._database.read(f"SELECT {_COLUMNS} FROM messages {where}", values)]


def that_fit(messages: list[Message]) -> list[Message]:
    """The first of them that can be told in one answer, which is one at least."""
    size = 0
    for number, message in enumerate(messages):
        size += message.size
        if number and size > _MOST_TOLD:
            return messages[:number]
    return messages


def _redacted(texts: Collection[str]) -> dict[str, str]:
    return {text: redact_text(text) for text in texts}


def _sealed(message: Message, redacted: Mapping[str, str]) -> Message:
    """As the database may have it."""
    content = None if message.content is None else str(redacted.get(message.content, message.content))
    is_redacted = content != message.content
    expires_at = message.expires_at
    if is_redacted and message.receiver.runtime_id is not None:
        expires_at = min(expires_at, Timestamp(message.sent_at + LONGEST_KEPT))
    thinking = None if message.thinking is None else str(redacted.get(message.thinking, message.thinking))
    return replace(message, content=content, thinking=thinking, is_redacted=is_redacted, expires_at=expires_at)


def _keeps_text(message: Message, now: Timestamp) -> bool:
    if message.settled_at is not None:
        return message.via is Via.PULLED and now - message.settled_at < READ_AGAIN
    # One for an agent expires by then.
    return message.receiver.runtime_id is not None or now - message.sent_at < LONGEST_KEPT


def _requested(tx: Transaction, message: Message) -> Message | None:
    if message.request_ref is None:
        return None
    rows = tx.fetch(
        f"SELECT {_COLUMNS} FROM messages WHERE coalesce(sender_id, sender_name) = ? AND request_ref = ?",
        (message.sender.runtime_id or message.sender.name, message.request_ref),
    )
    if not rows:
        return None
    found = _read(rows[0])
    if (found.receiver, found.type, found.content, found.size) != (
        message.receiver,
        message.type,
        message.content,
        message.size,
    ):
        raise AgtmuxError(
            ErrorCode.IDEMPOTENCY_CONFLICT,
            f"the request {message.request_ref[:64]!r} was made before and asked for something else; give another",
            {"message_id": found.message_id},
        )
    return found


def _inserted(tx: Transaction, message: Message) -> Message:
    values = (
        message.message_id,
        message.sender.runtime_id,
        message.sender.name,
        message.receiver.runtime_id,
        message.receiver.name,
        message.request_ref,
        message.type,
        message.priority.rank,
        message.content,
        message.thinking,
        message.size,
        message.reply_to,
        message.task_id,
        message.correlation_id,
        message.sent_at,
        message.expires_at,
        message.status,
        message.reason,
        message.via,
        message.settled_at,
        int(message.is_redacted),
    )
    seq = tx.insert(
        "INSERT INTO messages (message_id, sender_id, sender_name, receiver_id, receiver_name, request_ref, type,"
        " priority, content, thinking, size, reply_to, task_id, correlation_id, sent_at, expires_at, status, reason,"
        f" via, settled_at, is_redacted) VALUES ({', '.join('?' * len(values))})",
        values,
    )
    return replace(message, seq=seq)


def _read(row: Any) -> Message:
    return Message(
        seq=row[0],
        message_id=row[1],
        sender=Party(row[3], None if row[2] is None else RuntimeId(row[2])),
        receiver=Party(row[5], None if row[4] is None else RuntimeId(row[4])),
        request_ref=row[6],
        type=MessageType(row[7]),
        priority=Priority.of_rank(row[8]),
        content=row[9],
        thinking=row[10],
        size=row[11],
        reply_to=row[12],
        task_id=row[13],
        correlation_id=row[14],
        sent_at=Timestamp(row[15]),
        expires_at=Timestamp(row[16]),
        status=Status(row[17]),
        reason=Reason(row[18]),
        stage=Stage(row[19]),
        via=Via(row[20]),
        attempts=row[21],
        action_id=row[22],
        settled_at=None if row[23] is None else Timestamp(row[23]),
        is_redacted=bool(row[24]),
    )
