"""What somebody wants to be sent, checked, and the message that it becomes."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from typing import Final

from agtmux.actions.typing import clean
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import (
    LONGEST_TTL,
    LONGEST_WORD,
    MOST_CONTENT,
    MOST_THINKING,
    Message,
    MessageType,
    Party,
    Priority,
    Reason,
)
from agtmux.domain.timestamps import Timestamp

# How long one may be under way that is refused instead of waiting. It ends then also if nobody is left to refuse it, as
# after a crash.
_NOW: Final = 15 * SECOND
# They say enough by what they are.
_MAY_BE_EMPTY: Final = frozenset({MessageType.PING, MessageType.PONG, MessageType.SHUTDOWN})
# It stands in the line that agtmux writes below a text, where nothing else may be said.
_TASK_ID: Final = re.compile(r"[\w.:/#@+-]+")


@dataclass(frozen=True, slots=True)
class Letter:
    """What is asked for."""

    content: str
    type: MessageType = MessageType.INFO
    priority: Priority = Priority.NORMAL
    thinking: str | None = None
    reply_to: str | None = None
    task_id: str | None = None
    correlation_id: str | None = None
    ttl_seconds: int | None = None
    request_ref: str | None = None
    # It is refused instead of waiting.
    now_or_never: bool = False


def checked(letter: Letter) -> Letter:
    """Within all limits, and with nothing in it that would steer a terminal; raises otherwise."""
    content, thinking = clean(letter.content), None if letter.thinking is None else clean(letter.thinking)
    if not content.strip() and letter.type not in _MAY_BE_EMPTY:
        raise AgtmuxError(ErrorCode.USAGE, "there is nothing in that message")
    for what, text, most in (("message", content, MOST_CONTENT), ("thinking", thinking or "", MOST_THINKING)):
        if _size(text) > most:
            raise AgtmuxError(
                ErrorCode.TOO_LARGE, f"a {what} may have {most} bytes; write it to a file and send its name"
            )
    for name in ("task_id", "correlation_id", "request_ref"):
        word = getattr(letter, name)
        if word is not None and not (0 < len(word) <= LONGEST_WORD and word.isprintable()):
            raise AgtmuxError(ErrorCode.USAGE, f"{name} has 1 to {LONGEST_WORD} printable characters")
    if letter.task_id is not None and not _TASK_ID.fullmatch(letter.task_id):
        raise AgtmuxError(ErrorCode.USAGE, "task_id has letters, digits and . : / # @ + - _ alone, as labels-12")
    if letter.ttl_seconds is not None and not 1 <= letter.ttl_seconds <= LONGEST_TTL:
        raise AgtmuxError(ErrorCode.USAGE, f"ttl_seconds may be 1 to {LONGEST_TTL}")
    return replace(letter, content=content, thinking=thinking)


def as_reply(letter: Letter, about: Message) -> Letter:
    """What that was about, this is about too."""
    return replace(
        letter,
        reply_to=about.message_id,
        task_id=letter.task_id or about.task_id,
        correlation_id=letter.correlation_id or about.correlation_id,
    )


def message_of(
    sender: Party, receiver: Party, letter: Letter, now: Timestamp, ttl: int, reason: Reason | None = None
) -> Message:
    """`ttl` is for a letter that names none; `reason` is why it waits, where more is known than who it is for."""
    if letter.ttl_seconds is not None:
        ttl = letter.ttl_seconds * SECOND
    if letter.now_or_never:
        ttl = min(ttl, _NOW)
    message_id = secrets.token_hex(8)
    return Message(
        message_id=message_id,
        sender=sender,
        receiver=receiver,
        type=letter.type,
        priority=letter.priority,
        content=letter.content,
        size=_size(letter.content),
        sent_at=now,
        expires_at=Timestamp(now + ttl),
        thinking=letter.thinking,
        reply_to=letter.reply_to,
        task_id=letter.task_id,
        correlation_id=letter.correlation_id or message_id,
        request_ref=letter.request_ref,
        reason=receiver.waits_for if reason is None else reason,
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
