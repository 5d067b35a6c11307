"""Where the user types: a sign between two rules, in a box, behind a bar, or on its own in bold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agtmux.agents.screen.capture import Capture, Line, Look
from agtmux.agents.screen.frame import BAR
from agtmux.agents.screen.options import OPTION, has_row

_BOX_TOPS: Final = "╭┌┏"
_BOX_BOTTOMS: Final = "╰└┗"
_SIDES: Final = "│┃║"
_BLANKS: Final = _SIDES + " "
_HALF_BLOCKS: Final = "▀▄"
_STRAIGHT: Final = "─━"
# What the keys do in a list that is all there is between two rules.
_HINTS: Final = re.compile(r"(?:↑/↓|←/→|left/right|space|enter|esc|tab) .* · .*\b(?:enter|esc|cancel)\b", re.I)
# What the key does that sends: whatever is above it, is typed.
_SEND: Final = "⏎ send"
# What stands below a dialog with the same bar.
_CONFIRM: Final = re.compile(r"press enter to confirm\b", re.I)
# The top of a composer that shows only the end of what is typed.
_SCROLLED: Final = re.compile(r"[─━ ]*↑ \d+ more\b")
# Above a composer that is known by its ground there may be a line about the mode, below the rule.
_RULE_ABOVE: Final = 3
# Below a composer there are hints, a status, a menu of commands; more than this is something else.
MOST_BELOW: Final = 18
_MOST_TYPED: Final = 40


@dataclass(frozen=True, slots=True)
class Composer:
    # The line with the prompt's sign, and the first line after what is typed.
    top: int
    bottom: int
    # The first line that belongs to it, a rule or the top of a box included.
    frame: int
    # What is typed, with the line breaks of the screen: those of a long line are its own.
    text: str
    # What is there is a suggestion or a hint, not typed.
    is_placeholder: bool


def find_composer(
    capture: Capture, signs: tuple[str, ...], bare_signs: tuple[str, ...], bright: bool
) -> Composer | None:
    """`signs` stand before what is typed, between rules or in a box; `bare_signs` do without either, and are `bright`,
    as what was sent earlier is dimmed."""
    for at in range(capture.end - 1, max(capture.end - MOST_BELOW - 24, -1), -1):
        line = capture.lines[at]
        if line.is_rule and _SCROLLED.match(line.content):
            return _scrolled(capture, at)
        if line.text.startswith(BAR):
            return _barred(capture, at) if BAR in bare_signs else None
        sign = next((sign for sign in (*signs, *bare_signs) if _begins_with(line, sign)), None)
        if sign is None:
            continue
        framed = _frame(capture, at) if sign in signs else None
        if framed is None and (sign not in bare_signs or not _is_bare_prompt(capture, at, bright)):
            continue
        frame, bottom = framed if framed is not None else (at, _bare_bottom(capture, at))
        if capture.end - bottom > MOST_BELOW or any(_HINTS.match(each.content) for each in capture.lines[at:bottom]):
            continue
        begin = line.start + len(sign)
        is_boxed = capture.lines[frame].text.strip()[:1] in _BOX_TOPS
        text = _typed(capture.lines[at:bottom], begin, is_boxed)
        return Composer(at, bottom, frame, text, _is_placeholder(capture, at, begin, bottom))
    return None


def is_within_box(capture: Capture, composer: Composer, line: int) -> bool:
    """Whether the composer is a box and has that line in it, below its first."""
    is_box = capture.lines[composer.frame].text.strip()[:1] in _BOX_TOPS
    return is_box and composer.top < line < composer.bottom


def _typed(lines: tuple[Line, ...], begin: int, is_boxed: bool) -> str:
    """The text behind the sign and below it, without the margin and the sides of a box."""
    margin = begin + 1
    typed: list[str] = []
    for line in lines:
        text = line.text
        if is_boxed and text[-1:] and text[-1] in _SIDES:
            text = text[:-1].rstrip()
        typed.append(text[margin:] if not text[:margin].strip(" " + _SIDES) or not typed else text.lstrip())
    return "\n".join(typed).rstrip().strip("\n")


def _barred(capture: Capture, last: int) -> Composer | None:
    """A composer with a bar along all of its lines. A dialog has one, too, and then there are options in it."""
    top = last
    while top > 0 and capture.lines[top - 1].text.startswith(BAR):
        top -= 1
    block = capture.lines[top : last + 1]
    texts = [line.text.removeprefix(BAR).removeprefix(" ") for line in block]
    options = [found for text in texts if (found := OPTION.match(text.strip())) is not None]
    if any(has_row(line) for line in block):
        return None
    below = next((line.content for line in capture.lines[last + 1 : capture.end] if not line.is_blank), "")
    if _CONFIRM.match(below) or (any(found["selector"] for found in options) and not below.startswith(_SEND)):
        return None
    is_placeholder = len(block) == 1 and capture.has_looks and block[0].all_are(1, "dim")
    return Composer(top, last + 1, top, "\n".join(texts).rstrip(), is_placeholder)


def _scrolled(capture: Capture, top: int) -> Composer | None:
    """A composer whose first lines, with the sign, are out of sight: text between that rule and the next."""
    bottom = next((at for at in range(top + 1, capture.end) if capture.lines[at].is_rule), None)
    if bottom is None or bottom == top + 1 or bottom - top > _MOST_TYPED or capture.end - bottom > MOST_BELOW:
        return None
    text = "\n".join(line.text[2:] for line in capture.lines[top + 1 : bottom]).rstrip()
    return Composer(top + 1, bottom, top, text, False)


def _begins_with(line: Line, sign: str) -> bool:
    content = line.content
    return content.startswith(sign) and content[len(sign) : len(sign) + 1] in ("", " ") and line.start <= 4


def _frame(capture: Capture, at: int) -> tuple[int, int] | None:
    """The rule above and the rule below what is typed; None if there are none."""
    top = next((up for up in range(at - 1, max(at - 4, -1), -1) if capture.lines[up].is_rule), None)
    if top is None or any(not capture.lines[up].is_blank for up in range(top + 1, at)):
        return None
    if capture.lines[top].text.strip()[0] in _BOX_BOTTOMS + _SIDES:
        # The end of something above, or a line within a dialog, and no frame of this.
        return None
    for down in range(at + 1, min(at + _MOST_TYPED, capture.end)):
        if capture.lines[down].is_rule:
            return (top, down) if capture.lines[down].text.strip()[0] not in _BOX_TOPS else None
    # In a low pane its end may be cut off. Nothing else is drawn below half blocks.
    return (top, capture.end) if capture.lines[top].text.strip()[0] in _HALF_BLOCKS else None


def _is_bare_prompt(capture: Capture, at: int, bright: bool) -> bool:
    """Drawn as a prompt is, or with the cursor in it; and no choice of a list."""
    line = capture.lines[at]
    if OPTION.match(line.content):
        return False
    look = line.look_at(line.start)
    if not capture.has_looks or not bright or (look.bold and not look.dim):
        return True
    if any(each.reverse for each in line.looks[line.start :]):
        return True
    # What was sent earlier may have the same ground, but neither a cursor in it nor a rule just above it.
    return bool(look.background) and (_has_cursor_below(capture, at) or _has_rule_above(capture, at))


def _has_cursor_below(capture: Capture, at: int) -> bool:
    """Whether the cursor is drawn in a further line on the same ground."""
    ground = capture.lines[at].look_at(capture.lines[at].start).background
    for line in capture.lines[at + 1 : at + _MOST_TYPED]:
        if not line.text.strip() or line.look_at(line.start).background != ground:
            return False
        if any(look.reverse for look in line.looks):
            return True
    return False


def _has_rule_above(capture: Capture, at: int) -> bool:
    above = [line for line in capture.lines[max(at - 2 * _RULE_ABOVE, 0) : at] if line.text.strip()]
    # The end of a box is something else.
    return any(line.is_rule and line.text.strip()[0] in _STRAIGHT for line in above[-_RULE_ABOVE + 1 :])


def _bare_bottom(capture: Capture, at: int) -> int:
    """Typed lines are indented below the sign, up to a blank line that nothing typed follows."""
    bottom = _next_blank(capture, at)
    while True:
        after = next((down for down in range(bottom, capture.end) if not capture.lines[down].is_blank), None)
        if after is None or not _goes_on(capture, at, after):
            return bottom
        bottom = _next_blank(capture, after)


def _next_blank(capture: Capture, at: int) -> int:
    return next((down for down in range(at + 1, capture.end) if capture.lines[down].is_blank), capture.end)


def _goes_on(capture: Capture, at: int, after: int) -> bool:
    """Whether a line below a blank one is of the same text: hints, a status and menus have colours or are faint."""
    first, line = capture.lines[at], capture.lines[after]
    margin = first.start + 2
    begin = next((index for index in range(margin, len(first.text)) if first.text[index] != " "), None)
    is_plain = begin is not None and _is_plain(first.look_at(begin)) and _is_plain(line.look_at(line.start))
    return capture.has_colours and is_plain and line.start >= margin


def _is_plain(look: Look) -> bool:
    return not (look.foreground or look.bold or look.dim or look.italic or look.reverse)


def _is_placeholder(capture: Capture, at: int, begin: int, bottom: int) -> bool:
    line = capture.lines[at]
    if not capture.has_looks or (bottom > at + 1 and any(not each.is_blank for each in capture.lines[at + 1 : bottom])):
        return False
    visible = [index for index in range(begin, len(line.text)) if line.text[index] not in _BLANKS]
    if not visible:
        return False
    # Behind the last character it is where one types, whatever colour the text has.
    if line.look_at(len(line.text)).reverse:
        return False
    # The cursor is drawn reversed: over the first character, or before it, where what is typed has none.
    if line.look_at(visible[0]).reverse:
        visible = visible[1:]
    elif any(line.look_at(index).reverse for index in range(begin, visible[0])):
        return True
    return bool(visible) and all(is_faint(line.look_at(index)) for index in visible)


def is_faint(look: Look) -> bool:
    return look.dim or look.foreground in _GREYS or (look.foreground[1:2] == ";" and _is_grey(look.foreground))


@lru_cache(maxsize=256)
def _is_grey(colour: str) -> bool:
    """Neither as dark nor as light as text, and of no colour to speak of."""
    kind, *parts = (int(part) for part in colour.split(";"))
    spread = 32
    if kind == 5 and len(parts) == 1 and 16 <= parts[0] <= 231:
        # Of the cube of 256 colours, whose steps are wide: what is nearest to a grey may not be one.
        parts = [_CUBE[(parts[0] - 16) // size % 6] for size in (36, 6, 1)]
        spread = 40
    return len(parts) == 3 and max(parts) - min(parts) <= spread and 80 <= sum(parts) / 3 <= 190


_CUBE: Final = (0, 95, 135, 175, 215, 255)
# Colours that agents give to what is not typed: the bright black of the terminal, and greys of the cube.
_GREYS: Final = frozenset({"90", "5;8", *(f"5;{number}" for number in range(236, 250))})
