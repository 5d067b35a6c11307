"""What an agent writes down of its conversation: where, whose it is, and which of its entries are prompts and answers.

An entry that no rule knows is no message: tools, subagents, what the program says to the model by itself. Files of an
agent are nobody's interface, so what cannot be read is passed over, never guessed at.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from agtmux.agents.hooks import Condition, holds, look_up

Role = Literal["user", "assistant"]

_LONGEST_ID: Final = 200
_ID: Final = re.compile(r"[!-~]{1,200}")
_DECODER: Final = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Said:
    """A prompt or an answer, as the agent wrote it down."""

    # Which entry of its session it is: the same one, however often it is read.
    entry_id: str
    role: Role
    text: str
    # In microseconds since the epoch; None if the entry does not tell.
    at: int | None
    request_id: str | None


class EntryRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`role` nothing: an entry that is known and is no message. The first that fits decides."""

    when: dict[str, Condition]
    role: Role | None = None
    text: str = ""
    id: str = ""
    request_id: str = ""
    # Not a message if its text begins so: what the program says in its user's or the model's place.
    not_starting: list[str] = []


class TranscriptSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # The first whose variable is set, in the agent's own environment, is where its files are.
    folders: Annotated[list[str], msgspec.Meta(min_length=1)]
    # Below it, one object a line.
    file: Annotated[str, msgspec.Meta(pattern=r"\{session\}")]
    # What shows whose it is: a `registry` named by the process that has the session under `key`, a `lock` named by it
    # beside the file, or that it is `holding` the file open. Without any, the agent's own hooks have to say so.
    by: Literal["registry", "lock", "holding", ""] = ""
    owner: str = ""
    key: str = ""
    # Where a hook's payload has the file, and what of the payload must be so; a subagent's has another.
    claim: str = ""
    claim_when: dict[str, Condition] = {}
    # Where an entry has its time, if not in a place of its own.
    at: str = "timestamp"
    entry: list[EntryRule] = []
    # Where an entry has a list of others in it.
    within: str = ""

    @property
    def rule(self) -> dict[str, Any]:
        """What a probe has to know to find it."""
        names = ("folders", "file", "by", "owner", "key")
        return {name: getattr(self, name) for name in names}

    def claimed(self, payload: object) -> str:
        """The file that a hook says its agent writes to; empty if it does not."""
        path = look_up(payload, self.claim) if self.claim else None
        fits = all(holds(payload, name, want) for name, want in self.claim_when.items())
        return path if isinstance(path, str) and fits and path.startswith("/") and "\0" not in path else ""

    def read(self, lines: bytes) -> Iterator[Said]:
        """The messages in whole lines of the file, in their order."""
        for line in lines.split(b"\n"):
            if not line.strip():
                continue
            try:
                entry = _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                try:
                    entry = _repaired(line)
                except (ValueError, RecursionError):
                    continue
            inner = look_up(entry, self.within) if self.within else None
            for each in inner if isinstance(inner, list) else [entry]:
                said = self._said(each, line)
                if said is not None:
                    yield said

    def _said(self, entry: object, line: bytes) -> Said | None:
        if not isinstance(entry, dict):
            return None
        rule = next((rule for rule in self.entry if all(holds(entry, *each) for each in rule.when.items())), None)
        if rule is None or rule.role is None:
            return None
        text = _text(look_up(entry, rule.text))
        if not text.strip() or text.lstrip().startswith(tuple(rule.not_starting)):
            return None
        own_id, request_id = look_up(entry, rule.id) if rule.id else None, look_up(entry, rule.request_id)
        if not isinstance(own_id, str) or not 0 < len(own_id) <= _LONGEST_ID:
            own_id = hashlib.sha256(line).hexdigest()[:32]
        is_id = isinstance(request_id, str) and _ID.fullmatch(request_id) is not None
        return Said(own_id, rule.role, text, _moment(look_up(entry, self.at)), request_id if is_id else None)


def _repaired(line: bytes) -> Any:
    """A line with bytes in it that are no UTF-8, or with half a character, which JavaScript writes where it cuts a text
    in the middle of one. Raises ValueError if it is not JSON at all."""
    told = json.dumps(json.loads(line.decode("utf-8", "replace")), ensure_ascii=False)
    return json.loads(told.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _text(value: object) -> str:
    """A text, or those of its parts that are one: pictures and tool calls are not."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in value)
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _moment(value: object) -> int | None:
    if isinstance(value, int | float) and 0 < value < 2**53:
        return int(value * 1_000)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if moment.tzinfo is None or moment.year < 1970 else int(moment.timestamp() * 1_000_000)
