"""Event envelope v1, and the verdict an adapter reads out of an event.

An envelope is what was reported, by whom and when. A verdict is what it means for the agent's state. The engine
sees both and never the agent's own words.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agtmux.domain.redact import MARK, Redacted, redact_text
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Reason, Source, State
from agtmux.domain.timestamps import Timestamp

MAX_EVENT_BYTES: Final = 1_000_000
MAX_INT64: Final = 2**63 - 1

# What the reconciler may say. Each is about a state agtmux itself holds, so it carries no verdict of its own.
STALE_DETECTED: Final = "stale_detected"
TARGET_HEALTH_CHANGED: Final = "target_health_changed"
DEMOTION_DUE: Final = "demotion_due"


# Stands in the subject of a request for the end of a row that is full: the terminal's line break, or the text's own.
FULL_ROW: Final = "\x1f"
_NOTHING: Final = Redacted("")
LONGEST_SUMMARY: Final = 200
LONGEST_DETAIL: Final = 16_000


class Incomplete(StrEnum):
    """Why a request does not hold all that an approval would be for."""

    # A part of it has left the screen, or was never drawn there.
    NOT_ON_SCREEN = "not_on_screen"
    # The agent itself left a part out.
    LEFT_OUT = "left_out"
    # It is longer than what is kept of a request.
    TOO_LONG = "too_long"
    # A secret is hidden, and what is hidden with it may be more than a value.
    REDACTED = "redacted"
    # It has characters that cannot be shown: control characters, invisible ones, or ones that reorder a line.
    UNREADABLE = "unreadable"
    # The agent reported one request, and its screen shows another.
    SCREEN_DIFFERS = "screen_differs"
    # Whoever reported it did not say what would be done.
    NOT_REPORTED = "not_reported"


INCOMPLETE: Final[dict[Incomplete, str]] = {
    Incomplete.NOT_ON_SCREEN: "only a part of the request is visible in its pane",
    Incomplete.LEFT_OUT: "the agent leaves out a part of the request",
    Incomplete.TOO_LONG: "the request is too long to be shown whole",
    Incomplete.REDACTED: "a hidden secret may hide code as well",
    Incomplete.UNREADABLE: "the request has characters that cannot be shown",
    Incomplete.SCREEN_DIFFERS: "the agent reported another request than its screen shows",
    Incomplete.NOT_REPORTED: "the agent has not said what it would do",
}


@dataclass(frozen=True, slots=True)
class Attention:
    """What a waiting agent asks of its user."""

    kind: str
    summary: Redacted
    detail: Redacted | None = None
    options: tuple[Redacted, ...] = ()
    # Why the summary and the detail are not all that an approval would be for; None if they are all.
    incomplete: Incomplete | None = Incomplete.NOT_REPORTED
    # The command, the file or the plan alone, uncut: by it what was reported and what is on a screen are compared.
    subject: Redacted = _NOTHING
    # The summary alone holds all that an approval would be for.
    is_brief: bool = False

    @property
    def is_whole(self) -> bool:
        return self.incomplete is None


def shortened(text: Redacted, limit: int) -> Redacted:
    """With a sign that it goes on: nobody is to say yes to more than is shown without knowing it."""
    return text if len(text) <= limit else Redacted(f"{text[: limit - 1]}…")


def shortened_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def request(
    kind: str,
    summary: str,
    detail: str | None,
    options: tuple[Redacted, ...] = (),
    incomplete: Incomplete | None = None,
    subject: str = "",
    *,
    is_brief: bool = False,
) -> Attention:
    """A request with its secrets hidden. What it lacks for that, or for its length, is told. A detail has to hold all
    of it, the text of the summary too. A summary is brief only if the request is one line as well: joined to one, `# a`
    and the command below it would be a comment."""
    text = summary if detail is None else detail
    if incomplete is None and has_unreadable(text):
        incomplete = Incomplete.UNREADABLE
    if incomplete is None and len(text) > LONGEST_DETAIL:
        incomplete = Incomplete.TOO_LONG
    hidden, shown = redact_text(text), redact_text(summary)
    if incomplete is None and hides_code(text, hidden):
        incomplete = Incomplete.REDACTED
    return Attention(
        kind,
        shortened(shown, LONGEST_SUMMARY),
        None if detail is None else shortened(hidden, LONGEST_DETAIL),
        options,
        incomplete,
        redact_text(subject[:LONGEST_DETAIL]),
        is_brief
        and incomplete is None
        and len(shown) <= LONGEST_SUMMARY
        and not shown.endswith("…")
        and not hides_code(summary, shown)
        and not any(line_break in subject for line_break in ("\n", FULL_ROW)),
    )


def hides_code(text: str, redacted: Redacted) -> bool:
    """Whether what was hidden may be more than a value: it has a character that means something to a shell, or a blank.
    A hidden value has letters, digits and the few signs of keys alone: no path, and no address, as it may be that of
    another program or server. Of what had been hidden before it came here, nothing is known."""
    if MARK in text:
        return True
    if text == redacted:
        return False
    kept = redacted.replace(MARK, "")
    return any(text.count(char) > kept.count(char) for char in set(text) if not (char.isalnum() or char in _INERT))


_INERT: Final = "_-.+=%,"
# These join and colour the signs of ordinary text.
_JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"


def has_unreadable(text: str) -> bool:
    """Whether it has characters that are not seen as what they are: controls, invisible ones, ones that turn a line."""
    if text.isascii() and text.isprintable():
        return False
    return any(unicodedata.category(char) in _UNSEEN and char not in _SEEN for char in text)


_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_SEEN: Final = frozenset("\n\t" + _JOINERS)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one event says about the agent."""

    state: State
    reason_code: str
    confidence: Confidence = Confidence.HIGH
    attention: Attention | None = None
    # What was seen, in a line for people: the hook's name, the line on the screen.
    note: Redacted | None = None
    # For what is seen again and again: since when it has been the same, and how often it was looked at.
    held_since: Timestamp | None = None
    repeats: int = 1
    # Of a dialog: it was still there after a report of work had time to end it, so others like that do not either.
    outlives_reports: bool = False
    # The fingerprint of the dialog that is on the screen.
    dialog: str | None = None
    # Something is drawn over the agent's screen: a menu, a viewer, or a dialog that nobody knows yet. What is behind it
    # can only be guessed.
    is_covered: bool = False
    # A dialog was on the screen for the wait that was reported, and is there no more.
    dialog_gone: bool = False

    @property
    def is_unsupported(self) -> bool:
        return self.state is State.UNKNOWN and self.reason_code == Reason.UNSUPPORTED_SIGNAL


