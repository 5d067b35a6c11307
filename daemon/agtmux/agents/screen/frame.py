"""The frame of a dialog: its first row, and whether that row is certain.

The rows of a dialog above its options may be the model's own words, and a model may have been told to draw a frame
among them. So a frame counts only in a place that a model cannot write to: left of everything that the dialog holds.
An agent indents or boxes the text of a model, so no row of such text begins as far left as the frame does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agtmux.agents.screen.capture import Capture, Line

# Along the lines of a dialog that may have its options side by side.
BAR: Final = "▌"
_PROPOSALS: Final = ("? ", "• Proposed ")
_SIDES: Final = "│┃║"
_TOP_LEFT, _TOP_RIGHT = "╭┌┏", "╮┐┓"
_DIVIDERS: Final = "├┝┠┡┢┣╠"
_SOLID: Final = "─━═▔▁▀▄⎯"
_DASHED: Final = "╌╍┄┅┈┉"
# How a dialog without a frame begins, where its first line is not a question in bold.
_COUNTED: Final = re.compile(r"(?:Field|Question) \d+/\d+\b")
_LEAST: Final = 10
# A dialog whose frame is not known is taken to have as many rows above its options.
_MOST_ABOVE: Final = 60
# What a change or a plan begins with that an agent draws before its dialog.
_DRAWN_BEFORE: Final = re.compile(r"[•◦●✔] (?:\w+ (?:\w+ )?\S*\.\w{1,5}\b|Proposed )")


@dataclass(frozen=True, slots=True)
class Frame:
    # The first row of the dialog: the upper edge of its frame where it has one.
    top: int
    # The row is certain. False where the dialog begins above the screen, or where nothing tells its beginning from
    # what a model may have written.
    is_closed: bool
    # The column of the frame's left side. Whatever begins further right may be a model's.
    left: int = 0


def find_frame(capture: Capture, first: int, *, framed: bool) -> Frame:
    """The frame above the option in row `first`. Agents whose dialogs are `framed` draw a box or a rule across."""
    lines = capture.lines
    option = lines[first].text
    left = len(option) - len(option.lstrip())
    if option.startswith(BAR):
        return _barred(capture, first)
    if option[left : left + 1] in _SIDES and option.strip():
        return _boxed(capture, first, left)
    if framed:
        return _ruled(capture, first, left)
    return _unframed(capture, first)


def _boxed(capture: Capture, first: int, left: int) -> Frame:
    """A box, both sides of which are drawn in every row."""
    for row in range(first - 1, -1, -1):
        text = capture.lines[row].text
        if len(text) <= left + 2 or text[:left].strip():
            return Frame(row + 1, False, left)
        side, end = text[left], text.rstrip()[-1]
        if side in _TOP_LEFT:
            is_drawn = end in _TOP_RIGHT and set(text[left + 1 : -1].rstrip()) <= set(_SOLID)
            return Frame(row, is_drawn, left) if is_drawn else Frame(row + 1, False, left)
        if side not in _SIDES + _DIVIDERS or (side in _SIDES and end not in _SIDES):
            return Frame(row + 1, False, left)
    return Frame(0, False, left)


def _ruled(capture: Capture, first: int, left: int) -> Frame:
    """A rule across the pane, or across with the same margin on both sides."""
    for row in range(first - 1, -1, -1):
        line = capture.lines[row]
        if not _is_edge(line, left, capture.width):
            continue
        above = next((up for up in range(row - 1, -1, -1) if not capture.lines[up].is_blank), None)
        if above is not None and _is_edge(capture.lines[above], left, capture.width, _DASHED):
            # A plan stands between dotted lines, in a part of the dialog of its own.
            continue
        return Frame(row, True, line.start)
    # Whatever looks like a rule is the best guess, and no more than that.
    near = range(first - 1, max(first - _MOST_ABOVE, 0) - 1, -1)
    guess = (row for row in near if capture.lines[row].is_rule and not _is_inner(capture.lines[row]))
    return Frame(next(guess, max(first - _MOST_ABOVE, 0)), False)


def _is_inner(line: Line) -> bool:
    """A dotted line, or one within the sides of a box."""
    return line.text.strip()[:1] in _DASHED + _SIDES


def is_divider(line: Line, left: int, width: int) -> bool:
    """Whether an agent has drawn that line across the dialog: it begins where the frame does."""
    return _is_edge(line, left + 1, width) or _is_edge(line, left + 1, width, _DASHED)


def _is_edge(line: Line, before: int, width: int, drawn: str = _SOLID) -> bool:
    text = line.text.strip()
    margin = len(line.text) - len(line.text.lstrip())
    return (
        len(text) >= _LEAST
        and text[0] in drawn
        and text == text[0] * len(text)
        and margin < before
        and margin + len(text) == width - margin
    )


def _unframed(capture: Capture, first: int) -> Frame:
    """No frame: a dialog begins with a question in bold. A model's text in it is never all in bold, and in a capture
    without looks nothing tells the two apart."""
    for row in range(first - 1, -1, -1):
        line = capture.lines[row]
        if _is_title(line):
            return Frame(row, capture.has_looks)
        if line.text[:1].strip():
            # What was drawn before the dialog begins at the edge.
            has_text = any(not each.is_blank for each in capture.lines[row + 1 : first])
            return Frame(_first_paragraphs(capture, row + 1, first) if has_text else row, False)
    return Frame(_first_paragraphs(capture, 0, first), False)


def _first_paragraphs(capture: Capture, top: int, first: int) -> int:
    """The first row after two blank ones, where what was drawn before ends."""
    has_text = False
    begin = first
    for row in range(first - 1, top - 1, -1):
        is_gap = capture.lines[row].is_blank and row > 0 and capture.lines[row - 1].is_blank
        if has_text and is_gap:
            return begin
        if not capture.lines[row].is_blank:
            has_text, begin = True, row
    return begin


def _is_title(line: Line) -> bool:
    text = line.content
    if not text or line.text[:1].strip():
        return False
    if text.endswith("?"):
        return line.all_are(line.start, "bold")
    return _COUNTED.match(text) is not None and line.all_are(line.start, "dim")


def _barred(capture: Capture, first: int) -> Frame:
    """A bar along the dialog. Old versions cut the command in it, and what was said above it is at the edge as well,
    so none of these is certain."""
    top = first
    while top > 0 and capture.lines[top - 1].text.startswith(BAR):
        top -= 1
    above = range(top - 1, -1, -1)
    return Frame(next((up for up in above if capture.lines[up].text.startswith(_PROPOSALS)), top), False)


def drawn_before(capture: Capture, top: int) -> int | None:
    """The first row of the change or plan that was drawn just before a dialog without a frame; None if anything else
    stands there, or if its beginning has left the screen."""
    for row in range(top - 1, -1, -1):
        text = capture.lines[row].text
        if text[:1].strip():
            if _DRAWN_BEFORE.match(text):
                return row
            if not _is_note(capture.lines[row]):
                return None
    return None


def _is_note(line: Line) -> bool:
    """How long a turn took, drawn faintly below a plan."""
    return line.all_are(0, "dim") and bool(line.content)
