"""A message from one agent to another, and the words for what becomes of it.

queued ─► delivering ─► delivered
  │            └──────► uncertain   nobody can tell whether it was taken
  ├─► expired                       its time was over before it could be
  └─► refused                       its receiver ended, or it was taken back
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agtmux.domain.durations import SECOND
from agtmux.domain.runtimes import RuntimeId
from agtmux.domain.timestamps import Timestamp

# In bytes of UTF-8.
MOST_CONTENT: Final = 1_000_000
MOST_THINKING: Final = 100_000
LONGEST_WORD: Final = 128
# Seconds that a message may wait for its receiver.
LONGEST_TTL: Final = 7 * 24 * 3600


class MessageType(StrEnum):
    TASK_REQUEST = "task_request"
    TASK_RESPONSE = "task_response"
    TASK_COMPLETE = "task_complete"
    TASK_FAILED = "task_failed"
    INFO = "info"
    PROGRESS = "progress"
    ERROR = "error"
    PING = "ping"
    PONG = "pong"
    SHUTDOWN = "shutdown"


class Priority(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"

    @property
    def rank(self) -> int:
        return _BY_RANK.index(self)

    @classmethod
    def of_rank(cls, rank: int) -> Priority:
        return _BY_RANK[rank]


_BY_RANK: Final = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.URGENT)


class Status(StrEnum):
    QUEUED = "queued"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    REFUSED = "refused"
    UNCERTAIN = "uncertain"

    @property
    def is_over(self) -> bool:
        return self not in (Status.QUEUED, Status.DELIVERING)


class Reason(StrEnum):
    """Why a message is where it is."""

    NONE = ""
    DIALOG_OPEN = "dialog_open"
    DRAFT_PRESENT = "draft_present"
    BUSY = "busy"
    NO_PROMPT = "no_prompt"
    NOT_IN_FRONT = "not_in_front"
    UNREACHABLE = "unreachable"
    # Its typing was cut short; what the screen shows now decides.
    INTERRUPTED = "interrupted"
    FOR_THE_USER = "for_the_user"
    TTL_ENDED = "ttl_ended"
    RECEIVER_ENDED = "receiver_ended"
    TAKEN_BACK = "taken_back"
    NOT_NOW = "not_now"
    # Its text had a secret in it and is not on the disk any more.
    CONTENT_LOST = "content_lost"


class Stage(StrEnum):
    """How far its typing has come. What is to be done is written down before it is begun."""

    NONE = ""
    PASTING = "pasting"
    # It stood in the prompt, or in somebody's draft, and Enter was not pressed by us.
    TYPED = "typed"
    ENTERING = "entering"


class Via(StrEnum):
    """How it came to its receiver."""

    NONE = ""
    TYPED = "typed"
    PULLED = "pulled"
    # agtmux answers for it.
    AGTMUX = "agtmux"


@dataclass(frozen=True, slots=True)
class Party:
    """One end of a message: a name, and the runtime behind it if that is an agent."""

    name: str
    runtime_id: RuntimeId | None = None

    @property
    def waits_for(self) -> Reason:
        """Why what is for it waits before anything was tried."""
        return Reason.FOR_THE_USER if self.runtime_id is None else Reason.NONE


@dataclass(frozen=True, slots=True)
class Message:
    message_id: str
    sender: Party
    receiver: Party
    type: MessageType
    priority: Priority
    # None when it has been forgotten.
    content: str | None
    size: int
    sent_at: Timestamp
    expires_at: Timestamp
    thinking: str | None = None
    reply_to: str | None = None
    task_id: str | None = None
    correlation_id: str | None = None
    request_ref: str | None = None
    # The order in which messages were accepted; 0 before that.
    seq: int = 0
    status: Status = Status.QUEUED
    reason: Reason = Reason.NONE
    stage: Stage = Stage.NONE
    via: Via = Via.NONE
    attempts: int = 0
    action_id: str | None = None
    settled_at: Timestamp | None = None
    # `content` is not what was sent but its redacted form.
    is_redacted: bool = False

    @property
    def ttl_seconds(self) -> int:
        return (self.expires_at - self.sent_at) // SECOND

    @property
    def order(self) -> tuple[bool, int, int]:
        """The next to be delivered is the least: what has begun, then the more urgent, then the older."""
        return (self.stage is Stage.NONE, -self.priority.rank, self.seq)
