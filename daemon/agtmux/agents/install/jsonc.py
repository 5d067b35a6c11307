"""A JSON document with the place of everything in it, so that a text can be changed without being rewritten.

Comments (`//`, `/* */`), trailing commas, a byte order mark and repeated keys are taken as they come. What else is
not JSON is refused with its line and column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

_DEPTH_LIMIT: Final = 200
_BYTE_ORDER_MARK: Final = "\ufeff"

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_COMMENT: Final = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
# Possessive, so that a string without an end is refused at once and not after trying every way to cut it up. Only
# single characters are: possessive groups match wrongly before Python 3.11.5 (python/cpython#106052).
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*"')
_PLAIN: Final = re.compile(r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)(?![\w.+-])")


class Kind(Enum):
    OBJECT = "an object"
    ARRAY = "a list"
    STRING = "a string"
    PLAIN = "a number, true, false or null"


@dataclass(frozen=True, slots=True)
class Node:
    """A value: text[start:end]."""

    kind: Kind
    start: int
    end: int
    elements: tuple[Element, ...] = ()
    # Of a string what it says, of a number, true, false or null its text.
    value: str = ""

    def all(self, key: str) -> list[Element]:
        """The members of that name. Where there are several, every agent's parser takes the last."""
        return [element for element in self.elements if element.key == key]

    def get(self, key: str) -> Node | None:
        found = self.all(key)
        return found[-1].node if found else None


@dataclass(frozen=True, slots=True)
class Element:
    """A member of an object or an item of a list: text[start:end], and where the comma after it is."""

    key: str | None
    start: int
    node: Node
    comma: int | None

    @property
    def end(self) -> int:
        return self.node.end


@dataclass(frozen=True, slots=True)
class Comment:
    start: int
    end: int
    # Runs to the end of its line.
    to_line_end: bool


class JsoncError(ValueError):
    """A text that is not JSON, or not of the form that was expected, and where."""

    def __init__(self, problem: str, text: str, at: int) -> None:
        self.problem = problem
        self.before = before = text[:at].removeprefix(_BYTE_ORDER_MARK)
        self.line = before.count("\n") + 1
        self.column = len(before) - before.rfind("\n")
        super().__init__(f"{problem} at line {self.line}, column {self.column}")


def parse(text: str) -> Node:
    """The one value of a text."""
    reader = _Reader(text)
    root, at = reader.value(reader.gap(int(text.startswith(_BYTE_ORDER_MARK))), 0)
    if (at := reader.gap(at)) < len(text):
        raise JsoncError("nothing more was expected", text, at)
    return root


def as_python(node: Node) -> Any:
    """What an agent reads: of members of one name the last."""
    match node.kind:
        case Kind.OBJECT:
            return {element.key: as_python(element.node) for element in node.elements}
        case Kind.ARRAY:
            return [as_python(element.node) for element in node.elements]
        case Kind.STRING:
            return node.value
        case Kind.PLAIN:
            return json.loads(node.value)


def comments(text: str, start: int, end: int) -> Iterator[Comment]:
    """The comments in a stretch between two elements, where beside them only space and commas are."""
    while start < end:
        if found := _COMMENT.match(text, start, end):
            yield Comment(start, found.end(), text.startswith("//", start))
            start = found.end()
        else:
            start += 1


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def gap(self, at: int) -> int:
        """Where the next token starts."""
        while True:
            at = self._after(_SPACE, at)
            if not self._text.startswith("/", at):
                return at
            found = _COMMENT.match(self._text, at)
            if found is None:
                problem = "a comment without an end" if self._text.startswith("/*", at) else "a value was expected"
                raise JsoncError(problem, self._text, at)
            at = found.end()

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > _DEPTH_LIMIT:
            raise JsoncError(f"more than {_DEPTH_LIMIT} levels", self._text, at)
        start = self._text[at : at + 1]
        if start in ("{", "["):
            return self._container(at, depth)
        if start == '"':
            value, end = self._string(at)
            return Node(Kind.STRING, at, end, value=value), end
        if found := _PLAIN.match(self._text, at):
            return Node(Kind.PLAIN, at, found.end(), value=found.group()), found.end()
        raise JsoncError("a value was expected", self._text, at)

    def _container(self, start: int, depth: int) -> tuple[Node, int]:
        is_object = self._text[start] == "{"
        closing = "}" if is_object else "]"
        elements: list[Element] = []
        at = self.gap(start + 1)
        while not self._text.startswith(closing, at):
            if elements and elements[-1].comma is None:
                raise JsoncError(f"a comma or {closing} was expected", self._text, at)
            element_start, key = at, None
            if is_object:
                key, at = self._key(at)
            node, at = self.value(at, depth + 1)
            at = self.gap(at)
            comma = at if self._text.startswith(",", at) else None
            elements.append(Element(key, element_start, node, comma))
            at = at if comma is None else self.gap(comma + 1)
        kind = Kind.OBJECT if is_object else Kind.ARRAY
        return Node(kind, start, at + 1, tuple(elements)), at + 1

    def _key(self, at: int) -> tuple[str, int]:
        if not self._text.startswith('"', at):
            raise JsoncError("a name in double quotes was expected", self._text, at)
        key, at = self._string(at)
        at = self.gap(at)
        if not self._text.startswith(":", at):
            raise JsoncError("a colon was expected", self._text, at)
        return key, self.gap(at + 1)

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            raise JsoncError("a string without an end, or with a character that must be escaped", self._text, at)
        literal = found.group()
        return json.loads(literal) if "\\" in literal else literal[1:-1], found.end()

    def _after(self, pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(self._text, at)
        return found.end() if found else at
