"""Where actions are asked for: written down, checked, carried out once, and written down again with what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from agtmux.actions.guards import (
    NO_CONDITIONS,
    SNAPSHOT_TTL,
    Conditions,
    Snapshot,
    StillThere,
    check_conditions,
    check_unmoved,
)
from agtmux.actions.ledger import FAILED, PENDING, REFUSED, UNCERTAIN, Action, Ledger, check_same
from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record

PaneKey = tuple[TargetId, PaneId]
_LONGEST_REF: Final = 128


class Known(Protocol):
    """Who is in which pane right now."""

    @property
    def records(self) -> Mapping[PaneKey, Record]: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, after its ref was looked up."""

    action_type: str
    request_ref: str
    key: PaneKey
    conditions: Conditions = NO_CONDITIONS
    # What the action itself wants to know.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # For the log: which front end asked, and where the pane was.
    actor: str = ""
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """How it went; `content` is what it was for, and is neither kept nor told again."""

    result_code: str
    about: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of action. `needs_state`: it is refused when the agent has moved on since it was asked for."""

    carry_out: Callable[[Record, Asked, StillThere], Awaitable[Done]]
    needs_state: bool


@dataclass(frozen=True, slots=True)
class Answer:
    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)
    is_replay: bool = False


class Desk:
    def __init__(
        self,
        known: Known,
        ledger: Ledger,
        clock: Clock,
        kinds: Mapping[str, Kind],
        check_reachable: Callable[[TargetId], None] = lambda _: None,
    ) -> None:
        self._known = known
        self._ledger = ledger
        self._clock = clock
        self._kinds = kinds
        # Raises for a target that cannot be reached; nothing is done there, whatever the action.
        self._check_reachable = check_reachable
        # By action, as long as it is under way: a second request for the same waits for the first.
        self._under_way: dict[str, asyncio.Future[Action]] = {}

    @property
    def action_types(self) -> list[str]:
        return sorted(self._kinds)

    async def act(self, asked: Asked) -> Answer:
        """Raises what kept it from being done; that is written down too."""
        check_request_ref(asked.request_ref)
        record = self._known.records.get(asked.key)
        if record is None:
            earlier = await self._ledger.requested(asked.action_type, asked.request_ref)
            if earlier is None:
                raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "that pane is gone; list the panes again")
            check_same(earlier, _digest(asked))
            return Answer(await self._earlier(earlier), is_replay=True)
        action, snapshot = self._new(asked, record)
        known = await self._ledger.begin(action, snapshot, _digest(asked))
        if known.action_id != action.action_id:
            return Answer(await self._earlier(known), is_replay=True)
        finished: asyncio.Future[Action] = asyncio.get_running_loop().create_future()
        self._under_way[action.action_id] = finished
        try:
            done, answer = await self._carried_out(known, snapshot, asked)
            finished.set_result(answer)
            return Answer(answer, done.content)
        finally:
            del self._under_way[action.action_id]
            # Whoever waits for it finds it in the ledger.
            finished.cancel()

    async def _carried_out(self, action: Action, snapshot: Snapshot, asked: Asked) -> tuple[Done, Action]:
        kind = self._kinds[asked.action_type]

        def still_there(*, may_have_moved: bool = False) -> Record:
            return check_unmoved(
                snapshot,
                self._known.records.get(asked.key),
                self._clock.now(),
                needs_state=kind.needs_state and not may_have_moved,
                force_stale=asked.conditions.force_stale,
            )

        try:
            record = still_there()
            self._check_reachable(record.runtime.target_id)
            check_conditions(record, asked.conditions, self._clock.now())
            done = await kind.carry_out(record, asked, still_there)
        except AgtmuxError as error:
            result = result_of(error)
            await self._ledger.finish(action, self._clock.now(), result, str(error.code), {})
            told = {**error.details, "action_id": action.action_id, "result_code": result}
            raise AgtmuxError(error.code, error.message, told) from None
        except BaseException:
            # Cancelled, or a fault of ours: how far it came is not known.
            code = str(ErrorCode.DELIVERY_UNCERTAIN)
            await asyncio.shield(self._ledger.finish(action, self._clock.now(), UNCERTAIN, code, {}))
            raise
        return done, await self._ledger.finish(action, self._clock.now(), done.result_code, None, done.about)

    async def _earlier(self, known: Action) -> Action:
        """What came of the same request before; if it is not over yet, once it is."""
        finished = self._under_way.get(known.action_id)
        if known.result_code == PENDING and finished is not None:
            await asyncio.wait([finished])
            if not finished.cancelled():
                return finished.result()
            return await self._ledger.find(known)
        return known

    def _new(self, asked: Asked, record: Record) -> tuple[Action, Snapshot]:
        now = self._clock.now()
        target_id, pane_id = asked.key
        runtime_id: RuntimeId = record.runtime.runtime_id
        action_id = uuid.uuid4().hex
        about = {
            "actor": asked.actor,
            "force_stale": asked.conditions.force_stale,
            "agent_type": record.runtime.agent_type,
            "ref": asked.ref,
        }
        action = Action(
            action_id, asked.action_type, asked.request_ref, target_id, pane_id, runtime_id, now, metadata=about
        )
        snapshot = Snapshot(
            snapshot_id=uuid.uuid4().hex,
            action_id=action_id,
            target_id=target_id,
            pane_id=pane_id,
            runtime_id=runtime_id,
            state_version=record.row.state_version,
            observed_at=now,
            expires_at=Timestamp(now + SNAPSHOT_TTL),
            nonce=uuid.uuid4().hex,
        )
        return action, snapshot


_REFUSALS: Final = frozenset(
    {
        ErrorCode.RUNTIME_STALE,
        ErrorCode.PRECONDITION_FAILED,
        ErrorCode.SNAPSHOT_EXPIRED,
        ErrorCode.PID_UNAVAILABLE,
        ErrorCode.DIALOG_OPEN,
        ErrorCode.DRAFT_PRESENT,
        ErrorCode.UNSUPPORTED,
    }
)


def check_request_ref(request_ref: str) -> None:
    if not 0 < len(request_ref) <= _LONGEST_REF or not request_ref.isprintable():
        raise AgtmuxError(ErrorCode.USAGE, f"request_ref names the request: 1 to {_LONGEST_REF} printable characters")


def result_of(error: AgtmuxError) -> str:
    """What an action that ended with that error is written down as."""
    if isinstance(told := error.details.get("result_code"), str):
        return told
    if error.code in (ErrorCode.DELIVERY_UNCERTAIN, ErrorCode.TIMEOUT):
        return UNCERTAIN
    return REFUSED if error.code in _REFUSALS else FAILED


def _digest(asked: Asked) -> str:
    """Of all that makes it another request. What would be typed is not kept."""
    conditions = asked.conditions
    content = [
        *asked.key,
        conditions.if_runtime,
        conditions.if_state,
        conditions.if_state_version,
        conditions.if_updated_within,
        conditions.force_stale,
        dict(asked.parameters),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
