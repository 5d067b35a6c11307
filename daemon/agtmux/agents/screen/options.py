"""A list to choose from: options with numbers, or without them in one column, one of them marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from agtmux.agents.screen.capture import Capture, Line
from agtmux.agents.screen.frame import BAR, Frame, find_frame

# What stands before the choice that Enter would take; arrows tell that the list goes on there.
_SELECTORS: Final = "❯›>●▶▸→»◉➤"
_ARROWS: Final = "↑↓▲▼"
OPTION: Final = re.compile(
    rf"(?P<selector>[{_SELECTORS}])?\s*[{_ARROWS}]?\s*(?P<number>\d{{1,2}})[.)](?P<label>\s+\S.*|[^\s\d.].*)"
)
_PLAIN_OPTION: Final = re.compile(rf"(?P<selector>[{_SELECTORS}])\s+(?P<label>\S.*)")
_KEYS: Final = re.compile(r"\b(?:enter|esc|tab|space)\b|[↑↓⏎↵]", re.I)
# What keys do, in a low pane just below the last option.
_HINTS: Final = re.compile(r"\b(?:enter|esc|tab|space) [a-z ]+ · | · (?:enter|esc|tab|space) [a-z]", re.I)
_ANSWER: Final = re.compile(r"(?:yes|no)\b", re.I)
_ROW: Final = re.compile(r"(?:Yes|Allow|Approve)\b.* {2,}(?:No|Deny|Cancel|Abort)\b", re.I)
# From an option's number to what describes it, in columns, at the least.
_INDENT: Final = 3
_FEW_BETWEEN: Final = 6
# Rows from the end in which a list without numbers is looked for.
_NEAR_END: Final = 18
# Below a list there are hints, and what has its place at the bottom of the screen.
_MOST_BELOW: Final = 14
_MOST_LEFT: Final = 4


@dataclass(frozen=True, slots=True)
class Option:
    line: int
    label: str
    is_selected: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A list to choose from, on the live part of the screen."""

    options: tuple[Option, ...]
    frame: Frame
    # The line after the last that belongs to it.
    bottom: int
    is_numbered: bool

    @property
    def top(self) -> int:
        """The first line that belongs to it."""
        return self.frame.top

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.label for option in self.options)

    @property
    def is_marked(self) -> bool:
        return any(option.is_selected for option in self.options)

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(option.line for option in self.options)


def find_choice(capture: Capture, framed: bool, plain_option: re.Pattern[str] | None) -> Choice | None:
    """The lowest list with one choice marked. Dialogs that are `framed` have a rule above, others a title in bold.
    Where typed lines look like options, an option without a number is known by `plain_option`."""
    marked = [options for options in _numbered(capture) if any(option.is_selected for option in options)]
    best = marked[-1] if marked else None
    is_numbered = best is not None
    plain = _plain(capture, plain_option)
    if plain is not None and (best is None or plain[0].line > best[-1].line):
        best, is_numbered = plain, False
    row = _row(capture)
    if row is not None and (best is None or row[0].line > best[-1].line):
        best, is_numbered = row, False
    if best is None:
        best, is_numbered = _cut_off(capture), True
    if best is None:
        return None
    below = capture.lines[best[-1].line + 1 : capture.end]
    if sum(not line.is_blank for line in below) > _MOST_BELOW:
        return None
    frame = find_frame(capture, best[0].line, framed=framed)
    left = min(capture.lines[option.line].start for option in best)
    outer = (_number_at(capture, at) for at in range(best[-1].line + 1, capture.end))
    if any(row is not None and row.column < left for row in outer):
        # Options of another list are below, further left: this one may be in what describes one of them.
        frame = replace(frame, is_closed=False)
    return Choice(best, frame, capture.end, is_numbered)


def _cut_off(capture: Capture) -> tuple[Option, ...] | None:
    """What is left of a list whose marked option has left the screen: it is all that the screen shows."""
    rows = [(at, found) for at in range(capture.end) if (found := OPTION.match(capture.lines[at].content)) is not None]
    numbers = [int(found["number"]) for _, found in rows]
    if len(rows) < 2 or numbers[0] == 1 or numbers != list(range(numbers[0], numbers[0] + len(rows))):
        return None
    if rows[0][0] > _MOST_LEFT or sum(not line.is_blank for line in capture.lines[rows[-1][0] + 1 :]) > _MOST_LEFT:
        return None
    return tuple(Option(at, found["label"].strip(), False) for at, found in rows)


