"""How a message looks in its receiver's prompt: who sends it is ours to say, and nothing in a text can say it again.

[agtmux msg from reviewer]: Two tests fail on main.
(agtmux task_request 5f0c9a1be2d34c77; answer with send_message, to "reviewer", reply_to "5f0c9a1be2d34c77")
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from agtmux.domain.mail import Message, MessageType

# What only agtmux begins with, behind a bracket, and what is put there where a text does.
_NAME: Final = "agtmux"
_QUOTED: Final = "quoted "
# Brackets, and what is drawn like them, that are not followed by what is plainly something else.
_BRACKET: Final = re.compile(
    r"[\[(\uff3b\uff08\ufe47\ufe35\ufe59\u207d\u208d\u3010\u3014\u3016\u301a\u27e6\u27ee\u2772\u2045\u2768\u276a\u2985"
    r"\u298b\u298d\u298f\u23a1\u23a2\u23a3\u239b\u239c\u239d\u2e28\ufd3e](?![!-@B-`b-~])"
)
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
# Control characters, what joins or marks others; and letters that are drawn as nothing.
_UNSEEN: Final = ("Cc", "Cf", "Mn", "Me")
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


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
    # From bracket to bracket: to look at every letter of a megabyte would keep the daemon busy for seconds.
    for bracket in _BRACKET.finditer(text):
        if _goes_on_as_ours(text, bracket.end()):
            parts += [text[begin : bracket.end()], _QUOTED]
            begin = bracket.end()
    return "".join([*parts, text[begin:]])


def _unmarked(text: str) -> str:
    """Without choices: none is marked, and where one was or keys are named, none has a number as a choice has it."""
    text, marks = _MARK.subn("*", text)
    text = _QUOTE.sub(r"\1>", text)
    text, keys = _KEY.subn(r'"\1"', text)
    return _NUMBER.sub(r"(\1)", text) if marks or keys else text


def _goes_on_as_ours(text: str, at: int) -> bool:
    """Whether a reader sees our name there."""
    seen = 0
    while at < len(text):
        for letter in _letters(text[at]):
            if letter != _NAME[seen]:
                return False
            seen += 1
            if seen == len(_NAME):
                return True
        at += 1
    return False


@lru_cache(maxsize=1_024)
def _letters(char: str) -> tuple[str, ...]:
    """What a reader sees of it."""
    if unicodedata.category(char) in _UNSEEN or char.isspace() or char in _BLANK:
        return ()
    return tuple(
        _LOOKS_LIKE.get(letter, letter)
        for letter in unicodedata.normalize("NFKD", char).casefold()
        if unicodedata.category(letter) not in _UNSEEN
    )


# Letters of other alphabets that are drawn like ours: Greek, Cyrillic, Armenian, phonetic, Cherokee, Lisu.
_LOOKS_LIKE: Final = {
    **dict.fromkeys("\u0430\u0251\u03b1\u1d00\u13aa\ua4ee", "a"),
    **dict.fromkeys("\u0261\u0260\u0581\u0262\u050d\u13c0\ua4d6", "g"),
    **dict.fromkeys("\u03c4\u0442\u1d1b\u13a2\ua4d4", "t"),
    **dict.fromkeys("\u043c\u217f\u03bc\u1d0d\u13b7\ua4df", "m"),
    **dict.fromkeys("\u03c5\u057d\u1d1c\u222a\ua4f4", "u"),
    **dict.fromkeys("\u0445\u03c7\u00d7\ua4eb", "x"),
}