@dataclass(frozen=True, slots=True)
class Event:
    event_id: str
    event_type: str
    source: Source
    dedupe_key: str
    event_time: Timestamp
    ingested_at: Timestamp
    source_event_id: str | None = None
    source_seq: int | None = None
    runtime_id: RuntimeId | None = None
    target_id: TargetId | None = None
    pane_id: PaneId | None = None
    # Hints for binding, when `runtime_id` is absent.
    pid: int | None = None
    start_hint: Timestamp | None = None
    agent_type: str | None = None
    # The processes it came from, where that has to be proven: the agent's own must be among them.
    ancestors: frozenset[int] | None = None
    # The process of the tmux server the event came from.
    server_pid: int | None = None
    raw_payload: Redacted | None = None
    action_id: str | None = None
    # None: the event is known and says nothing about the state.
    verdict: Verdict | None = None
    # A guard for events that are about a state seen earlier: it applies only to that version.
    if_state_version: int | None = None
    # The file that the agent says it writes its conversation to. It is not kept: what follows it looks for itself.
    transcript: str = ""


def derive_dedupe_key(source: str, source_event_id: str | None, event_type: str, payload: bytes) -> str:
    payload_hash = hashlib.sha256(payload).hexdigest()
    joined = f"{source}:{source_event_id or ''}:{payload_hash}:{event_type.strip().lower()}"
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
