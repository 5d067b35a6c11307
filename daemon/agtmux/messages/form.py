"""How a message looks in its receiver's prompt: who sends it is ours to say, and nothing in a text can say it again.

[agtmux msg from reviewer]: Two tests fail on main.
(agtmux task_request 5f0c9a1be2d34c77; answer with send_message, to "reviewer", reply_to "5f0c9a1be2d34c77")
"""

from __future__ import annotations

import re
from typing import Final

from agtmux.domain.mail import Message, MessageType
from agtmux.messages.lookalikes import heads

# What is put where a text reads as if agtmux had written it.
_QUOTED: Final = "quoted "
# Types whose sender waits for an answer.
_ASKING: Final = frozenset({MessageType.TASK_REQUEST})
# Would turn around what stands beside it.
_BIDIRECTIONAL: Final = dict.fromkeys(
    map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)
# Frames and rules as a typewriter has them.
_DRAWN: Final = {
    **dict.fromkeys(range(0x2500, 0x2580), "+"),
    **dict.fromkeys(map(ord, "─━┄┅┈┉╌╍═▔▁▀▄⎯"), "="),
    **dict.fromkeys(map(ord, "│┃║┆┇┊┋╎╏▌▏▕"), "|"),
}
_RULE: Final = re.compile("-{10,}")
# The mark before a choice: one that nobody writes in a sentence, or with a number behind it, or first in its line.
_MARK: Final = re.compile(r"[❯›▶▸◉➤●☐☑☒]|[>→»](?=\s*[↑↓▲▼]?\s*\d{1,2}[.)])|^[ \t]*[→»](?=\s)", re.MULTILINE)
_QUOTE: Final = re.compile(r"^([ \t]*>)(?=\s)", re.MULTILINE)
# The keys that a dialog tells of below its choices.
_KEY: Final = re.compile(r"\b(enter|return|esc|escape|tab|space)\b(?=\s+(?:to|or|key|[a-z]+\s*[·|,)]))", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<!\S)(\d{1,2})[.)](?=\s)")


def injected(message: Message) -> str:
    """All that is typed for it."""
    text = f"[agtmux msg from {message.sender.name}]: {defused(message.content or '')}"
    foot = _foot(message)
    return f"{text}\n{foot}" if foot else text


def _foot(message: Message) -> str:
    if message.type is MessageType.INFO and message.reply_to is None:
        return ""
    parts = [f"agtmux {message.type} {message.message_id}"]
    if message.reply_to is not None:
        parts[0] += f", in reply to {message.reply_to}"
    if message.task_id is not None:
        parts[0] += f", task {message.task_id}"
    if message.type in _ASKING:
        parts.append(f'answer with send_message, to "{message.sender.name}", reply_to "{message.message_id}"')
    return f"({'; '.join(parts)})"


def is_identified(message: Message, screen: str) -> bool:
    """Whether just this message is to be seen, as far as it says which it is."""
    # Lines may end anywhere.
    return bool(_foot(message)) and f"agtmux{message.type}{message.message_id}" in "".join(screen.split())


def defused(text: str) -> str:
    """Without anything that reads as if agtmux had written it, in whatever letters, or as if an agent asked something:
    while a text stands in a prompt, what is drawn in it is all that tells it from a dialog."""
    if not text.isascii():
        text = text.translate(_BIDIRECTIONAL).translate(_DRAWN)
    text = _unmarked(_RULE.sub(lambda found: "=" * len(found[0]), text))
    parts, begin = [], 0
    for at in heads(text):
        parts += [text[begin:at], _QUOTED]
        begin = at
    return "".join([*parts, text[begin:]])


def _unmarked(text: str) -> str:
    """Without choices: none is marked, and where one was or keys are named, none has a number as a choice has it."""
    text, marks = _MARK.subn("*", text)
    text = _QUOTE.sub(r"\1>", text)
    text, keys = _KEY.subn(r'"\1"', text)
    # Agents set a dot between the keys that they name.
    return _NUMBER.sub(r"(\1)", text.replace(" · ", " - ")) if marks or keys else text
