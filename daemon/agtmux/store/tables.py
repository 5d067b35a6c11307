"""The statements: what is written to which table, and how a row becomes a value again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agtmux.domain.events import Event
from agtmux.domain.panes import Pane, Target, TargetKind
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.runtimes import BootId, PaneId, PaneInstance, Runtime, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Health, Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record, StateRow
from agtmux.engine.order import OrderKey
from agtmux.engine.resolve import Signal
from agtmux.store.codec import decode_attention, decode_evidence, decode_verdict, encode
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

EventKey = tuple[str, str, str]
InboxKey = tuple[str, str, str, str]

_EVENT_KEY = ("runtime_id", "source", "dedupe_key")
_INBOX_KEY = ("target_id", "pane_id", "source", "dedupe_key")
# An event asks with at most four variables a statement, and SQLite takes 32,766.
MAX_EVENTS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class InboxEntry:
    event: Event
    status: str
    runtime_id: RuntimeId | None = None
    reason_code: str | None = None


def event_key(whose: RuntimeId, event: Event) -> EventKey:
    return whose, event.source.value, event.dedupe_key


def inbox_key(event: Event) -> InboxKey:
    return str(event.target_id), str(event.pane_id), event.source.value, event.dedupe_key


@dataclass(slots=True)
class Known:
    """Of the identities asked for, those the store has seen before."""

    event_ids: set[str] = field(default_factory=set)
    inbox_keys: set[InboxKey] = field(default_factory=set)
    event_keys: set[EventKey] = field(default_factory=set)

    def __ior__(self, other: Known) -> Known:
        self.event_ids |= other.event_ids
        self.inbox_keys |= other.inbox_keys
        self.event_keys |= other.event_keys
        return self


def known(
    tx: Transaction, event_ids: Sequence[str], inbox_keys: Sequence[InboxKey], event_keys: Sequence[EventKey]
) -> Known:
    ids = [(event_id,) for event_id in event_ids]
    kept = _found(tx, "events", ("event_id",), ids)
    waiting = _found(tx, "event_inbox", ("inbox_id",), ids)
    return Known(
        event_ids={key[0] for key in kept | waiting},
        inbox_keys=_found(tx, "event_inbox", _INBOX_KEY, inbox_keys),
        event_keys=_found(tx, "events", _EVENT_KEY, event_keys),
    )


def _found(tx: Transaction, table: str, columns: tuple[str, ...], keys: Sequence[tuple[str, ...]]) -> set[Any]:
    if not keys:
        return set()
    asked = [f"asked{number}" for number in range(len(columns))]
    values = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * len(keys))
    matches = " AND ".join(f"{column} = {name}" for column, name in zip(columns, asked, strict=True))
    # CROSS JOIN fixes the order: each key is looked up in the index. With `(a, b) IN (VALUES …)` SQLite walks through
    # the whole table instead.
    rows = tx.fetch(
        f"WITH asked ({', '.join(asked)}) AS (VALUES {values})"
        f" SELECT {', '.join(asked)} FROM asked CROSS JOIN {table} ON {matches}",
        [part for key in keys for part in key],
    )
    return set(rows)


def insert_events(tx: Transaction, events: Iterable[tuple[RuntimeId, Event]]) -> None:
    """Each with the runtime it belongs to."""
    tx.execute_many(
        "INSERT INTO events (event_id, runtime_id, event_type, source, source_event_id, source_seq, event_time,"
        " ingested_at, dedupe_key, action_id, raw_payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                event.event_id,
                whose,
                event.event_type,
                event.source.value,
                event.source_event_id,
                event.source_seq,
                event.event_time,
                event.ingested_at,
                event.dedupe_key,
                event.action_id,
                _plain(event.raw_payload),
            )
            for whose, event in events
        ],
    )


def upsert_inbox(tx: Transaction, entries: Iterable[InboxEntry]) -> None:
    """A bound event's payload and verdict live on in `events` and its cursor; the inbox keeps only the fact."""
    tx.execute_many(
        "INSERT INTO event_inbox (inbox_id, target_id, pane_id, runtime_id, event_type, source, source_event_id,"
        " source_seq, dedupe_key, event_time, ingested_at, pid, start_hint, agent_type, server_pid, status,"
        " reason_code, verdict_json, raw_payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (inbox_id) DO UPDATE SET runtime_id = excluded.runtime_id, status = excluded.status,"
        " reason_code = excluded.reason_code, verdict_json = excluded.verdict_json,"
        " raw_payload = excluded.raw_payload",
        [
            (
                entry.event.event_id,
                entry.event.target_id,
                entry.event.pane_id,
                entry.runtime_id,
                entry.event.event_type,
                entry.event.source.value,
                entry.event.source_event_id,
                entry.event.source_seq,
                entry.event.dedupe_key,
                entry.event.event_time,
                entry.event.ingested_at,
                entry.event.pid,
                entry.event.start_hint,
                entry.event.agent_type,
                entry.event.server_pid,
                entry.status,
                entry.reason_code,
                encode(entry.event.verdict) if entry.status == "pending_bind" else None,
                None if entry.status == "bound" else _plain(entry.event.raw_payload),
            )
            for entry in entries
        ],
    )


