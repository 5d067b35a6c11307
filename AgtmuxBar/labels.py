"""What is read in the menu and in notifications: short, legible and of one line, whatever an agent says."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import Final

from agtmux.domain.durations import SECOND, format_age
from agtmux.domain.events import shortened_text
from agtmux.domain.legible import LEFT_TO_RIGHT, in_order, legible, printable
from agtmux.domain.names import shown_name
from AgtmuxBar.snapshot import Letter, Pane, question_of

# In cells of a terminal; a menu as wide as the screen hides what it is about.
QUESTION: Final = 60
# What a menu shows of a request before it is approved.
REVIEW_LINES: Final = 30
REVIEW_WIDTH: Final = 100
PLACE: Final = 36
AGENT: Final = 20
_HINT: Final = 600
MINUTE: Final = 60.0


def place_of(pane: Pane) -> str:
    identity = pane["identity"]
    return short(f"{identity['target']}-{identity['session_name']}", PLACE) + f" {identity['pane_id']}"


def agent_of(pane: Pane) -> str:
    return short(shown_name(pane["agent_type"], pane.get("name")), AGENT)


def can_answer(pane: Pane) -> bool:
    """Whether agtmux can answer the dialogs of such an agent. A daemon that does not say so can."""
    return bool((pane.get("capabilities") or {}).get("supports_waiting_approval", True))


def is_brief(pane: Pane, room: int) -> bool:
    """Whether all that an approval would be for stands in one line of that many cells."""
    attention = pane["attention"] or {}
    text = question_of(pane)
    return bool(attention.get("brief")) and short(text, room) == " ".join(legible(text).split())


def request_lines(pane: Pane) -> list[str] | None:
    """All that an approval would be for, in as many lines as a menu can show; None if that is not all."""
    attention = pane["attention"] or {}
    if not attention.get("whole"):
        return None
    text = attention.get("detail") or question_of(pane)
    lines = [
        part
        for line in legible(text, keep="\n\t").expandtabs(4).split("\n")
        for part in textwrap.wrap(line, REVIEW_WIDTH, drop_whitespace=False, replace_whitespace=False) or [""]
    ]
    return lines if len(lines) <= REVIEW_LINES else None


def request_text(pane: Pane) -> str:
    """All that is known of what a pane asks, to be read before it is answered."""
    attention = pane["attention"] or {}
    lines = [
        f"{pane['cwd']}{' on ' + pane['branch'] if pane['branch'] else ''}",
        "",
        question_of(pane),
    ]
    if attention.get("detail"):
        lines += ["", attention["detail"]]
    if attention.get("options"):
        lines += ["", *(f"{number}. {option}" for number, option in enumerate(attention["options"], 1))]
    return "\n".join(legible(line, keep="\n\t") for line in lines)


def letter_text(letter: Letter) -> str:
    """Who has written what, whole."""
    head = f"{letter['from_agent']} ({letter['type']} {letter['message_id']}):"
    return "\n".join([legible(head), "", printable(letter["content"] or "", keep="\n\t")])


def readable(screen: str, most: int) -> str:
    """The last lines of a screen without what is only drawn there: rules, and room."""
    lines: list[str] = []
    for line in screen.splitlines():
        shown = legible(line).rstrip()
        is_empty = not any(char.isalnum() for char in shown)
        if not is_empty or (lines and lines[-1]):
            lines.append("" if is_empty else shown)
    return "\n".join(lines[-most:]).strip("\n")


def title_of(pane: Pane) -> str:
    return f"{agent_of(pane)} in {place_of(pane)}"


def age_of(seconds: float) -> str:
    return "now" if seconds < MINUTE else format_age(int(seconds) * SECOND)


def hint_of(text: str) -> str:
    return shortened_text(legible(text, keep="\n"), _HINT)


def short(text: str, room: int) -> str:
    """One legible line of at most that many cells, with a sign where it goes on; a wide character takes two."""
    shown = " ".join(legible(text).split())
    if len(shown) <= room and shown.isascii():
        return shown
    width = 0
    for place, char in enumerate(shown):
        width += (
            0
            if unicodedata.combining(char) or char == LEFT_TO_RIGHT
            else 2
            if unicodedata.east_asian_width(char) in "WF"
            else 1
        )
        if width > room:
            return in_order(shown[: place - 1].rstrip()) + "…"
    return shown
