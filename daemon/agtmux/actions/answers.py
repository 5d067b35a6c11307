"""`approve` and `deny`: an answer to the dialog that is open, handed to the agent's own hook where one waits for it.

No key is pressed here. An answer is for the question that was asked when the action's snapshot was made: if the agent
has moved on, or asks something else by now, it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from agtmux.actions.decisions import Handed, Waiting
from agtmux.actions.desk import Asked, Done, Kind
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import State
from agtmux.engine.apply import Record

DELIVERED: Final = "delivered"
# How long an agent may take to move on once it has its answer.
_PATIENCE: Final = 5.0
_LOOK_EVERY: Final = 0.05
_LONGEST_REASON: Final = 2_000


class Decided(Protocol):
    def waiting(self, runtime_id: RuntimeId) -> Waiting | None: ...

    async def decide(self, runtime_id: RuntimeId, event_id: str, *, allow: bool, message: str = "") -> Handed: ...


class Known(Protocol):
    @property
    def records(self) -> Mapping[tuple[TargetId, PaneId], Record]: ...


def answer(decisions: Decided, known: Known, *, allow: bool) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: Callable[[], Record]) -> Done:
        reason = str(asked.parameters.get("reason", ""))
        if len(reason) > _LONGEST_REASON:
            raise AgtmuxError(ErrorCode.TOO_LARGE, f"a reason may have {_LONGEST_REASON} characters")
        if record.row.state is not State.WAITING_APPROVAL:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                f"it is {record.row.state} and waits for no approval",
                {"expected": State.WAITING_APPROVAL, "found": record.row.state},
            )
        runtime_id = record.runtime.runtime_id
        question = decisions.waiting(runtime_id)
        if question is None:
            raise AgtmuxError(
                ErrorCode.UNSUPPORTED,
                "no hook of this agent waits for an answer, and agtmux presses no keys yet; answer it in its pane"
                " (where an agent can do that, `agtmux hooks install` makes its hook wait)",
            )
        still_there()
        handed = await decisions.decide(runtime_id, question.event_id, allow=allow, message=reason)
        if handed is Handed.NOBODY_WAITS:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "it was answered in the same moment; nothing was done")
        if handed is Handed.UNCERTAIN or not await _moves_on(known, asked.key, record):
            raise AgtmuxError(
                ErrorCode.DELIVERY_UNCERTAIN,
                "the answer was handed over, and the agent has not moved on; look at its pane before you answer again",
            )
        summary = None if question.attention is None else str(question.attention.summary)
        return Done(DELIVERED, {"way": "hook"}, {"question": summary})

    return Kind(carry_out, needs_state=True)


async def _moves_on(known: Known, key: tuple[TargetId, PaneId], before: Record) -> bool:
    """Whether what was asked is asked no more."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        record = known.records.get(key)
        is_same = record is not None and record.runtime.runtime_id == before.runtime.runtime_id
        if not is_same or (record is not None and record.row.state_version != before.row.state_version):
            return True
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_LOOK_EVERY)
