"""The gate: one message into one prompt, or the reason why not now.

A message is typed like anything else (`actions/typing.py`), and each step is on the disk before it is taken. So when a
daemon dies over one, the next knows how far it may have come, and the prompt tells the rest:

    pasting,  the prompt holds the text          Enter is pressed now
    pasting,  the prompt holds something else    nothing was typed: it waits again, unless its id is on the screen
    typed,    the prompt holds the text          Enter is pressed now
    typed,    the prompt holds something else    its user has submitted it if the screen shows it; else it waits again
    entering, the prompt holds the text          Enter did not get there: it is pressed now
    entering, the prompt holds something else    it was taken if the screen shows it elsewhere; else it is uncertain
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

from agtmux.actions.chats import Sessions
from agtmux.actions.desk import Asked, Desk, Done, Kind
from agtmux.actions.guards import Conditions, StillThere
from agtmux.actions.ledger import DELIVERED
from agtmux.actions.typing import WAITING, Sight, Typist, begins_with, is_shown
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, Priority, Reason, Stage
from agtmux.domain.states import State
from agtmux.engine.apply import Record
from agtmux.messages.form import injected, is_identified
from agtmux.messages.mailbox import Mailbox
from agtmux.observe.world import PaneKey, World

ACTION: Final = "message"
_REASONS: Final = {
    ErrorCode.DIALOG_OPEN: Reason.DIALOG_OPEN,
    ErrorCode.DRAFT_PRESENT: Reason.DRAFT_PRESENT,
    ErrorCode.PRECONDITION_FAILED: Reason.NO_PROMPT,
    # Its screen cannot be read; it may fetch its messages all the same.
    ErrorCode.UNSUPPORTED: Reason.NO_PROMPT,
    ErrorCode.RUNTIME_STALE: Reason.NOT_IN_FRONT,
    ErrorCode.TARGET_UNREACHABLE: Reason.UNREACHABLE,
    ErrorCode.TIMEOUT: Reason.UNREACHABLE,
}
# An empty prompt is believed when it is seen again after so long: an agent may be slow to show what it was given.
_BELIEVED_AFTER: Final = 1.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """`is_delivered`, or why not yet, or `is_uncertain` for good. `message` is None if somebody else has had it
    meanwhile."""

    message: Message | None
    is_delivered: bool = False
    is_uncertain: bool = False
    reason: Reason = Reason.NONE
    action_id: str | None = None


class Gate:
    def __init__(self, mailbox: Mailbox, world: World, registry: Registry, typist: Typist, sessions: Sessions) -> None:
        self._mailbox = mailbox
        self._world = world
        self._registry = registry
        self._typist = typist
        self._sessions = sessions
        # By message, while it is typed: where its steps are noted.
        self._at: dict[str, Message] = {}

    @property
    def kind(self) -> Kind:
        """For the desk of all actions, which writes down who was meant and what came of it."""
        return Kind(self._type, needs_state=False)

    async def attempt(self, desk: Desk, key: PaneKey, message: Message) -> Outcome:
        """Once. Raises nothing that has to do with the pane."""
        record = self._world.records.get(key)
        if record is None or record.runtime.runtime_id != message.receiver.runtime_id:
            return Outcome(message, reason=Reason.RECEIVER_ENDED)
        try:
            session = self._sessions.of(record)
            if message.stage is not Stage.NONE and session is not None:
                # It has no prompt that would ever tell how far it came.
                return Outcome(message, is_uncertain=True, reason=Reason.INTERRUPTED)
            if message.stage is not Stage.NONE:
                return await self._finish(record, message)
            if session is None:
                self._typist.check_reachable(record)
            if (reason := self._not_now(record, message)) is not Reason.NONE:
                return Outcome(message, reason=reason)
            if session is None:
                # Without a row for an action: it may be looked at for hours.
                await self._typist.prompt(record, self._still_there(record))
            return await self._typed(desk, key, record, message)
        except AgtmuxError as error:
            if error.code is ErrorCode.STORE:
                raise
            # Whatever else may be wrong over there, it is tried again.
            return Outcome(message, reason=_REASONS.get(error.code, Reason.UNREACHABLE))

    def _not_now(self, record: Record, message: Message) -> Reason:
        """By what is known without a look."""
        if record.row.state in WAITING:
            return Reason.DIALOG_OPEN
        agent_type = record.runtime.agent_type
        steers = self._registry.knows(agent_type) and self._registry.sheet(agent_type).typing.while_running == "steers"
        if steers and record.row.state is State.RUNNING and message.priority is not Priority.URGENT:
            return Reason.BUSY
        return Reason.NONE

    async def _typed(self, desk: Desk, key: PaneKey, record: Record, message: Message) -> Outcome:
        asked = Asked(
            ACTION,
            # Another one each time: that it comes once is the mailbox's to see to, which knows how far it came.
            f"{message.message_id}.{secrets.token_hex(4)}",
            key,
            Conditions(if_runtime=record.runtime.runtime_id),
            {"message_id": message.message_id},
            message.sender.name,
        )
        self._at[message.message_id] = message
        try:
            answer = await desk.act(asked)
        except AgtmuxError as error:
            at = self._at[message.message_id]
            if at.stage is Stage.NONE:
                return Outcome(at, reason=_REASONS.get(error.code, Reason.NO_PROMPT))
            if _was_typed(error):
                return await self._left(at, error)
            reason = _REASONS.get(error.code, Reason.NO_PROMPT)
            return Outcome(await self._mailbox.back(at, reason), reason=reason)
        finally:
            at = self._at.pop(message.message_id)
        if answer.action.result_code == DELIVERED and at.stage is not Stage.NONE:
            return Outcome(at, is_delivered=True, action_id=answer.action.action_id)
        # Somebody took it in the last moment.
        return Outcome(None)

    async def _type(self, record: Record, asked: Asked, still_there: StillThere) -> Done:
        message = self._at[asked.parameters["message_id"]]

        async def before_enter() -> None:
            entering = await self._mailbox.enter(message)
            if entering is not None:
                self._at[message.message_id] = entering

        async with self._typist.writer(record):
            begun = await self._mailbox.begin(message)
            if begun is None:
                return Done(DELIVERED, {"message_id": message.message_id, "typed": False})
            self._at[message.message_id] = begun
            text = injected(message)
            if (session := self._sessions.of(record)) is not None:
                await before_enter()
                await session.ask("message", text=text)
                return Done(DELIVERED, {"message_id": message.message_id, "characters": len(text)})
            result = await self._typist.type(record, text, still_there, enter=True, before_enter=before_enter)
        return Done(result, {"message_id": message.message_id, "characters": len(text)})

    async def _finish(self, record: Record, message: Message) -> Outcome:
        """What was begun before, by whatever the prompt shows now."""
        text = injected(message)
        still_there = self._still_there(record)
        async with self._typist.writer(record):
            sight = await self._typist.look(record)
            for is_last in (False, True):
                if (reason := self._undecided(record, sight, text)) is not Reason.NONE:
                    if reason is Reason.DRAFT_PRESENT and message.stage is Stage.PASTING:
                        return Outcome(await self._mailbox.stay(message), reason=reason)
                    return Outcome(message, reason=reason)
                if self._typist.holds(record, sight, text):
                    entering = await self._mailbox.enter(message)
                    if entering is None:
                        return Outcome(None)
                    try:
                        await self._typist.submit(record, sight, text, still_there)
                    except AgtmuxError as error:
                        return await self._left(entering, error)
                    return Outcome(entering, is_delivered=True)
                # What stood in the prompt, or in somebody's draft, was submitted if the screen shows it elsewhere now.
                was_there = message.stage in (Stage.TYPED, Stage.ENTERING)
                if (was_there and is_shown(text, sight.text)) or is_identified(message, sight.text):
                    return Outcome(message, is_delivered=True)
                if not is_last:
                    await asyncio.sleep(_BELIEVED_AFTER)
                    sight = await self._typist.look(record)
        if message.stage is Stage.ENTERING:
            # Enter was pressed, and it has left the screen; or its user deleted it before that.
            return Outcome(message, is_uncertain=True, reason=Reason.INTERRUPTED)
        reason = Reason.DRAFT_PRESENT if sight.seen.composer == "draft" else Reason.NONE
        return Outcome(await self._mailbox.back(message, reason), reason=reason)

    async def _left(self, message: Message, error: AgtmuxError) -> Outcome:
        """It may stand in the prompt. What is known of Enter decides what an empty prompt will mean."""
        reason = _REASONS.get(error.code, Reason.INTERRUPTED)
        if message.stage is not Stage.ENTERING or error.details.get("entered") is False:
            return Outcome(await self._mailbox.stay(message), reason=reason)
        return Outcome(message, reason=reason)

    def _undecided(self, record: Record, sight: Sight, text: str) -> Reason:
        """Why the screen does not tell, if it does not."""
        seen = sight.seen
        if seen.state in WAITING or record.row.state in WAITING:
            return Reason.DIALOG_OPEN
        if seen.composer == "none" or not sight.footing.hold.anchors:
            return Reason.NO_PROMPT
        if self._typist.holds(record, sight, text):
            return Reason.NONE
        # Its user goes on writing where it stands, or had begun just before it came.
        has_more = begins_with(seen.draft, sight.footing.mode, text) or is_shown(text, seen.draft)
        return Reason.DRAFT_PRESENT if has_more else Reason.NONE

    def _still_there(self, record: Record) -> StillThere:
        key = (record.runtime.target_id, record.runtime.pane_id)

        def still_there(*, may_have_moved: bool = False) -> Record:
            now = self._world.records.get(key)
            if now is None or now.runtime.runtime_id != record.runtime.runtime_id:
                raise AgtmuxError(ErrorCode.RUNTIME_STALE, "what was in that pane has ended")
            return now

        return still_there


def _was_typed(error: AgtmuxError) -> bool:
    """Whether anything of it may stand in the prompt, or have been taken."""
    return error.details.get("result_code") not in ("refused", "failed")
