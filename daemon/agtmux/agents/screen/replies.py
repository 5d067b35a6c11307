"""Which key answers a dialog: yes to this one thing and nothing more, or no.

An option counts as a yes only if all of its words are known to grant nothing beyond what is asked now. What is not
known is for people to answer in the pane itself.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import msgspec

from agtmux.agents.screen.anchors import MARKED
from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.options import OPTION, Choice, Option

# Whoever says yes here trusts a folder or a program from now on, and whoever says no ends the agent.
_LASTING: Final = re.compile(r"\b(?:trust|exit(?! plan)|quit|remember this folder)\b|\bno\b.*\brecommended", re.I)
# What stands behind a label: keys in brackets, or a description further right.
_BEHIND: Final = re.compile(r"(?:\s+\((?:[a-z]|enter|esc|shift\+tab|recommended)\))+$|\s{2,}.*$", re.I)
# Whatever of this a label has, in its description too, it grants more than what is asked now.
_MORE: Final = re.compile(r"\b(?:always|again|remember|for (?:this|the) session|rest of|future|permanently)\b", re.I)
# Some agents draw the number of a long label a column further left.
_MOST_ASKEW: Final = 1
_KEY: Final = re.compile(r"\((?P<key>[a-z])\)", re.I)


class AnswerSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    """What an agent's options say, and what its keys do."""

    # The labels that grant this once; all of a label has to match.
    once: list[str] = []
    # The key that turns a request down, whatever the options are.
    deny: str | None = None
    # In a list without numbers the arrow keys move the mark, and do nothing else.
    moves: bool = False

    @cached_property
    def _once(self) -> re.Pattern[str] | None:
        return re.compile("|".join(f"(?:{label})" for label in self.once)) if self.once else None

    def grants_once(self, label: str) -> bool:
        if self._once is None or _MORE.search(label):
            return False
        return self._once.fullmatch(_BEHIND.sub("", label).strip()) is not None


class Replies(msgspec.Struct, frozen=True):
    """The keys, as tmux names them; None where none is known to be right."""

    approve: str | None = None
    deny: str | None = None
    # What `approve` does is to move the mark towards the yes, and Enter has to follow once it is there.
    is_move: bool = False


NO_REPLIES: Final = Replies()


def find_replies(layout: Layout, sheet: AnswerSheet) -> Replies:
    choice = layout.choice
    if choice is None or any(_LASTING.search(label) for label in choice.labels):
        return NO_REPLIES
    if _is_drawn_twice(layout, choice):
        return Replies(None, sheet.deny if len(choice.options) > 1 else None)
    granting = [option for option in choice.options if sheet.grants_once(option.label)]
    # Two that look right may differ in what was cut off.
    approve = _key(layout, choice, granting[0]) if len(granting) == 1 else None
    move = _move(choice, granting[0]) if len(granting) == 1 and approve is None and sheet.moves else None
    return Replies(approve or move, sheet.deny if len(choice.options) > 1 else None, move is not None)


def _is_drawn_twice(layout: Layout, choice: Choice) -> bool:
    """Whether another option is marked within the dialog. A model may have drawn options of its own, and which of the
    two lists a key would go to is not worth a guess."""
    lines = layout.capture.lines
    columns = [lines[row].start + lines[row].content.find(str(number)) for number, row in enumerate(choice.rows, 1)]
    if choice.is_numbered and max(columns) - min(columns) > _MOST_ASKEW:
        # A label that goes on in the next row stands further right than the numbers.
        return True
    rows = range(choice.top, choice.bottom)
    return any(row not in choice.rows and MARKED.match(layout.capture.lines[row].text) for row in rows)


def _key(layout: Layout, choice: Choice, option: Option) -> str | None:
    """What takes that option at once."""
    line = layout.capture.lines[option.line]
    if choice.is_numbered:
        found = OPTION.match(line.content)
        return found["number"] if found is not None and len(found["number"]) == 1 else None
    if (named := _KEY.search(option.label)) is not None:
        return named["key"].lower()
    return "Enter" if option.is_selected else None


def _move(choice: Choice, option: Option) -> str | None:
    """What brings the mark one row closer to that option."""
    selected = next((each for each in choice.options if each.is_selected), None)
    if choice.is_numbered or selected is None:
        return None
    return "Down" if selected.line < option.line else "Up"
