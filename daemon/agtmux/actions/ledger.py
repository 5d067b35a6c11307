"""Every action that was asked for, on the disk before anything is done: what it was, who was meant, what came of it.

An action has one effect, however often its request comes: the request's own reference finds the first one again, also
after a restart. One that was under way when a daemon died may have had its effect, so it is `uncertain` and is never
carried out again. With its end an event with its id is written beside what the agent reports; it says nothing about
the agent's state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.actions.guards import Snapshot
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import printable
from agtmux.domain.redact import redact_text
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

# Result codes that the ledger itself gives; others are the actions' own.
PENDING: Final = "pending"
REFUSED: Final = "refused"
FAILED: Final = "failed"
UNCERTAIN: Final = "uncertain"
# The good ends of what is typed: it was taken, or it stands in the prompt and Enter was not pressed.
DELIVERED: Final = "delivered"
TYPED_NOT_SUBMITTED: Final = "typed_not_submitted"
# It was typed into a shell or another program that is no agent. Whether that took it cannot be read back.
TYPED_IN_SHELL: Final = "typed_in_shell"
_PAYLOAD: Final = "payload_sha256"
_LONGEST_SHOWN: Final = 64
_LONGEST_WRITTEN: Final = 4_096
# What is told in words of others.
_WRITTEN: Final = frozenset({"actor", "by", "cwd", "worktree", "branch", "session_name", "removed_worktree"})
COLUMNS: Final = (
    "action_id, action_type, request_ref, target_id, pane_id, runtime_id, requested_at, completed_at, result_code,"
    " error_code, metadata_json"
)
# One statement for one action or for all: its two moments come first, then what follows WHERE.
_OWN_EVENTS: Final = (
    "INSERT OR IGNORE INTO events (event_id, runtime_id, event_type, source, event_time, ingested_at, dedupe_key,"
    " action_id) SELECT lower(hex(randomblob(16))), runtime_id, 'action.' || action_type, 'wrapper', ?, ?,"
    " 'action:' || action_id, action_id FROM actions WHERE result_code = ?"
)


@dataclass(frozen=True, slots=True)
class Action:
    action_id: str
    action_type: str
    request_ref: str
    target_id: TargetId
    pane_id: PaneId
    runtime_id: RuntimeId
    requested_at: Timestamp
    completed_at: Timestamp | None = None
    result_code: str = PENDING
    error_code: str | None = None
    # Without what was typed or shown: who asked, how much it was.
    metadata: Mapping[str, Any] | None = None


class Ledger:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, action: Action, snapshot: Snapshot | None, payload_sha256: str) -> Action:
        """Write both down and return the action; or the one that the same request has led to before. What is not about
        a pane that is there has no snapshot.

        Raises E_IDEMPOTENCY_CONFLICT if that one was asked for something else.
        """
        metadata = {**_kept(action.metadata or {}), _PAYLOAD: payload_sha256}
        action = replace(action, request_ref=kept_ref(action.request_ref))

        def job(tx: Transaction) -> Action:
            found = _find(tx, action.action_type, action.request_ref)
            if found is not None:
                return found
            values = (
                action.action_id,
                action.action_type,
                action.request_ref,
                action.target_id,
                action.pane_id,
                action.runtime_id,
                action.requested_at,
                action.result_code,
                json.dumps(metadata),
            )
            tx.execute(
                "INSERT INTO actions (action_id, action_type, request_ref, target_id, pane_id, runtime_id,"
                " requested_at, result_code, metadata_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            if snapshot is None:
                return replace(action, metadata=metadata)
            tx.execute(
                "INSERT INTO action_snapshots (snapshot_id, action_id, target_id, pane_id, runtime_id, state_version,"
                " observed_at, expires_at, nonce) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    snapshot.snapshot_id,
                    snapshot.action_id,
                    snapshot.target_id,
                    snapshot.pane_id,
                    snapshot.runtime_id,
                    snapshot.state_version,
                    snapshot.observed_at,
                    snapshot.expires_at,
                    snapshot.nonce,
                ),
            )
            return replace(action, metadata=metadata)

        known = await self._database.writer.write(job)
        check_same(known, payload_sha256)
        return known

    async def requested(self, action_type: str, request_ref: str) -> Action | None:
        """What that request has led to before."""
        found = f"SELECT {COLUMNS} FROM actions WHERE action_type = ? AND request_ref = ?"
        rows = await self._database.read(found, (action_type, kept_ref(request_ref)))
        return read_action(rows[0]) if rows else None

    async def place(self, action: Action, pane_id: PaneId, runtime_id: RuntimeId) -> Action:
        """What it has led to is in that pane."""
        values = (pane_id, runtime_id, action.action_id)
        await self._database.writer.write(
            lambda tx: tx.execute("UPDATE actions SET pane_id = ?, runtime_id = ? WHERE action_id = ?", values)
        )
        return replace(action, pane_id=pane_id, runtime_id=runtime_id)

    async def finish(
        self, action: Action, now: Timestamp, result_code: str, error_code: str | None, about: Mapping[str, Any]
    ) -> Action:
        done = replace(
            action,
            completed_at=now,
            result_code=result_code,
            error_code=error_code,
            metadata={**(action.metadata or {}), **_kept(about)},
        )

        def job(tx: Transaction) -> None:
            tx.execute(f"{_OWN_EVENTS} AND action_id = ?", (now, now, PENDING, action.action_id))
            tx.execute(
                "UPDATE actions SET completed_at = ?, result_code = ?, error_code = ?, metadata_json = ?"
                " WHERE action_id = ? AND result_code = ?",
                (now, result_code, error_code, json.dumps(dict(done.metadata or {})), action.action_id, PENDING),
            )

        await self._database.writer.write(job)
        return done

    async def find(self, action: Action) -> Action:
        """The same action as it is now."""
        rows = await self._database.read(f"SELECT {COLUMNS} FROM actions WHERE action_id = ?", (action.action_id,))
        return read_action(rows[0]) if rows else action

    async def settle(self, now: Timestamp) -> int:
        """At a daemon's start: what an earlier one was at may have had its effect. Returns how many there are."""

        def job(tx: Transaction) -> int:
            tx.execute(_OWN_EVENTS, (now, now, PENDING))
            tx.execute(
                "UPDATE actions SET completed_at = ?, result_code = ?, error_code = ? WHERE result_code = ?",
                (now, UNCERTAIN, str(ErrorCode.DELIVERY_UNCERTAIN), PENDING),
            )
            return int(tx.fetch("SELECT changes()")[0][0])

        return await self._database.writer.write(job)


