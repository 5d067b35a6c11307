"""What is said on a chat socket: one JSON object a line, in both directions. No I/O.

docs/chat.md has the words of it. What clients say is decoded here; what they are told is made where it happens, and
is made to fit a line here.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from agtmux.domain.errors import AgtmuxError, ErrorCode

VERSION: Final = 1
# Of a line from a client, its end not counted.
LINE_LIMIT: Final = 1_048_576
# Of any one text in what clients are told.
TEXT_LIMIT: Final = 65_536
_WORDS: Final = "message, approve, deny, answer, abort, replay"

Told = dict[str, Any]


class Message(msgspec.Struct, tag_field="type", tag="message", frozen=True):
    """The next thing that the user says."""

    text: str


class Approve(msgspec.Struct, tag_field="type", tag="approve", frozen=True):
    request_id: str


class Deny(msgspec.Struct, tag_field="type", tag="deny", frozen=True):
    request_id: str
    reason: str = ""


class Answer(msgspec.Struct, tag_field="type", tag="answer", frozen=True):
    """To a question: by its words, or in their order, or the one answer where there is one question."""

    request_id: str
    answers: dict[str, str | list[str]] | list[str | list[str]] | str


class Abort(msgspec.Struct, tag_field="type", tag="abort", frozen=True):
    """The turn that is under way is broken off."""


class Replay(msgspec.Struct, tag_field="type", tag="replay", frozen=True):
    """From after this number on, once more."""

    after: int


Command = Message | Approve | Deny | Answer | Abort | Replay
_decoder: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)
_encoder: Final = msgspec.json.Encoder()


def decoded(line: bytes) -> Command:
    try:
        command = _decoder.decode(line)
    except msgspec.ValidationError as error:
        raise AgtmuxError(ErrorCode.USAGE, f"{error}; types are {_WORDS}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgtmuxError(ErrorCode.USAGE, f"this line is not JSON ({error}); one object a line, please") from None
    if isinstance(command, Message) and not command.text.strip():
        raise AgtmuxError(ErrorCode.USAGE, "a message needs a text")
    return command


def encoded(told: Told) -> bytes:
    try:
        return _encoder.encode(told) + b"\n"
    except UnicodeEncodeError:
        # Half of a character, where a tool's output was cut in the middle of one.
        text = json.dumps(told, ensure_ascii=False)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode() + b"\n"


def error_told(error: AgtmuxError) -> Told:
    return {"type": "error", "code": str(error.code), "message": error.message}


def fitted(value: Any, limit: int = TEXT_LIMIT) -> tuple[Any, bool]:
    """With every text short enough for a line, and whether any was cut."""
    if isinstance(value, str):
        return (value, False) if len(value) <= limit else (value[:limit] + "…", True)
    if isinstance(value, dict):
        pairs = {str(key): fitted(each, limit) for key, each in value.items()}
        return {key: each for key, (each, _) in pairs.items()}, any(cut for _, cut in pairs.values())
    if isinstance(value, list):
        items = [fitted(each, limit) for each in value]
        return [each for each, _ in items], any(cut for _, cut in items)
    return value, False


# What of a tool's input tells best what it is about.
_TELLING: Final = ("command", "file_path", "path", "url", "query", "pattern", "prompt", "description", "plan")


def tool_line(tool: str, given: dict[str, Any]) -> str:
    """A tool and what it is used on, in a line."""
    about = next((str(given[name]) for name in _TELLING if given.get(name)), "")
    return " ".join(f"{tool} {about}".split())[:500]


class Lines:
    """Bytes in, lines out. A line that is too long is told of once and not kept."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest = b""
        self._is_skipping = False

    def feed(self, part: bytes) -> list[bytes | None]:
        """The lines that are whole now, without their ends; None for one that is too long."""
        *ended, self._rest = (self._rest + part).split(b"\n")
        lines: list[bytes | None] = []
        for line in ended:
            if self._is_skipping:
                self._is_skipping = False
            else:
                lines.append(line if len(line) <= self._limit else None)
        if len(self._rest) > self._limit:
            if not self._is_skipping:
                lines.append(None)
            self._is_skipping = True
        if self._is_skipping:
            self._rest = b""
        return lines
