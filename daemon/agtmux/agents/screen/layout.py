"""The parts that every agent's screen has, found by how they are drawn: the composer, a list to choose from, what is
above and below them.

Agents draw from the bottom up: what is live is there, what is above is history. A composer below a list means that
the list is history, or a quotation, however much it looks like a dialog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agtmux.agents.screen.capture import Capture, Line, Look

# What stands before the choice that Enter would take.
_SELECTORS: Final = "❯›>●▶▸→»◉➤"
_OPTION: Final = re.compile(rf"(?P<selector>[{_SELECTORS}])?\s*(?P<number>\d{{1,2}})[.)]\s*(?P<label>[^\s\d.].*)")
_BOX_TOPS: Final = "╭┌┏"
_BOX_BOTTOMS: Final = "╰└┗"
_PLAIN_OPTION: Final = re.compile(rf"(?P<selector>[{_SELECTORS}])\s+(?P<label>\S.*)")
_BAR: Final = "▌"
# What the key does that sends: whatever is above it, is typed.
_SEND: Final = "⏎ send"
# Below a composer there are hints, a status, a menu of commands; more than this is something else.
_MOST_BELOW: Final = 18
_FEW_BETWEEN_OPTIONS: Final = 6
_MOST_BETWEEN_OPTIONS: Final = 30


@dataclass(frozen=True, slots=True)
class Composer:
    """Where the user types."""

    # The line with the prompt's sign, and the first line after what is typed.
    top: int
    bottom: int
    # The first line that belongs to it, a rule or the top of a box included.
    frame: int
    text: str
    # What is there is a suggestion or a hint, not typed.
    is_placeholder: bool


@dataclass(frozen=True, slots=True)
class Option:
    line: int
    label: str
    is_selected: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A list to choose from, on the live part of the screen."""

    options: tuple[Option, ...]
    # Lines from the first that belongs to it to the one after the last.
    top: int
    bottom: int
    is_numbered: bool

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.label for option in self.options)


@dataclass(frozen=True, slots=True)
class Layout:
    capture: Capture
    composer: Composer | None
    choice: Choice | None

    def lines(self, start: int, end: int) -> list[Line]:
        return list(self.capture.lines[max(start, 0) : end])

    @property
    def live_top(self) -> int:
        """Where the live part begins: the frame of the composer or of the list."""
        if self.choice is not None:
            return self.choice.top
        return self.composer.frame if self.composer is not None else self.capture.end


def read_layout(capture: Capture, signs: tuple[str, ...], bare_signs: tuple[str, ...]) -> Layout:
    """`signs` stand before what is typed, between rules or in a box; `bare_signs` do without either."""
    composer = _find_composer(capture, signs, bare_signs)
    choice = _find_choice(capture, composer)
    return Layout(capture, None if choice is not None else composer, choice)


def _find_composer(capture: Capture, signs: tuple[str, ...], bare_signs: tuple[str, ...]) -> Composer | None:
    for at in range(capture.end - 1, max(capture.end - _MOST_BELOW - 24, -1), -1):
        line = capture.lines[at]
        if line.text.startswith(_BAR):
            return _barred(capture, at) if _BAR in bare_signs else None
        sign = next((sign for sign in (*signs, *bare_signs) if _begins_with(line, sign)), None)
        if sign is None:
            continue
        framed = _frame(capture, at) if sign in signs else None
        if framed is None and sign not in bare_signs:
            continue
        if framed is None and not _is_bare_prompt(capture, at, sign):
            continue
        frame, bottom = framed if framed is not None else (at, _bare_bottom(capture, at))
        if capture.end - bottom > _MOST_BELOW:
            continue
        begin = line.start + len(sign)
        text = "\n".join([line.text[begin:].strip(" │┃║|"), *(each.content for each in capture.lines[at + 1 : bottom])])
        return Composer(at, bottom, frame, text.strip(), _is_placeholder(capture, at, begin, bottom))
    return None


def _barred(capture: Capture, last: int) -> Composer | None:
    """A composer with a bar along all of its lines. A dialog has one, too, and then there are options in it."""
    top = last
    while top > 0 and capture.lines[top - 1].text.startswith(_BAR):
        top -= 1
    block = capture.lines[top : last + 1]
    texts = [line.text.removeprefix(_BAR).strip() for line in block]
    options = [found for text in texts if (found := _OPTION.match(text)) is not None]
    below = next((line.content for line in capture.lines[last + 1 : capture.end] if not line.is_blank), "")
    if any(found["selector"] for found in options) and not below.startswith(_SEND):
        return None
    is_placeholder = len(block) == 1 and capture.has_looks and block[0].all_are(1, "dim")
    return Composer(top, last + 1, top, "\n".join(texts).strip(), is_placeholder)


def _begins_with(line: Line, sign: str) -> bool:
    content = line.content
    return content.startswith(sign) and content[len(sign) : len(sign) + 1] in ("", " ") and line.start <= 4


def _frame(capture: Capture, at: int) -> tuple[int, int] | None:
    """The rule above and the rule below what is typed; None if there are none."""
    top = next((up for up in range(at - 1, max(at - 4, -1), -1) if capture.lines[up].is_rule), None)
    if top is None or any(not capture.lines[up].is_blank for up in range(top + 1, at)):
        return None
    if capture.lines[top].text.strip()[0] in _BOX_BOTTOMS + "│┃║":
        # The end of something above, or a line within a dialog, and no frame of this.
        return None
    for down in range(at + 1, min(at + 40, capture.end)):
        if capture.lines[down].is_rule:
            return (top, down) if capture.lines[down].text.strip()[0] not in _BOX_TOPS else None
    return None


