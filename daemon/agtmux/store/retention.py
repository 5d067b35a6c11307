"""What is forgotten when: payloads first, then the rows, in small bites so that the writer stays free."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from agtmux.domain.durations import MICROSECONDS
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.store.writer import Job, Transaction

_BITE: Final = 2_000
_PAGES: Final = 2_000


@dataclass(frozen=True, slots=True)
class Retention:
    payload: int
    metadata: int
    conversations: int = 30 * MICROSECONDS["d"]


# Each forgets at most one bite; the first parameter is the moment before which, the second the size of the bite.
_PAYLOADS: Final = (
    "UPDATE events SET raw_payload = NULL WHERE rowid IN (SELECT rowid FROM events"
    " WHERE ingested_at < ? AND raw_payload IS NOT NULL LIMIT ?)",
    "UPDATE event_inbox SET raw_payload = NULL WHERE rowid IN (SELECT rowid FROM event_inbox"
    " WHERE ingested_at < ? AND raw_payload IS NOT NULL LIMIT ?)",
    "UPDATE messages SET content = NULL, thinking = NULL WHERE seq IN (SELECT seq FROM messages"
    " WHERE settled_at < ? AND content IS NOT NULL LIMIT ?)",
)
_SAID: Final = (
    "DELETE FROM said WHERE seq IN (SELECT seq FROM said WHERE at < ? LIMIT ?)",
    # As long as an agent is at it, how far its file was read must be known.
    "DELETE FROM conversations WHERE conversation_id IN (SELECT conversation_id FROM conversations c"
    " WHERE updated_at < ? AND NOT EXISTS (SELECT 1 FROM said s WHERE s.conversation_id = c.conversation_id)"
    " AND NOT EXISTS (SELECT 1 FROM runtimes r WHERE r.runtime_id = c.runtime_id AND r.ended_at IS NULL) LIMIT ?)",
)
_ROWS: Final = (
    "DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE ingested_at < ? LIMIT ?)",
    "DELETE FROM event_inbox WHERE rowid IN (SELECT rowid FROM event_inbox"
    " WHERE ingested_at < ? AND status <> 'pending_bind' LIMIT ?)",
    "DELETE FROM action_snapshots WHERE rowid IN (SELECT rowid FROM action_snapshots WHERE observed_at < ? LIMIT ?)",
    "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE settled_at < ? LIMIT ?)",
    # Its own event came after it, and goes first.
    "DELETE FROM actions WHERE rowid IN (SELECT rowid FROM actions a WHERE requested_at < ?"
    " AND completed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events e WHERE e.action_id = a.action_id)"
    " AND NOT EXISTS (SELECT 1 FROM action_snapshots s WHERE s.action_id = a.action_id) LIMIT ?)",
    # As long as its pane is there, whoever launched it may stop it.
    "DELETE FROM launches WHERE action_id IN (SELECT action_id FROM launches l WHERE requested_at < ?"
    " AND NOT EXISTS (SELECT 1 FROM panes p WHERE p.target_id = l.target_id AND p.pane_id = l.pane_id) LIMIT ?)",
    "DELETE FROM runtime_source_cursors WHERE runtime_id IN (SELECT runtime_id FROM runtimes"
    " WHERE ended_at < ? LIMIT ?)",
    "DELETE FROM runtimes WHERE rowid IN (SELECT rowid FROM runtimes WHERE ended_at < ? AND NOT EXISTS"
    " (SELECT 1 FROM runtime_source_cursors c WHERE c.runtime_id = runtimes.runtime_id) LIMIT ?)",
)


async def forget(database: Database, retention: Retention, now: Timestamp) -> int:
    """Forget all that is due; returns how many rows were touched."""
    touched = 0
    has_said = False
    due = [(sql, now - retention.payload) for sql in _PAYLOADS]
    due += [(sql, now - retention.metadata) for sql in _ROWS]
    due += [(sql, now - retention.conversations) for sql in _SAID]
    for sql, before in due:
        while count := await database.writer.write(_bite(sql, before)):
            touched += count
            has_said |= sql in _SAID
            if count < _BITE:
                break
            await asyncio.sleep(0)
    if has_said:
        # What was deleted leaves the index only when its pieces are put together anew.
        await database.writer.write(lambda tx: tx.execute("INSERT INTO said_index (said_index) VALUES ('optimize')"))
    if touched:
        await database.writer.write(_give_back)
    return touched


def _bite(sql: str, before: int) -> Job[int]:
    def job(tx: Transaction) -> int:
        tx.execute(sql, (before, _BITE))
        return int(tx.fetch("SELECT changes()")[0][0])

    return job


def _give_back(tx: Transaction) -> None:
    # One page at a time: Python's sqlite3 makes only the first step of a statement that returns no columns.
    free = tx.fetch("PRAGMA freelist_count")[0][0]
    for _ in range(min(free, _PAGES)):
        tx.execute("PRAGMA incremental_vacuum(1)")
