"""A capture of a pane as lines of text with their looks.

tmux writes looks (SGR) once and lets them last, over line ends too. Without any, a capture is plain text, and whoever
reads it knows less.

Whoever draws the screen may be hostile: what is larger than any real one is cut before it is read, from above, as what
is live is at the bottom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple
from unicodedata import combining, east_asian_width

_MOST_CHARACTERS: Final = 1 << 18
_MOST_LINES: Final = 400
_MOST_COLUMNS: Final = 600
# Looks that are longer than this are none, and are left out with the other sequences.
_ESCAPE: Final = re.compile(
    r"\x1b\[([0-9;:]{0,120})m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;:?]*[A-Za-z]|\x1b.|[\x0e\x0f]"
)
_NUMBER: Final = re.compile(r"[0-9]{1,4}")
# No `|`: people and commands type that one.
_VERTICAL: Final = "│┃║▏▕▌"
# No hyphen: a row of hyphens is text that a model or a command has written.
_HORIZONTAL: Final = frozenset("─━═╌╍┄┅┈┉▔▁▀▄⎯")
_CORNERS: Final = frozenset("╭╮╰╯┌┐└┘┏┓┗┛├┤┬┴┼")
_DRAWN: Final = _HORIZONTAL | _CORNERS
# A rule may carry a label: `── some name ──`.
_LEAST_RULE: Final = 0.6


class Look(NamedTuple):
    bold: bool = False
    dim: bool = False
    italic: bool = False
    reverse: bool = False
    # As the terminal was told, "5;153" or "2;137;180;250" or "31"; empty for the default.
    foreground: str = ""
    background: str = ""


PLAIN: Final = Look()


@dataclass(frozen=True)
class Line:
    text: str
    # Of each character, and where it is known of the blank behind the last.
    looks: tuple[Look, ...]

    @cached_property
    def content(self) -> str:
        """Without what frames it: the sides of a box, a scroll bar, spaces."""
        return self.text.strip().strip(_VERTICAL).strip()

    @cached_property
    def columns(self) -> int:
        """How many columns of a terminal it takes."""
        if self.text.isascii():
            return len(self.text)
        return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in self.text)

    @cached_property
    def start(self) -> int:
        """Where the content begins."""
        content = self.content
        return self.text.find(content) if content else len(self.text)

    @property
    def is_blank(self) -> bool:
        return not self.content

    @cached_property
    def is_rule(self) -> bool:
        """A line that is drawn across, or the top or bottom of a box."""
        drawn = self.content
        if len(drawn) < 10 or drawn[0] not in _DRAWN:
            return False
        return sum(char in _DRAWN for char in drawn) >= _LEAST_RULE * len(drawn)

    @property
    def is_boxed(self) -> bool:
        """Between the two sides of a box."""
        drawn = self.text.strip()
        return len(drawn) > 2 and drawn[0] in _VERTICAL and drawn[-1] in _VERTICAL

    def look_at(self, index: int) -> Look:
        return self.looks[index] if 0 <= index < len(self.looks) else PLAIN

    def all_are(self, start: int, is_so: str) -> bool:
        """Whether every visible character from there on has that look, and there is one."""
        seen = [self.looks[at] for at in range(start, len(self.text)) if not self.text[at].isspace()]
        return bool(seen) and all(getattr(look, is_so) for look in seen)


@dataclass(frozen=True)
class Capture:
    lines: tuple[Line, ...]
    # False for plain text, which tells dim from bright as little as reversed from not.
    has_looks: bool
    # False also if the agent was told to use none.
    has_colours: bool
    # The columns of the pane, where its terminal has told them; 0 where not.
    pane_width: int = 0
    # Rows were left out above, or columns at the right.
    is_cut: bool = False

    @cached_property
    def width(self) -> int:
        return self.pane_width or max((line.columns for line in self.lines), default=0)

    @cached_property
    def end(self) -> int:
        """The number of lines down to the last that is not blank."""
        return next((at + 1 for at in range(len(self.lines) - 1, -1, -1) if self.lines[at].text.strip()), 0)


def read_capture(text: str, pane_width: int = 0) -> Capture:
    lines: list[Line] = []
    is_cut = False
    look = PLAIN
    has_colours = False
    bounded = _bounded(text)
    for raw in bounded:
        if _ESCAPE.search(raw) is None:
            is_cut = is_cut or len(raw) > _MOST_COLUMNS
            line = raw[:_MOST_COLUMNS].replace("\xa0", " ").rstrip()
            lines.append(Line(line, (look,) * len(line)))
            continue
        pieces: list[str] = []
        looks: list[Look] = []
        position = 0
        for escape in _ESCAPE.finditer(raw):
            start = escape.start()
            if start > position:
                pieces.append(raw[position:start])
                looks += [look] * (start - position)
            position = escape.end()
            parameters = escape[1]
            if parameters is not None:
                look = _changed(look, parameters)
                has_colours = has_colours or bool(look.foreground)
        pieces.append(raw[position:])
        # And the look of what is behind its end: a cursor that is drawn there is a blank, which is cut off.
        looks += [look] * (len(raw) - position + 1)
        whole = "".join(pieces)
        is_cut = is_cut or len(whole) > _MOST_COLUMNS
        line = whole[:_MOST_COLUMNS].replace("\xa0", " ").rstrip()
        lines.append(Line(line, tuple(looks[: len(line) + 1])))
    is_cut = is_cut or len(bounded) < text.rstrip("\n").count("\n") + 1
    return Capture(tuple(lines), "\x1b[" in text, has_colours, pane_width, is_cut)


def _bounded(text: str) -> list[str]:
    """The last lines of it, as many as are read."""
    if len(text) > _MOST_CHARACTERS:
        # The first line that is left may begin within a sequence.
        text = text[-_MOST_CHARACTERS:].partition("\n")[2] or text[-_MOST_COLUMNS:]
    lines = text.rsplit("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES:
        # Below what is drawn a high pane may be blank.
        lines = text.rstrip("\n").rsplit("\n", _MOST_LINES)
    return lines if len(lines) <= _MOST_LINES else lines[1:]


# A screen has few looks, and writes each of them often.
@lru_cache(maxsize=4096)
def _changed(look: Look, parameters: str) -> Look:
    found = (_NUMBER.fullmatch(code) for code in re.split("[;:]", parameters))
    codes = [int(code[0]) if code is not None else 0 for code in found]
    at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if code == 0:
            look = PLAIN
        elif code in _FLAGS:
            look = look._replace(**_FLAGS[code])
        elif code in (38, 48):
            size = 3 if codes[at : at + 1] == [2] else 1
            colour = ";".join(map(str, codes[at : at + 1 + size]))
            at += 1 + size
            look = look._replace(foreground=colour) if code == 38 else look._replace(background=colour)
        elif 30 <= code <= 37 or 90 <= code <= 97 or code == 39:
            look = look._replace(foreground="" if code == 39 else str(code))
        elif 40 <= code <= 47 or 100 <= code <= 107 or code == 49:
            look = look._replace(background="" if code == 49 else str(code))
    return look


_FLAGS: Final[dict[int, dict[str, Any]]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    7: {"reverse": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    27: {"reverse": False},
}