def _plain(capture: Capture, wanted: re.Pattern[str] | None) -> tuple[Option, ...] | None:
    """Choices without numbers: one is marked, and others beside it begin in the same column."""
    for at in range(capture.end - 1, max(capture.end - _NEAR_END, -1), -1):
        line = capture.lines[at]
        found = _PLAIN_OPTION.match(line.content)
        if found is None or OPTION.match(line.content) or (found["selector"] == "●" and not line.is_boxed):
            continue
        column = line.start + found.start("label")
        above = _siblings(capture, at, column, -1)
        below = _siblings(capture, at, column, 1)
        if not above and not below:
            continue
        options = (*reversed(above), Option(at, found["label"].strip(), True), *below)
        if wanted is None:
            # A message that was sent looks the same if its first line is marked; below a list one is told of keys.
            hints = " ".join(each.text for each in capture.lines[options[-1].line + 1 : capture.end])
            is_list = bool(above) or _KEYS.search(hints) is not None or _ANSWER.match(found["label"]) is not None
        else:
            is_list = sum(wanted.search(option.label) is not None for option in options) >= 2
        if is_list:
            return options
    return None


def has_row(line: Line) -> bool:
    return line.text.startswith(BAR) and _ROW.match(line.content) is not None


def _row(capture: Capture) -> tuple[Option, ...] | None:
    """Choices side by side, behind a bar."""
    for at in range(capture.end - 1, max(capture.end - _NEAR_END, -1), -1):
        line = capture.lines[at]
        if has_row(line):
            labels = [label.strip() for label in re.split(r" {2,}", line.content)]
            grounds = [line.look_at(line.text.find(label)).background for label in labels]
            # The one that is marked has a ground of its own.
            return tuple(Option(at, label, grounds.count(grounds[i]) == 1) for i, label in enumerate(labels))
    return None


def _siblings(capture: Capture, at: int, column: int, step: int) -> list[Option]:
    found = []
    while 0 <= (at := at + step) < capture.end:
        line = capture.lines[at]
        if line.is_blank or line.is_rule or line.start < column or (step > 0 and _HINTS.search(line.content)):
            break
        # What is further in describes the one above it.
        if line.start <= column + 2:
            found.append(Option(at, line.content, False))
    return found


def _numbered(capture: Capture) -> Iterator[tuple[Option, ...]]:
    """Lists of two or more; one whose beginning has left the screen begins with what is left of it."""
    rows = [row for at in range(capture.end) if (row := _number_at(capture, at)) is not None]
    options: list[Option] = []
    expected = column = resumed = 0
    for index, row in enumerate(rows):
        is_inner = bool(options) and row.column >= column + _INDENT
        if is_inner and row.line > resumed:
            resumed = _resumed(capture, rows[index + 1 :], options[-1], expected, column)
        if row.line < resumed:
            continue
        begins = row.number == 1 or (not options and not expected and row.number < 10 and row.has_selector)
        if begins or not options or row.number != expected or not _goes_on(capture, options[-1].line, row.line):
            if len(options) >= 2:
                yield tuple(options)
            options = []
            expected = row.number if begins else -1
        if row.number == expected:
            column = row.column if not options else column
            options.append(Option(row.line, row.label, row.is_selected))
            expected += 1
    if len(options) >= 2 or (options and _is_only_one_shown(capture, options[0])):
        yield tuple(options)


class _Numbered(NamedTuple):
    """A row that begins with a number, as an option does."""

    line: int
    number: int
    column: int
    label: str
    has_selector: bool
    is_selected: bool


def _number_at(capture: Capture, at: int) -> _Numbered | None:
    line = capture.lines[at]
    head = line.content[:12]
    found = OPTION.match(line.content) if "." in head or ")" in head else None
    if found is None:
        return None
    return _Numbered(
        at,
        int(found["number"]),
        line.start + found.start("number"),
        found["label"].strip(),
        found["selector"] is not None,
        _is_selected(line, found),
    )


def _resumed(capture: Capture, rows: list[_Numbered], last: Option, expected: int, column: int) -> int:
    """The line of the row with which the list goes on, 0 if it does not: what stands before it, further in, describes
    the last option, and a model may have written that, in as many rows as it likes."""
    row = next((row for row in rows if row.column < column + _INDENT), None)
    if row is None or row.number != expected:
        return 0
    between = capture.lines[last.line + 1 : row.line]
    return row.line if all(each.is_blank or each.start > column for each in between) else 0


def _is_only_one_shown(capture: Capture, option: Option) -> bool:
    """Whether a low pane shows one option of more: an arrow beside it says so, or it is a marked yes or no further in
    than what was typed."""
    if not option.is_selected:
        return False
    around = capture.lines[max(option.line - 1, 0) : option.line + 3]
    if any(line.content and not line.content.strip(_ARROWS) for line in around):
        return True
    is_near_end = option.line >= capture.end - _NEAR_END
    return is_near_end and capture.lines[option.line].start > 0 and _ANSWER.match(option.label) is not None


def _goes_on(capture: Capture, last: int, at: int) -> bool:
    """Whether what is between two options belongs to the first: further in than its number where it is
    more than a few rows."""
    edge = capture.lines[at].start
    between = capture.lines[last + 1 : at]
    return at - last <= _FEW_BETWEEN or all(each.is_blank or each.start > edge for each in between)


def _is_selected(line: Line, found: re.Match[str]) -> bool:
    return found["selector"] is not None or line.look_at(line.start).reverse
