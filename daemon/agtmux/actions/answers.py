"""`approve` and `deny`: an answer to the dialog that is open, and to no other.

Where the agent's own hook waits for an answer, it takes it and no key is pressed. Elsewhere it is one key, pressed
once: the dialog is looked at again, must be the one that was shown, and must still be there when the key is. An answer
is for the question that was asked when the action's snapshot was made: if the agent has moved on, or asks something
else by now, it is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final, Protocol

from agtmux.actions.decisions import Handed, Waiting
from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.ledger import DELIVERED
from agtmux.actions.typing import WAITING, Sight, Typist, clean, what_it_asks
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import INCOMPLETE, Attention, Incomplete
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import Reason, State
from agtmux.engine.apply import Record

# How long an agent may take to move on once it has its answer.
_PATIENCE: Final = 5.0
_LOOK_EVERY: Final = 0.05
# To draw what it has reported to ask; some take most of a second.
_DRAWN_AFTER: Final = 2.0
# And to draw how something ended.
_DRAWN: Final = 0.8
_AT_REST: Final = frozenset({State.IDLE, State.COMPLETED, State.ERROR})
_TRIES: Final = 20
_LONGEST_REASON: Final = 2_000
_NOT_ASKED: Final = {
    State.WAITING_INPUT: "it asks a question that is no yes or no; answer it in its pane (agtmux attach)",
}


class Decided(Protocol):
    def waiting(self, runtime_id: RuntimeId) -> Waiting | None: ...

    async def decide(self, runtime_id: RuntimeId, event_id: str, *, allow: bool, message: str = "") -> Handed: ...


class Known(Protocol):
    @property
    def records(self) -> Mapping[tuple[TargetId, PaneId], Record]: ...


def answer(decisions: Decided, known: Known, typist: Typist, *, allow: bool) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        reason = clean(str(asked.parameters.get("reason", ""))).strip()
        if len(reason) > _LONGEST_REASON:
            raise AgtmuxError(ErrorCode.TOO_LARGE, f"a reason may have {_LONGEST_REASON} characters")
        if record.row.state is not State.WAITING_APPROVAL:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                _NOT_ASKED.get(record.row.state, f"it is {record.row.state} and waits for no approval"),
                {"expected": State.WAITING_APPROVAL, "found": record.row.state},
            )
        meant = asked.parameters.get("if_dialog")
        if meant is not None and meant != record.dialog:
            raise _another(meant, record.dialog)
        may_be_partial = not allow or bool(asked.parameters.get("partial"))
        question = decisions.waiting(record.runtime.runtime_id)
        # Of several things that it asks at once, the hook of one may wait while the dialog of another is shown.
        is_by_hook = question is not None and record.asks(question.attention)
        if not is_by_hook:
            _check_one(record.row.attention)
        if not may_be_partial:
            check_whole(record.row.attention)
        if question is not None and is_by_hook:
            return await _by_hook(decisions, known, question, record, asked, still_there, reason, allow=allow)
        async with typist.writer(record):
            return await _by_key(typist, record, still_there, reason, allow=allow, may_be_partial=may_be_partial)

    return Kind(carry_out, needs_state=True)


async def _by_hook(
    decisions: Decided,
    known: Known,
    question: Waiting,
    record: Record,
    asked: Asked,
    still_there: StillThere,
    reason: str,
    *,
    allow: bool,
) -> Done:
    still_there()
    handed = await decisions.decide(record.runtime.runtime_id, question.event_id, allow=allow, message=reason)
    if handed is Handed.NOBODY_WAITS:
        raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "it was answered in the same moment; nothing was done")
    if handed is Handed.UNCERTAIN:
        raise _uncertain("the hook went while the answer was on its way")
    after = await _moved_on(known, asked.key, record)
    if allow and (after is None or after.row.reason_code == Reason.INTERRUPTED):
        what = "ended" if after is None else "was stopped"
        raise _uncertain(f"the answer was handed over, and the agent {what} in the same moment")
    summary = "" if question.attention is None else str.__str__(question.attention.summary)
    return Done(DELIVERED, {"way": "hook", "question": summary}, {"question": summary or None})


def check_whole(attention: Attention | None) -> None:
    """Raises if what is shown of a request is not all that an approval would be for."""
    incomplete = Incomplete.NOT_REPORTED if attention is None else attention.incomplete
    if incomplete is not None:
        raise _partly(incomplete)


def _check_one(attention: Attention | None) -> None:
    """Raises if the report and the screen are two requests: a key would answer the one on the screen."""
    if attention is None or attention.incomplete is not Incomplete.SCREEN_DIFFERS:
        return
    what = INCOMPLETE[Incomplete.SCREEN_DIFFERS]
    raise AgtmuxError(
        ErrorCode.PRECONDITION_FAILED,
        f"{what}, so no key is pressed; answer it in its pane (agtmux attach)",
        {"incomplete": Incomplete.SCREEN_DIFFERS},
    )


def _partly(incomplete: Incomplete) -> AgtmuxError:
    then = "read all of it in its pane (agtmux attach), then approve it there or with --partial"
    return AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"{INCOMPLETE[incomplete]}; {then}", {"incomplete": incomplete})


async def _by_key(
    typist: Typist,
    record: Record,
    still_there: StillThere,
    reason: str,
    *,
    allow: bool,
    may_be_partial: bool,
) -> Done:
    shown = await _seen(record, still_there)
    for _ in range(_TRIES):
        sight = await typist.look(record)
        key = _key(sight, shown, allow=allow, may_be_partial=may_be_partial)
        still_there()
        if await typist.press(record, sight, key):
            if not (allow and sight.footing.replies.is_move):
                break
            await _mark_moved(typist, record, sight)
    else:
        raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "its screen does not hold still; no key was pressed")
    question = what_it_asks(record, sight.seen)
    about = {"way": "key", "key": key, "question": question}
    await _goes(typist, record, sight, key, allow=allow)
    if reason and not allow:
        about["reason"] = await _hand_over(typist, record, reason, still_there)
    return Done(DELIVERED, about, {"question": question or None})


async def _mark_moved(typist: Typist, record: Record, before: Sight) -> None:
    """Until another option is marked, or the dialog has changed; raises if nothing comes of the arrow key."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        asked, was = (await typist.look(record)).seen.asked, before.seen.asked
        if asked is None or was is None or (asked.fingerprint, asked.selected) != (was.fingerprint, was.selected):
            return
        if asyncio.get_running_loop().time() > deadline:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED, "an arrow key moves nothing in its dialog; nothing was answered"
            )
        await asyncio.sleep(_LOOK_EVERY)


