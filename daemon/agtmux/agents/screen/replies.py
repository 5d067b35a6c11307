"""Which key answers a dialog: yes to this one thing and nothing more, or no.

An option counts as a yes only if all of its words are known to grant nothing beyond what is asked now. What is not
known is for people to answer in the pane itself.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import msgspec

from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.options import OPTION, Choice, Option

# Whoever says yes here trusts a folder or a program from now on, and whoever says no ends the agent.
_LASTING: Final = re.compile(r"\b(?:trust|exit(?! plan)|quit|remember this folder)\b|\bno\b.*\brecommended", re.I)
# What stands behind a label: keys in brackets, or a description further right.
_BEHIND: Final = re.compile(r"(?:\s+\((?:[a-z]|enter|esc|shift\+tab|recommended)\))+$|\s{2,}.*$", re.I)
# Whatever of this a label has, in its description too, it grants more than what is asked now.
_MORE: Final = re.compile(r"\b(?:always|again|remember|for (?:this|the) session|rest of|future|permanently)\b", re.I)
_KEY: Final = re.compile(r"\((?P<key>[a-z])\)", re.I)


class AnswerSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    """What an agent's options say, and what its keys do."""

    # The labels that grant this once; all of a label has to match.
    once: list[str] = []
    # The key that turns a request down, whatever the options are.
    deny: str | None = None

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


NO_REPLIES: Final = Replies()


def find_replies(layout: Layout, sheet: AnswerSheet) -> Replies:
    choice = layout.choice
    if choice is None or any(_LASTING.search(label) for label in choice.labels):
        return NO_REPLIES
    granting = [option for option in choice.options if sheet.grants_once(option.label)]
    # Two that look right may differ in what was cut off.
    approve = _key(layout, choice, granting[0]) if len(granting) == 1 else None
    return Replies(approve, sheet.deny if len(choice.options) > 1 else None)


def _key(layout: Layout, choice: Choice, option: Option) -> str | None:
    """What takes that option at once."""
    line = layout.capture.lines[option.line]
    if choice.is_numbered:
        found = OPTION.match(line.content)
        return found["number"] if found is not None and len(found["number"]) == 1 else None
    if (named := _KEY.search(option.label)) is not None:
        return named["key"].lower()
    return "Enter" if option.is_selected else None
