"""What is read in the menu and in notifications: short, legible and of one line, whatever an agent says."""

from __future__ import annotations

import unicodedata
from typing import Final

from agtmux.domain.durations import SECOND, format_age
from agtmux.domain.legible import legible
from AgtmuxBar.snapshot import Pane, question_of

# In cells of a terminal; a menu as wide as the screen hides what it is about.
QUESTION: Final = 60
PLACE: Final = 36
AGENT: Final = 20
_HINT: Final = 600
MINUTE: Final = 60.0


def place_of(pane: Pane) -> str:
    identity = pane["identity"]
    return short(f"{identity['target']}-{identity['session_name']}", PLACE) + f" {identity['pane_id']}"


def agent_of(pane: Pane) -> str:
    return short(pane["agent_type"], AGENT)


def request_text(pane: Pane) -> str:
    """All that is known of what a pane asks, to be read before it is answered."""
    attention = pane["attention"] or {}
    lines = [
        f"{agent_of(pane)} in {place_of(pane)}",
        f"{pane['cwd']}{' on ' + pane['branch'] if pane['branch'] else ''}",
        "",
        question_of(pane),
    ]
    if attention.get("detail"):
        lines += ["", attention["detail"]]
    if attention.get("options"):
        lines += ["", *(f"{number}. {option}" for number, option in enumerate(attention["options"], 1))]
    return "\n".join(legible(line, keep="\n\t") for line in lines)


def age_of(seconds: float) -> str:
    return "now" if seconds < MINUTE else format_age(int(seconds) * SECOND)


def hint_of(text: str) -> str:
    return legible(text, keep="\n")[:_HINT]


def short(text: str, room: int) -> str:
    """One legible line of at most that many cells, with a sign where it goes on; a wide character takes two."""
    shown = " ".join(legible(text).split())
    if len(shown) <= room and shown.isascii():
        return shown
    width = 0
    for place, char in enumerate(shown):
        width += 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > room:
            return shown[: place - 1].rstrip() + "…"
    return shown