async def _seen(record: Record, still_there: StillThere) -> str:
    """The fingerprint of its dialog. What a hook has just reported may not be drawn yet, or not be looked at."""
    deadline = asyncio.get_running_loop().time() + _DRAWN_AFTER
    now = record
    while now.dialog is None and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_LOOK_EVERY)
        now = still_there()
    # Whatever comes otherwise than as it was asked is another question.
    if now.dialog is None or now.row.state_version != record.row.state_version:
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED, "its dialog has not been seen on its screen yet; look at it and try again"
        )
    return now.dialog


def _key(sight: Sight, shown: str, *, allow: bool, may_be_partial: bool) -> str:
    """What answers the dialog on the screen, if it is the one that is meant."""
    asked = sight.seen.asked
    if sight.seen.state is not State.WAITING_APPROVAL or asked is None:
        raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "its screen shows no such dialog any more; nothing was done")
    if asked.fingerprint != shown:
        raise _another(shown, asked.fingerprint)
    if asked.incomplete is not None and not may_be_partial:
        raise _partly(asked.incomplete)
    replies = sight.footing.replies
    key = replies.approve if allow else replies.deny
    if key is None:
        what = "yes to this alone" if allow else "no"
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED,
            f"none of the keys of this dialog is known to say {what}; answer it in its pane (agtmux attach)",
        )
    if not sight.footing.hold.is_whole:
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED,
            "a part of this dialog stands elsewhere on the screen as well, so that another could be taken for it;"
            " answer it in its pane (agtmux attach)",
        )
    return key


