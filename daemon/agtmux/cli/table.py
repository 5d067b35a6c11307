"""Tables for terminals: aligned, cut to the width, by display width and not by the number of characters."""

from __future__ import annotations

import os
import sys

from agtmux.domain.legible import LEFT_TO_RIGHT, in_order, printable

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, TextIO

_READABLE: Final = 24
_NARROWEST: Final = 8
_STYLES: Final = {
    "bold": "1",
    "dim": "2",
    "reverse": "7",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
}


def is_terminal(stream: TextIO | None) -> bool:
    # None is a stream that was closed before Python began.
    return stream is not None and stream.isatty()


def wants_colour() -> bool:
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """None when nobody looks: a pipe gets every column whole."""
    if not is_terminal(sys.stdout):
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def paint(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colour and style else text


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) or char == LEFT_TO_RIGHT else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def fit(text: str, width: int, *, keep_end: bool = False) -> str:
    """Cut or fill to exactly that many cells. Control characters never reach the terminal."""
    text = printable(text, keep=LEFT_TO_RIGHT)
    if display_width(text) > width:
        while text and display_width(text) > width - 1:
            text = text[1:] if keep_end else text[:-1]
        mark = "…" if width > 0 else ""
        text = mark + text if keep_end else text + mark
    return text + " " * (width - display_width(text))


def cut(line: str, width: int | None) -> str:
    """A line that does not wrap."""
    return line if width is None else fit(line, width).rstrip()


def wrap(text: str, width: int | None) -> list[str]:
    """Lines of whole words. A word that is too long stays whole, so that it can be copied."""
    text = printable(text, keep=LEFT_TO_RIGHT)
    lines: list[str] = []
    for word in text.split():
        if lines and (width is None or display_width(lines[-1]) + 1 + display_width(word) <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def draw(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str] = (),
    *,
    colour: bool,
    width: int | None,
    place: int | None = None,
) -> list[str]:
    """The last column takes what is left; `styles` has one style a row; of the column `place` the end tells most."""
    widths = [max(display_width(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    if width is not None:
        _share(widths, width - 2 * (len(widths) - 1))
    lines = [paint(_line(heads, widths, width, None), "bold", colour)]
    for number, row in enumerate(rows):
        lines.append(paint(in_order(_line(row, widths, width, place)), styles[number] if styles else "", colour))
    return lines


def _share(widths: list[int], room: int) -> None:
    """Give the last column what is left. Where that is too little, the widest of the others give way first."""
    wanted = min(widths[-1], _READABLE)
    while sum(widths[:-1]) + wanted > room and max(widths[:-1]) > _NARROWEST:
        widths[widths.index(max(widths[:-1]))] -= 1
    widths[-1] = max(1, min(widths[-1], room - sum(widths[:-1])))


def _line(cells: Sequence[str], widths: Sequence[int], width: int | None, place: int | None) -> str:
    pairs = enumerate(zip(cells, widths, strict=True))
    fitted = [fit(cell, cell_width, keep_end=number == place) for number, (cell, cell_width) in pairs]
    return cut("  ".join(fitted).rstrip(), width)