def _is_bare_prompt(capture: Capture, at: int, sign: str) -> bool:
    """Bright, as what was sent earlier is dimmed, or with the cursor drawn in it; and no choice of a list."""
    line = capture.lines[at]
    if _OPTION.match(line.content):
        return False
    look = line.look_at(line.start)
    has_cursor = any(each.reverse for each in line.looks[line.start :])
    return not capture.has_looks or (look.bold and not look.dim) or has_cursor


def _bare_bottom(capture: Capture, at: int) -> int:
    """Typed lines are indented below the sign, up to the first blank line."""
    for down in range(at + 1, capture.end):
        if capture.lines[down].is_blank:
            return down
    return capture.end


def _is_placeholder(capture: Capture, at: int, begin: int, bottom: int) -> bool:
    line = capture.lines[at]
    if not capture.has_looks or (bottom > at + 1 and any(not each.is_blank for each in capture.lines[at + 1 : bottom])):
        return False
    # The first character may be under the cursor, which is drawn reversed.
    visible = [
        index
        for index in range(begin, len(line.text))
        if not line.text[index].isspace() and line.text[index] not in "│┃║|"
    ]
    if visible and line.look_at(visible[0]).reverse:
        visible = visible[1:]
    return bool(visible) and all(is_faint(line.look_at(index)) for index in visible)


def is_faint(look: Look) -> bool:
    return look.dim or look.foreground in _GREYS


# Colours that agents give to what is not typed: the bright black of the terminal, and greys of the cube.
_GREYS: Final = frozenset({"90", "5;8", *(f"5;{number}" for number in range(236, 250))})


def _find_choice(capture: Capture, composer: Composer | None) -> Choice | None:
    """The lowest list with one choice marked, if nothing is typed below it."""
    numbered = [options for options in _numbered_lists(capture) if any(option.is_selected for option in options)]
    plain = _plain_list(capture)
    best = numbered[-1] if numbered else None
    is_numbered = best is not None
    if plain is not None and (best is None or plain[0].line > best[-1].line):
        best, is_numbered = plain, False
    if best is None:
        return None
    is_below = composer is None or composer.bottom <= best[0].line
    if not is_below and composer is not None and not _is_within_box(capture, composer, best):
        return None
    return _choice(capture, best, is_numbered=is_numbered)


def _is_within_box(capture: Capture, composer: Composer, options: tuple[Option, ...]) -> bool:
    """A box around a list is a dialog, whatever sign its first line begins with."""
    is_box = capture.lines[composer.frame].text.strip()[:1] in _BOX_TOPS
    return is_box and composer.top < options[0].line < composer.bottom


def _plain_list(capture: Capture) -> tuple[Option, ...] | None:
    """Choices without numbers: one is marked, and others beside it begin in the same column."""
    for at in range(capture.end - 1, max(capture.end - _MOST_BELOW, -1), -1):
        line = capture.lines[at]
        found = _PLAIN_OPTION.match(line.content)
        if found is None or _OPTION.match(line.content):
            continue
        column = line.start + found.start("label")
        above = _siblings(capture, at, column, -1)
        below = _siblings(capture, at, column, 1)
        if above or below:
            return (*reversed(above), Option(at, found["label"].strip(), True), *below)
    return None


def _siblings(capture: Capture, at: int, column: int, step: int) -> list[Option]:
    found = []
    while 0 <= (at := at + step) < capture.end:
        line = capture.lines[at]
        if line.is_blank or line.is_rule or line.start < column:
            break
        # What is further in describes the one above it.
        if line.start <= column + 2:
            found.append(Option(at, line.content, False))
    return found


def _numbered_lists(capture: Capture) -> list[tuple[Option, ...]]:
    lists: list[list[Option]] = []
    expected = 0
    last = 0
    for at in range(capture.end):
        line = capture.lines[at]
        found = _OPTION.match(line.content)
        if found is None:
            continue
        number = int(found["number"])
        if number == 1:
            lists.append([])
            expected = 1
        if not lists or number != expected or (number > 1 and not _goes_on(capture, last, at)):
            expected = 0
            continue
        lists[-1].append(Option(at, found["label"].strip(), _is_selected(line, found)))
        expected, last = number + 1, at
    return [tuple(options) for options in lists if len(options) >= 2]


def _goes_on(capture: Capture, last: int, at: int) -> bool:
    """Whether what is between two options belongs to the first: further in than its number, and not too much."""
    if at - last > _MOST_BETWEEN_OPTIONS:
        return False
    edge = capture.lines[at].start
    between = capture.lines[last + 1 : at]
    return at - last <= _FEW_BETWEEN_OPTIONS or all(each.is_blank or each.start > edge for each in between)


def _is_selected(line: Line, found: re.Match[str]) -> bool:
    if found["selector"] is not None:
        return True
    return line.look_at(line.start).reverse


def _choice(capture: Capture, options: tuple[Option, ...], *, is_numbered: bool) -> Choice:
    top = options[0].line
    limit = max(top - 60, 0)
    for up in range(top - 1, limit - 1, -1):
        line = capture.lines[up]
        top = up
        if line.is_rule and not _is_inner_rule(capture, up):
            break
    return Choice(options, top, capture.end, is_numbered)


def _is_inner_rule(capture: Capture, at: int) -> bool:
    """A dotted line, or one within the sides of a box: it divides the dialog and does not begin it."""
    drawn = capture.lines[at].text.strip()
    return drawn[:1] in "╌╍┄┅┈┉" or drawn[:1] in "│┃║|"
