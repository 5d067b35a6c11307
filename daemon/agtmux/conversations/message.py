"""A prompt or an answer as it is kept: redacted, without what would steer a terminal, and no longer than sensible."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from agtmux.domain.legible import printable
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp

Role = Literal["user", "assistant"]
Source = Literal["transcript", "screen", "chat"]

LONGEST: Final = 100_000
LONGEST_SUMMARY: Final = 120
# CSI, OSC and the other sequences of a terminal, whole, so that nothing of them is left as text. One without an end
# ends with its line: what follows was said.
_SEQUENCE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
_LAST_WORD: Final = re.compile(r"\s\S*\Z")
_CUT_WITHIN: Final = 2_000


@dataclass(frozen=True, slots=True)
class Message:
    seq: int
    message_id: str
    conversation_id: str
    target_id: TargetId
    agent_type: str
    runtime_id: RuntimeId | None
    worktree: str | None
    role: Role
    content: Redacted
    summary: Redacted
    at: Timestamp
    request_id: str | None
    source: Source
    # It was longer than what is kept.
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A message before it has its place among all."""

    # Tells it from all others of its conversation, however often it is read.
    entry_id: str
    role: Role
    content: Redacted
    summary: Redacted
    at: Timestamp
    request_id: str | None
    is_cut: bool


def entry(entry_id: str, role: Role, text: str, at: Timestamp, request_id: str | None = None) -> Entry:
    content, is_cut = kept(text)
    if request_id is not None and redact_text(request_id) != request_id:
        request_id = None
    return Entry(entry_id, role, content, summarised(content), at, request_id, is_cut)


def kept(text: str) -> tuple[Redacted, bool]:
    """A text as it is kept, and whether that is not all of it. Redacted before it is cut: half of a secret might no
    longer look like one."""
    whole = redact_text(
        printable(_SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n"), "\n\t").strip("\n")
    )
    if len(whole) <= LONGEST:
        return whole, False
    head = whole[:LONGEST]
    last_word = _LAST_WORD.search(head, LONGEST - _CUT_WITHIN)
    return Redacted(head[: last_word.start()].rstrip() if last_word else head), True


def summarised(content: Redacted) -> Redacted:
    """Its first words in one line."""
    line = " ".join(content[: LONGEST_SUMMARY * 8].split())
    return Redacted(line if len(line) <= LONGEST_SUMMARY else line[: LONGEST_SUMMARY - 1].rstrip() + "…")


def digest(*parts: str) -> str:
    """An id that the same parts always give. A length before each keeps ("a", "bc") and ("ab", "c") apart."""
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def distinct(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Each once, as it was said last, in the place where it was first."""
    found: dict[str, Entry] = {}
    for each in entries:
        found[each.entry_id] = each
    return iter(found.values())