async def load_pending(database: Database) -> list[Event]:
    rows = await database.read(
        "SELECT inbox_id, event_type, source, dedupe_key, event_time, ingested_at, source_event_id, source_seq,"
        " target_id, pane_id, pid, start_hint, agent_type, raw_payload, verdict_json, server_pid FROM event_inbox"
        " WHERE status = 'pending_bind' ORDER BY ingested_at"
    )
    return [
        Event(
            event_id=row[0],
            event_type=row[1],
            source=Source(row[2]),
            dedupe_key=row[3],
            event_time=Timestamp(row[4]),
            ingested_at=Timestamp(row[5]),
            source_event_id=row[6],
            source_seq=row[7],
            target_id=TargetId(row[8]),
            pane_id=PaneId(row[9]),
            pid=row[10],
            start_hint=None if row[11] is None else Timestamp(row[11]),
            agent_type=row[12],
            raw_payload=None if row[13] is None else Redacted(row[13]),
            verdict=decode_verdict(row[14]),
            server_pid=row[15],
        )
        for row in rows
    ]


def save_records(tx: Transaction, records: Iterable[Record]) -> None:
    """States and cursors of runtimes that changed."""
    kept = list(records)
    tx.execute_many(
        "INSERT OR REPLACE INTO states (target_id, pane_id, runtime_id, state, reason_code, confidence, source,"
        " state_version, last_source_seq, last_seen_at, updated_at, attention_json, evidence_json)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                record.runtime.target_id,
                record.runtime.pane_id,
                record.runtime.runtime_id,
                record.row.state.value,
                str(record.row.reason_code),
                record.row.confidence.value,
                None if record.row.source is None else record.row.source.value,
                record.row.state_version,
                record.row.last_source_seq,
                record.row.last_seen_at,
                record.row.updated_at,
                encode(record.row.attention),
                encode(record.row.evidence),
            )
            for record in kept
        ],
    )
    tx.execute_many(
        "INSERT OR REPLACE INTO runtime_source_cursors (runtime_id, source, last_readable, last_source_seq,"
        " last_order_event_time, last_order_ingested_at, last_order_event_id, event_type, verdict_json)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            _cursor_row(record.runtime.runtime_id, source, key, record.signals.get(source))
            for record in kept
            for source, key in record.cursors.items()
        ],
    )


def _cursor_row(runtime_id: str, source: Source, key: OrderKey, signal: Signal | None) -> tuple[Any, ...]:
    return (
        runtime_id,
        source.value,
        int(key.readable),
        key.source_seq if key.numbered else None,
        key.effective_event_time,
        key.ingested_at,
        key.event_id,
        signal.event_type if signal is not None else "",
        encode(signal.verdict) if signal is not None else None,
    )


async def load_records(database: Database) -> list[Record]:
    """All active runtimes with what decides their state."""
    cursors: dict[str, dict[Source, OrderKey]] = {}
    signals: dict[str, dict[Source, Signal]] = {}
    for row in await database.read(
        "SELECT c.runtime_id, c.source, c.last_readable, c.last_source_seq, c.last_order_event_time,"
        " c.last_order_ingested_at, c.last_order_event_id, c.event_type, c.verdict_json"
        " FROM runtime_source_cursors c JOIN runtimes r USING (runtime_id) WHERE r.ended_at IS NULL"
    ):
        source = Source(row[1])
        key = OrderKey(
            readable=bool(row[2]),
            numbered=row[3] is not None,
            source_seq=row[3] or 0,
            effective_event_time=Timestamp(row[4]),
            ingested_at=Timestamp(row[5]),
            event_id=row[6],
        )
        cursors.setdefault(row[0], {})[source] = key
        if (verdict := decode_verdict(row[8])) is not None:
            signals.setdefault(row[0], {})[source] = Signal(source, row[7], key, verdict)
    rows = await database.read(
        "SELECT r.runtime_id, r.target_id, r.tmux_server_boot_id, r.pane_id, r.pane_epoch, r.agent_type, r.pid,"
        " r.started_at, r.agent_version, s.state, s.reason_code, s.confidence, s.source, s.state_version,"
        " s.last_source_seq, s.last_seen_at, s.updated_at, s.attention_json, s.evidence_json"
        " FROM runtimes r JOIN states s USING (runtime_id) WHERE r.ended_at IS NULL"
    )
    return [
        Record(
            runtime=Runtime(
                runtime_id=RuntimeId(row[0]),
                instance=PaneInstance(TargetId(row[1]), BootId(row[2]), PaneId(row[3])),
                pane_epoch=row[4],
                agent_type=row[5],
                pid=row[6],
                started_at=Timestamp(row[7]),
                agent_version=row[8],
            ),
            row=StateRow(
                state=State(row[9]),
                reason_code=row[10],
                confidence=Confidence(row[11]),
                source=None if row[12] is None else Source(row[12]),
                state_version=row[13],
                last_source_seq=row[14],
                last_seen_at=None if row[15] is None else Timestamp(row[15]),
                updated_at=Timestamp(row[16]),
                attention=decode_attention(row[17]),
                evidence=decode_evidence(row[18]),
            ),
            signals=signals.get(row[0], {}),
            cursors=cursors.get(row[0], {}),
        )
        for row in rows
    ]


