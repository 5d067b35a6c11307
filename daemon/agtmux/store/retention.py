"""What is forgotten when: payloads first, then the rows, in small bites so that the writer stays free.

Time decides, and size: where the database is larger than it may be, the target that takes the most room loses its
oldest first, so that no target's reports cost another one what is known of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

from agtmux.domain.durations import MICROSECONDS
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.store.writer import Job, Transaction

_BITE: Final = 2_000
_PAGES: Final = 2_000
# Of payloads, and of rows that hold text: a bite of them is some megabytes.
_LARGE_BITE: Final = 200
# What is freed beyond what has to be, so that it is not to be done again at once.
_LOW_WATER: Final = 0.85


# What was deleted leaves the index only when its pieces are put together anew.
_REINDEX: Final = "INSERT INTO said_index (said_index) VALUES ('optimize')"


@dataclass(frozen=True, slots=True)
class Retention:
    payload: int
    metadata: int
    conversations: int = 30 * MICROSECONDS["d"]
    # Bytes of the database.
    most_bytes: int = 512_000_000


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
        await database.writer.write(lambda tx: tx.execute(_REINDEX))
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


# By size


@dataclass(frozen=True, slots=True)
class _Kind:
    """Something of a target's that can be forgotten, oldest first."""

    # Its rows: target, key, moment, and bytes or nearly.
    rows: str
    # What is done to those of a list of keys, how many at a time, and what makes their room free.
    forget: str
    bite: int = _LARGE_BITE
    then: str = ""


_EVENT: Final = "r.target_id AS target, e.rowid AS key, e.ingested_at AS at"
_EVENTS: Final = "events e JOIN runtimes r USING (runtime_id)"
_INBOX: Final = "target_id AS target, rowid AS key, ingested_at AS at"
# In the order in which they are forgotten. Rows count with their place in the indexes, what was said with what it can
# be found by.
_KINDS: Final = (
    _Kind(
        f"SELECT {_EVENT}, length(e.raw_payload) AS size FROM {_EVENTS} WHERE e.raw_payload IS NOT NULL",
        "UPDATE events SET raw_payload = NULL WHERE rowid IN ",
    ),
    _Kind(
        f"SELECT {_INBOX}, length(raw_payload) AS size FROM event_inbox"
        " WHERE raw_payload IS NOT NULL AND status <> 'pending_bind'",
        "UPDATE event_inbox SET raw_payload = NULL WHERE rowid IN ",
    ),
    # What an action did stays with the action.
    _Kind(
        f"SELECT {_EVENT}, 700 AS size FROM {_EVENTS} WHERE e.action_id IS NULL", "DELETE FROM events WHERE rowid IN "
    ),
    _Kind(
        f"SELECT {_INBOX}, 600 AS size FROM event_inbox WHERE status <> 'pending_bind'",
        "DELETE FROM event_inbox WHERE rowid IN ",
    ),
    _Kind(
        "SELECT r.target_id AS target, r.runtime_id AS key, r.ended_at AS at,"
        " sum(coalesce(length(c.verdict_json), 0) + 400) AS size FROM runtimes r"
        " JOIN runtime_source_cursors c USING (runtime_id) WHERE r.ended_at IS NOT NULL GROUP BY r.runtime_id",
        "DELETE FROM runtime_source_cursors WHERE runtime_id IN ",
    ),
    # Never the last of a pane: the next one there counts on from it, so that no old reference can mean it.
    _Kind(
        "SELECT target_id AS target, rowid AS key, ended_at AS at, 600 AS size FROM runtimes r"
        " WHERE ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM runtimes later WHERE later.target_id = r.target_id"
        " AND later.pane_id = r.pane_id AND later.tmux_server_boot_id = r.tmux_server_boot_id"
        " AND later.pane_epoch > r.pane_epoch AND later.last_state_version >= r.last_state_version)",
        "DELETE FROM runtimes WHERE rowid IN ",
    ),
    _Kind(
        "SELECT c.target_id AS target, s.seq AS key, s.at AS at, (length(s.content) + length(s.summary)) * 3 AS size"
        " FROM said s JOIN conversations c USING (conversation_id)",
        "DELETE FROM said WHERE seq IN ",
        _BITE,
        _REINDEX,
    ),
)


async def shrink(database: Database, most_bytes: int) -> int:
    """Bring the database below its size where it is above; returns how many rows were touched."""
    if database.size() <= most_bytes:
        return 0
    touched = 0
    if await _used(database) > most_bytes:
        touched = await _forget_largest(database, int(most_bytes * _LOW_WATER))
    await _shorten(database)
    return touched


async def _forget_largest(database: Database, goal: int) -> int:
    totals: Counter[str] = Counter()
    sizes: list[dict[str, int]] = []
    for kind in _KINDS:
        sizes.append(dict(await database.read(f"SELECT target, sum(size) FROM ({kind.rows}) GROUP BY target")))
        totals.update(sizes[-1])
    # Where each target's oldest is that is still there, of each kind.
    begins: Counter[tuple[int, str]] = Counter()
    touched = 0
    while totals and await _used(database) > goal:
        target, _ = totals.most_common(1)[0]
        number = next((each for each, found in enumerate(sizes) if target in found), None)
        if number is None:
            del totals[target]
            continue
        kind = _KINDS[number]
        oldest = await database.read(
            f"SELECT key, at, size FROM ({kind.rows}) WHERE target = ? AND at >= ? ORDER BY at LIMIT ?",
            (target, begins[number, target], kind.bite),
        )
        if oldest:
            await database.writer.write(_bite_of(kind, [row[0] for row in oldest]))
            touched += len(oldest)
            begins[number, target] = oldest[-1][1]
            totals[target] -= sum(row[2] for row in oldest)
        if len(oldest) < kind.bite:
            del sizes[number][target]
        await asyncio.sleep(0)
    return touched


async def _used(database: Database) -> int:
    """Bytes of the pages that hold something."""
    pages, free, size = [
        int((await database.read(f"PRAGMA {name}"))[0][0]) for name in ("page_count", "freelist_count", "page_size")
    ]
    return (pages - free) * size


async def _shorten(database: Database) -> None:
    """Give the file's free pages back to the disk, some at a time."""
    free = int((await database.read("PRAGMA freelist_count"))[0][0])
    while free > 0:
        await database.writer.write(_give_back)
        left = int((await database.read("PRAGMA freelist_count"))[0][0])
        if left >= free:
            # A file that was made without this, or what is freed meanwhile; the pages are used again.
            return
        free = left
        await asyncio.sleep(0)
    # Until then the pages are still in the file.
    await database.writer.checkpoint()


def _bite_of(kind: _Kind, keys: list[str | int]) -> Job[None]:
    def job(tx: Transaction) -> None:
        tx.execute(f"{kind.forget}({', '.join('?' * len(keys))})", keys)
        if kind.then:
            tx.execute(kind.then)

    return job
