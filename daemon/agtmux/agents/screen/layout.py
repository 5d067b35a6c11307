"""The parts that every agent's screen has, found by how they are drawn: the composer, a list to choose from, what is
above and below them.

Agents draw from the bottom up: what is live is there, what is above is history. A composer below a list means that
the list is history, or a quotation, however much it looks like a dialog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agtmux.agents.screen.capture import Capture, Line
from agtmux.agents.screen.composer import Composer, find_composer, is_within_box
from agtmux.agents.screen.frame import BAR
from agtmux.agents.screen.options import Choice, find_choice

# `user@host:~$`, `~/folder %`, `bash-5.2#`, `➜  folder`, or what a shell says of a program that has ended, with
# whatever is left of the line that it was written over. Status lines have shares in percent.
_SHELL_PROMPT: Final = re.compile(
    r"(?:\([\w.-]+\) )?(?:"
    r"\[?[\w.-]+@[\w.-]+(?![\w.-])[^$#%>]{0,120}(?<!\d)[$#%>]|[~/][\w./~ -]{0,120}(?<!\d)[$#%]"
    r"|(?:ba|z|k|da)?sh[-\d.]*[$#%]|[$#%](?= ?$)"
    r")(?: |$)|➜  \S|(?:zsh: )?(?:killed|terminated|suspended)\b|\[\d+\] ?[+-]? +(?:stopped|killed)",
    re.I,
)
# With what is left of the line before it and behind it.
_KILLED: Final = re.compile(r".{0,3}(?:Killed|Terminated|Aborted|Segmentation fault)")
_BLANK_OR_END: Final = ("", " ")
# Lines between a composer and a list that belongs to it: hints.
_MOST_MENU: Final = 4
# What Enter does in a list, in the last rows below it: at a composer it sends.
_SELECTS: Final = re.compile(r"\benter to select\b", re.I)
_FOOT: Final = 3
# From a composer's sign to what is typed at it, in columns.
_TYPED: Final = 2
_ANSWER: Final = re.compile(r"(?:yes|no|allow|deny|approve|reject|accept|decline)\b", re.I)


@dataclass(frozen=True, slots=True)
class Layout:
    capture: Capture
    composer: Composer | None
    choice: Choice | None
    # A list above the composer: of a dialog that has one, or history.
    above: Choice | None
    # A shell has written below, or over, what the agent had drawn.
    is_left_behind: bool

    def lines(self, start: int, end: int) -> list[Line]:
        return list(self.capture.lines[max(start, 0) : end])


def read_layout(
    capture: Capture,
    signs: tuple[str, ...],
    bare_signs: tuple[str, ...],
    *,
    bright: bool = True,
    plain_option: re.Pattern[str] | None = None,
) -> Layout:
    """`signs` stand before what is typed, between rules or in a box; `bare_signs` do without either."""
    composer = find_composer(capture, signs, bare_signs, bright)
    choice = find_choice(capture, bool(signs), plain_option)
    if choice is not None and composer is not None:
        first = choice.options[0].line
        # Where the sign also marks options, those were told from what is typed.
        is_option = plain_option is not None and composer.frame == composer.top in choice.rows
        is_dialog = is_option or is_within_box(capture, composer, first) or _is_imitated(capture, composer, choice)
        if composer.bottom > first and not is_dialog:
            is_left = _shell_is_below(capture, composer.bottom) or _shell_wrote_over(capture, composer.frame)
            return Layout(capture, composer, None, choice, is_left)
        if _is_menu_below(capture, composer, choice):
            is_left = _shell_is_below(capture, composer.bottom) or _shell_wrote_over(capture, composer.frame)
            return Layout(capture, composer, None, None, is_left)
    if choice is not None:
        is_left = _shell_is_below(capture, choice.options[0].line + 1) or _shell_wrote_over(capture, choice.top)
        return Layout(capture, None, choice, None, is_left)
    if composer is not None:
        is_left = _shell_is_below(capture, composer.bottom) or _shell_wrote_over(capture, composer.frame)
        return Layout(capture, composer, None, None, is_left)
    is_left = _shell_is_below(capture, capture.end - 1) or _shell_wrote_over(capture, 0)
    return Layout(capture, None, None, None, is_left)


def _is_imitated(capture: Capture, composer: Composer, choice: Choice) -> bool:
    """Whether a model's drawing in the dialog makes it look like a composer: rows with a sign above the options or
    between them, or a rule just above the first of them."""
    if composer.top < choice.options[0].line:
        # What is typed stands further right than its sign, and a model's rows no further left than the options.
        left = min(capture.lines[row].start for row in choice.rows)
        line = capture.lines[composer.top]
        return (0 if line.text.startswith(BAR) else line.start) + _TYPED > left
    if composer.top > choice.rows[-1]:
        return False
    below = [line.content for line in capture.lines[choice.rows[-1] + 1 : capture.end] if not line.is_blank]
    return _SELECTS.search(" ".join(below[-_FOOT:])) is not None


def _is_menu_below(capture: Capture, composer: Composer, choice: Choice) -> bool:
    """Whether a list without numbers belongs to the composer above it: one between two rules is still there to type at,
    and a dialog begins with a rule of its own."""
    first = choice.options[0].line
    if choice.frame.is_closed and choice.top < composer.frame:
        # It is within the dialog.
        return False
    if composer.frame == composer.top or composer.bottom >= capture.end or not capture.lines[composer.bottom].is_rule:
        return False
    between = capture.lines[composer.bottom + 1 : first]
    if choice.is_numbered or first - composer.bottom > _MOST_MENU or any(line.is_rule for line in between):
        return False
    return not any(_ANSWER.match(label) for label in choice.labels)


def _shell_is_below(capture: Capture, start: int) -> bool:
    """Whether a shell's prompt is at the edge of one of the lines from there on."""
    lines = capture.lines[max(start, 0) : capture.end]
    return any(line.text[:1].strip() and _SHELL_PROMPT.match(line.text) is not None for line in lines)


def _shell_wrote_over(capture: Capture, top: int) -> bool:
    """Whether a shell's prompt comes after the word that the program was killed, and nothing is typed at it. What is
    drawn all below it, from `top` on, is of the program's next start; and so is what comes after a prompt at which
    something was typed."""
    is_left = False
    for at in range(max(top, 1), capture.end):
        if not is_left and _KILLED.match(capture.lines[at - 1].text) is None:
            continue
        found = _SHELL_PROMPT.match(capture.lines[at].text)
        if found is not None:
            is_left = capture.lines[at].text[found.end() : found.end() + 1] in _BLANK_OR_END
    return is_left