def insert_runtimes(tx: Transaction, runtimes: Iterable[Runtime]) -> None:
    tx.execute_many(
        "INSERT INTO runtimes (runtime_id, target_id, pane_id, tmux_server_boot_id, pane_epoch, agent_type,"
        " agent_version, pid, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        [
            (
                runtime.runtime_id,
                runtime.target_id,
                runtime.pane_id,
                runtime.instance.tmux_server_boot_id,
                runtime.pane_epoch,
                runtime.agent_type,
                runtime.agent_version,
                runtime.pid,
                runtime.started_at,
            )
            for runtime in runtimes
        ],
    )


def end_runtimes(tx: Transaction, records: Iterable[Record], ended_at: Timestamp) -> None:
    tx.execute_many(
        "UPDATE runtimes SET ended_at = ?, last_state_version = ? WHERE runtime_id = ?",
        [(ended_at, record.row.state_version, record.runtime.runtime_id) for record in records],
    )


def last_epoch(tx: Transaction, instance: PaneInstance) -> int:
    rows = tx.fetch(
        "SELECT coalesce(max(pane_epoch), 0) FROM runtimes"
        " WHERE target_id = ? AND tmux_server_boot_id = ? AND pane_id = ?",
        (instance.target_id, instance.tmux_server_boot_id, instance.pane_id),
    )
    return int(rows[0][0])


def last_state_version(tx: Transaction, target_id: TargetId, pane_id: PaneId) -> int:
    """Of the pane's former inhabitants."""
    rows = tx.fetch(
        "SELECT coalesce(max(last_state_version), 0) FROM runtimes WHERE target_id = ? AND pane_id = ?",
        (target_id, pane_id),
    )
    return int(rows[0][0])


def save_panes(tx: Transaction, panes: Iterable[Pane], now: Timestamp) -> None:
    tx.execute_many(
        "INSERT OR REPLACE INTO panes (target_id, pane_id, session_name, window_id, window_name, title, cwd,"
        " branch, worktree, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                pane.target_id,
                pane.pane_id,
                _plain(redact_text(pane.session_name)),
                pane.window_id,
                _plain(redact_text(pane.window_name)),
                _plain(redact_text(pane.title)),
                _plain(redact_text(pane.cwd)),
                _plain(redact_text(pane.branch)),
                _plain(redact_text(pane.worktree)),
                now,
            )
            for pane in panes
        ],
    )


def delete_panes(tx: Transaction, keys: Iterable[tuple[TargetId, PaneId]]) -> None:
    gone = list(keys)
    tx.execute_many("DELETE FROM panes WHERE target_id = ? AND pane_id = ?", gone)
    tx.execute_many("DELETE FROM states WHERE target_id = ? AND pane_id = ?", gone)


async def load_panes(database: Database) -> list[Pane]:
    rows = await database.read(
        "SELECT target_id, pane_id, session_name, window_id, window_name, title, cwd, branch, worktree FROM panes"
    )
    return [Pane(TargetId(row[0]), PaneId(row[1]), *row[2:]) for row in rows]


def save_target(tx: Transaction, target: Target, now: Timestamp) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO targets (target_id, target_name, kind, connection_ref, tmux_socket, is_default,"
        " is_ephemeral, last_seen_at, health, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            target.target_id,
            target.target_id,
            target.kind.value,
            target.connection_ref,
            target.tmux_socket,
            int(target.is_default),
            int(target.is_ephemeral),
            target.last_seen_at,
            target.health.value,
            now,
        ),
    )


def delete_target(tx: Transaction, target_id: TargetId) -> None:
    tx.execute("DELETE FROM targets WHERE target_id = ?", (target_id,))


async def load_targets(database: Database) -> list[Target]:
    rows = await database.read(
        "SELECT target_id, kind, connection_ref, tmux_socket, is_default, is_ephemeral, health, last_seen_at"
        " FROM targets"
    )
    return [
        Target(
            target_id=TargetId(row[0]),
            kind=TargetKind(row[1]),
            connection_ref=row[2],
            tmux_socket=row[3],
            is_default=bool(row[4]),
            is_ephemeral=bool(row[5]),
            health=Health(row[6]),
            last_seen_at=None if row[7] is None else Timestamp(row[7]),
        )
        for row in rows
    ]


async def latest_moment(database: Database) -> Timestamp:
    """The newest moment any daemon has written, for a clock that was set back in between."""
    rows = await database.read(
        "SELECT max(coalesce((SELECT max(ingested_at) FROM events), 0),"
        " coalesce((SELECT max(ingested_at) FROM event_inbox), 0),"
        " coalesce((SELECT max(updated_at) FROM states), 0))"
    )
    return Timestamp(rows[0][0])


def _plain(text: Redacted | None) -> str | None:
    """sqlite3 binds only exact strings."""
    return None if text is None else str.__str__(text)
