"""What of a large JSON file has to be read to change it: all but its large members that nobody wants to read.

Some agents keep their history in their settings, tens of megabytes beside the few lines that matter here. In place of
each such part an excerpt has a mark, and what was made of an excerpt becomes a whole file again, byte for byte. No I/O.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Collection, Iterator, NamedTuple

# What is smaller than this is as soon read as left out.
_LEAST = 1_000

_BYTE_ORDER_MARK = "\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
# What decides where a value ends, also in JSON with comments and with commas where none belong.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\r\n]*|/\*.*?\*/|[\[\]{}]', re.DOTALL)


class Part(NamedTuple):
    """A member's value, from where to where in the file."""

    start: int
    end: int
    # How many lines end in it, and how much comes after the last of these.
    lines: int
    width: int


class LeftOut(NamedTuple):
    """What an excerpt does not have."""

    # In place of each part there is a string of this and its number.
    mark: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.end - part.start for part in self.parts)

    def place(self, before: str) -> tuple[int, int]:
        """Line and column, in the file, of what comes after `before` in an excerpt."""
        line = column = 1
        for at, piece in enumerate(re.split(self._pattern(), before) if self.parts else [before]):
            if at % 2:
                lines, width = self.parts[int(piece)][2:]
            else:
                lines, width = piece.count("\n"), len(piece) - piece.rfind("\n") - 1
            line += lines
            column = width + 1 if lines else column + width
        return line, column

    def check(self, data: bytes) -> None:
        """Raises ValueError if not every part is in it once, and in its order."""
        if re.findall(self._pattern().encode(), data) != [b"%d" % number for number in range(len(self.parts))]:
            raise ValueError("a part of the file is missing, or there twice")

    def filled(self, data: bytes, source: bytes) -> list[bytes | memoryview]:
        """What was made of an excerpt of `source`, in pieces and with all that was left out."""
        self.check(data)
        filled: list[bytes | memoryview] = [*re.split(self._pattern().encode(), data)]
        filled[1::2] = [memoryview(source)[part.start : part.end] for part in self.parts]
        return filled

    def _pattern(self) -> str:
        return '"%s ([0-9]+)"' % re.escape(self.mark)


class Excerpt(NamedTuple):
    data: bytes
    left_out: LeftOut
    # Where it stops being JSON, as far as that is seen here: whoever reads the excerpt sees more.
    trouble: int | None


def excerpt(data: bytes, wanted: Collection[str], most: int, least: int = _LEAST) -> Excerpt:
    """The file without the large members of other names than the wanted ones. One that has comments or the like in it
    is not left out; its end is looked for within `most` bytes."""
    # Each byte a character: places are the same, a character of four bytes makes nothing four times as large, and
    # what is looked for is ASCII.
    text = data.decode("latin-1")
    parts: list[Part] = []
    trouble: int | None = None
    try:
        for name, start, end, is_strict in _members(text, most):
            if is_strict and end - start >= least and name not in wanted:
                lines, tail = text.count("\n", start, end), end - 1 - text.rfind("\n", start, end)
                parts.append(Part(start, end, lines, tail if lines else end - start))
    except _NotJsonError as error:
        trouble = error.at
    left_out = LeftOut("left out by agtmux %s" % secrets.token_hex(16), tuple(parts))
    return Excerpt(b"".join(_kept(data, left_out)), left_out, trouble)


def _kept(data: bytes, left_out: LeftOut) -> Iterator[bytes | memoryview]:
    view, at = memoryview(data), 0
    for number, part in enumerate(left_out.parts):
        yield view[at : part.start]
        yield b'"%s %d"' % (left_out.mark.encode(), number)
        at = part.end
    yield view[at:]


class _NotJsonError(ValueError):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _members(text: str, most: int) -> Iterator[tuple[object, int, int, bool]]:
    """Of each member of the root its name, from where to where its value is, and whether that is JSON throughout."""
    at = _gap(text, len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0)
    is_more = text.startswith("{", at)
    while is_more:
        at = _gap(text, at + 1)
        if text.startswith("}", at):
            return
        if not text.startswith('"', at):
            raise _NotJsonError(at)
        name, end, _ = _value(text, at, most)
        colon = _gap(text, end)
        if not text.startswith(":", colon):
            raise _NotJsonError(colon)
        start = _gap(text, colon + 1)
        _, end, is_strict = _value(text, start, most)
        yield name, start, end, is_strict
        at = _gap(text, end)
        is_more = text.startswith(",", at)
        if not is_more and not text.startswith("}", at):
            raise _NotJsonError(at)


def _nothing(_members: object) -> None:
    """In place of every object: nothing is kept, and other threads get their turn."""


def _refuse(name: str) -> None:
    raise ValueError(name)


_STRICT = json.JSONDecoder(object_pairs_hook=_nothing, parse_int=str, parse_float=str, parse_constant=_refuse)


def _value(text: str, at: int, most: int) -> tuple[object, int, bool]:
    """A value, where it ends, and whether all of it is JSON."""
    try:
        value, end = _STRICT.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        loose = _loose_end(text, at, most)
        if loose is None:
            raise _NotJsonError(getattr(error, "pos", at)) from None
        return None, loose, False
    return value, end, True


def _loose_end(text: str, at: int, most: int) -> int | None:
    """Where a list or an object ends, by its brackets alone."""
    depth = 0
    for token in _TOKEN.finditer(text, at, at + most) if text.startswith(("{", "["), at) else ():
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return None


def _gap(text: str, at: int) -> int:
    """Where the next token starts."""
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        found = _COMMENT.match(text, at)
        if found is None:
            return at
        at = found.end()