async def _goes(typist: Typist, record: Record, answered: Sight, key: str, *, allow: bool) -> None:
    """Until that dialog is gone and the agent goes on; raises if it does not, or not as if it had been our answer."""
    shown = None if answered.seen.asked is None else answered.seen.asked.fingerprint
    now = asyncio.get_running_loop().time
    deadline = now() + _PATIENCE
    gone_since: float | None = None
    while True:
        try:
            sight = await typist.look(record)
        except AgtmuxError as error:
            if error.code is ErrorCode.RUNTIME_STALE:
                raise _uncertain("the key was pressed, and the agent has ended") from None
            raise _uncertain(f"the key was pressed, and what came of it cannot be seen: {error.message}") from None
        seen = sight.seen
        is_other = seen.asked is not None and seen.asked.fingerprint != shown
        # Also if the agent goes on after it was stopped, or asks again.
        was_stopped = sight.footing.stops > answered.footing.stops or seen.reason_code == Reason.INTERRUPTED
        if allow and (was_stopped or (seen.state not in WAITING and seen.draft.strip() == key)):
            await _take_back(typist, record, key)
            raise _uncertain("the key was pressed, and somebody has answered otherwise in the same moment")
        if seen.state in WAITING and is_other:
            return
        if seen.state is State.RUNNING or seen.state in _AT_REST:
            # How it was taken may not be drawn yet.
            gone_since = gone_since or now()
            if not allow or now() - gone_since > _DRAWN:
                return
        if now() > deadline:
            raise _uncertain("the key was pressed once, and the dialog is still there")
        await asyncio.sleep(_LOOK_EVERY)


async def _take_back(typist: Typist, record: Record, key: str) -> None:
    """A key that has come too late for its dialog stands in the prompt, or will in a moment: nobody wants it there."""
    deadline = asyncio.get_running_loop().time() + _DRAWN
    # It is told of anyway, so whatever keeps it from being taken back does no harm.
    with contextlib.suppress(AgtmuxError):
        while len(key) == 1 and asyncio.get_running_loop().time() < deadline:
            sight = await typist.look(record)
            is_there = sight.seen.draft.strip() == key and sight.seen.state in _AT_REST
            if is_there and await typist.press(record, sight, "BSpace"):
                return
            await asyncio.sleep(_LOOK_EVERY)


async def _hand_over(typist: Typist, record: Record, reason: str, still_there: StillThere) -> str:
    """The reason as a message, once there is a prompt; raises if the agent did not get it. The words before it keep it
    from being taken for a command."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE

    def is_same(*, may_have_moved: bool = False) -> Record:
        # It has moved on by our own doing.
        return still_there(may_have_moved=True)

    while True:
        try:
            return await typist.type(record, f"Denied: {reason}", is_same, enter=True)
        except AgtmuxError as error:
            is_early = error.code in (ErrorCode.PRECONDITION_FAILED, ErrorCode.DIALOG_OPEN)
            if is_early and "result_code" not in error.details and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_LOOK_EVERY)
                continue
            raise AgtmuxError(
                ErrorCode.DELIVERY_UNCERTAIN,
                f"it was denied, and the reason was not delivered: {error.message}",
                {"denied": True, "reason_error": error.code},
            ) from None


async def _moved_on(known: Known, key: tuple[TargetId, PaneId], before: Record) -> Record | None:
    """The agent when it asks that no more, or None if it has ended; raises if it goes on asking."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        record = known.records.get(key)
        if record is None or record.runtime.runtime_id != before.runtime.runtime_id:
            return None
        if record.row.state_version != before.row.state_version:
            return record
        if asyncio.get_running_loop().time() > deadline:
            raise _uncertain("the answer was handed over, and the agent has not moved on")
        await asyncio.sleep(_LOOK_EVERY)


def _another(expected: str | None, found: str | None) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.PRECONDITION_FAILED,
        "it asks something else by now; look at it and answer that",
        {"expected": expected, "found": found},
    )


def _uncertain(what: str) -> AgtmuxError:
    return AgtmuxError(ErrorCode.DELIVERY_UNCERTAIN, f"{what}; look at its pane before you answer again")