def kept_ref(request_ref: str) -> str:
    """The request's reference as it is stored and shown. One that holds a secret is known again by its digest."""
    shown = redact_text(printable(request_ref))
    if shown == request_ref:
        return request_ref
    return f"{shown[:_LONGEST_SHOWN]} {hashlib.sha256(request_ref.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _kept(about: Mapping[str, Any]) -> dict[str, Any]:
    """What whoever asked has written is theirs: without secrets, control characters or end."""
    return {
        name: redact_text(printable(value))[:_LONGEST_WRITTEN] if name in _WRITTEN and isinstance(value, str) else value
        for name, value in about.items()
    }


def check_same(known: Action, payload_sha256: str) -> None:
    """Raises if that action was asked for something else."""
    if (known.metadata or {}).get(_PAYLOAD) != payload_sha256:
        raise AgtmuxError(
            ErrorCode.IDEMPOTENCY_CONFLICT,
            f"the request {known.request_ref[:64]!r} was made before and asked for something else; give another",
            {"action_id": known.action_id},
        )


def _find(tx: Transaction, action_type: str, request_ref: str) -> Action | None:
    rows = tx.fetch(
        f"SELECT {COLUMNS} FROM actions WHERE action_type = ? AND request_ref = ?", (action_type, request_ref)
    )
    return read_action(rows[0]) if rows else None


def read_action(row: Any) -> Action:
    return Action(
        action_id=row[0],
        action_type=row[1],
        request_ref=row[2],
        target_id=TargetId(row[3]),
        pane_id=PaneId(row[4]),
        runtime_id=RuntimeId(row[5]),
        requested_at=Timestamp(row[6]),
        completed_at=None if row[7] is None else Timestamp(row[7]),
        result_code=row[8],
        error_code=row[9],
        metadata=json.loads(row[10]),
    )
