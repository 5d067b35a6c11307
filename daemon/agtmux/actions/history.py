"""What was done to which agent, and what followed: reads what the ledger has written beside what was reported since.

Every action that is over has an event of its own, with its id. What the agent reported or showed after it, until
somebody else did something or a minute had passed, is told as what followed: nobody can know that it was the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from agtmux.actions.ledger import COLUMNS, REFUSED, Action, read_action
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.store.database import Database

# An answer or a prompt shows within seconds; after a minute it may be anything.
FOLLOWS_WITHIN: Final = 60 * SECOND
_MOST_EVENTS: Final = 200
# Nothing that an agent does is due to these.
_CHANGE_NOTHING: Final = ("view-output", "attach")
# Of an action's id, so that it can be copied from a table.
_SHORTEST_ID: Final = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which actions; what is None does not matter."""

    runtime_id: RuntimeId | None = None
    pane: tuple[TargetId, PaneId] | None = None
    action_type: str | None = None
    since: Timestamp | None = None


class ActionEvent(msgspec.Struct, frozen=True):
    event_id: str
    event_type: str
    source: str
    event_time: str
    ingested_at: str
    # `own`: it has the action's id. `followed`: it came from the same runtime soon after.
    relation: Literal["own", "followed"]


class History:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def actions(self, wanted: Wanted, limit: int) -> list[Action]:
        """The newest first."""
        target_id, pane_id = wanted.pane or (None, None)
        conditions = {
            "runtime_id = ?": wanted.runtime_id,
            "target_id = ?": target_id,
            "pane_id = ?": pane_id,
            "action_type = ?": wanted.action_type,
            "requested_at >= ?": wanted.since,
        }
        asked = {condition: value for condition, value in conditions.items() if value is not None}
        where = f"WHERE {' AND '.join(asked)}" if asked else ""
        return await self._read(f"{where} ORDER BY requested_at DESC, action_id DESC LIMIT ?", (*asked.values(), limit))

    async def action(self, action_id: str) -> Action:
        """The one with that id, or with an id that begins so."""
        if not _SHORTEST_ID <= len(action_id) <= 64:
            raise AgtmuxError(ErrorCode.USAGE, f"an action_id has {_SHORTEST_ID} characters at least")
        found = await self._read("WHERE substr(action_id, 1, ?) = ? LIMIT 2", (len(action_id), action_id))
        if len(found) > 1:
            raise AgtmuxError(ErrorCode.REF_AMBIGUOUS, f"several actions begin with {action_id!r}; give the whole id")
        if not found:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"no action has the id {action_id!r}; see agtmux log actions")
        return found[0]

    async def events(self, action: Action) -> list[ActionEvent]:
        """Its own and those that followed, the earliest first."""
        rows = await self._database.read(
            "SELECT event_id, event_type, source, event_time, ingested_at, action_id FROM events"
            " WHERE action_id = ? OR (runtime_id = ? AND action_id IS NULL AND ingested_at > ? AND ingested_at <= ?)"
            " ORDER BY ingested_at, event_id LIMIT ?",
            (action.action_id, action.runtime_id, action.requested_at, await self._end_of(action), _MOST_EVENTS),
        )
        return [
            ActionEvent(
                event_id=row[0],
                event_type=row[1],
                source=row[2],
                event_time=format_timestamp(row[3]),
                ingested_at=format_timestamp(row[4]),
                relation="followed" if row[5] is None else "own",
            )
            for row in rows
        ]

    async def _end_of(self, action: Action) -> int:
        """Until when what comes from the runtime may be due to this action."""
        end = (action.completed_at or action.requested_at) + FOLLOWS_WITHIN
        rows = await self._database.read(
            "SELECT min(requested_at) FROM actions WHERE runtime_id = ? AND requested_at > ? AND result_code <> ?"
            f" AND action_type NOT IN ({', '.join('?' * len(_CHANGE_NOTHING))})",
            (action.runtime_id, action.requested_at, REFUSED, *_CHANGE_NOTHING),
        )
        return min(end, rows[0][0] or end)

    async def _read(self, where: str, values: Sequence[Any]) -> list[Action]:
        rows = await self._database.read(f"SELECT {COLUMNS} FROM actions {where}", values)
        return [read_action(row) for row in rows]
