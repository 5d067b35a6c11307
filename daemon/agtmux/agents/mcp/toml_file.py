"""The entry in a TOML file: text in, text out.

It is a table of its own at the end of the file. Every change is read again before it counts: if the rest would then
say anything else than before, it is not made.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from agtmux.agents.mcp.sheet import NAME

_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+|[\[\]{}\n]",
    re.DOTALL,
)
_PLACE: Final = re.compile(r"\s*\(at line (\d+), column (\d+)\)\Z|\s*\(at end of document\)\Z")


class TomlError(ValueError):
    """A text that is not TOML, or in which the entry cannot be changed, and where."""

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class _Line:
    """A line, or several where a value goes on: text[start:end], its end included."""

    start: int
    end: int
    # Of a table's head the table's name, else None.
    table: tuple[str, ...] | None
    is_empty: bool


def found(text: str, under: str) -> Any:
    """The entry of our name, whoever wrote it; None if there is none."""
    servers = _read(text).get(under)
    return servers.get(NAME) if isinstance(servers, dict) else None


def added(text: str | None, under: str, entry: dict[str, Any]) -> str:
    """The text with the entry, which it does not have yet. A file that is there gets an empty line before it, and
    ends as it ended before: by that, taking it out restores every byte."""
    newline = "\n" if text is None else _newline(text)
    table = newline.join([f"[{under}.{NAME}]", *(f"{key} = {_value(each)}" for key, each in entry.items())])
    if text is None:
        return table + newline
    is_ended = text in ("", newline) or text.endswith("\n")
    new = text + newline + table + newline if is_ended else text + newline * 2 + table
    wanted = _read(text)
    servers = wanted.setdefault(under, {})
    if not isinstance(servers, dict):
        raise TomlError(f"{under} should be a table")
    servers[NAME] = entry
    return _checked(new, wanted, f"{under} is written so that no [{under}.{NAME}] can follow")


def removed(text: str, under: str) -> str | None:
    """The text without the entry and all that is in it; None if the file was made for it."""
    wanted = _read(text)
    del wanted[under][NAME]
    newline = _newline(text)
    new = text
    for start, end in reversed(list(_spans(text, (under, NAME)))):
        if start and end == len(text) and not text.endswith("\n"):
            before = text[:start].removesuffix(newline * 2)
        elif (shorter := text[:start].removesuffix(newline)) in ("", text[:start]) or shorter.endswith("\n"):
            before = shorter
        else:
            before = text[:start]
        new = before + new[end:]
    if not wanted[under] and _read(new).get(under) is None:
        del wanted[under]
    checked = _checked(new, wanted, f"{under}.{NAME} is not a table of its own there")
    return None if not checked and not text.startswith(newline) else checked


def _spans(text: str, name: tuple[str, str]) -> Iterator[tuple[int, int]]:
    """From the head of each table of that name, or below it, to the end of what it says."""
    start: int | None = None
    end = 0
    for line in _lines(text):
        if line.table is not None:
            if start is not None:
                yield start, end
            start = line.start if line.table[:2] == name else None
        if not line.is_empty:
            end = line.end
    if start is not None:
        yield start, end


def _lines(text: str) -> Iterator[_Line]:
    start = depth = 0
    head: int | None = None
    table: tuple[str, ...] | None = None
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "[" | "{":
                if depth == 0 and not text[start : token.start()].strip():
                    head = token.start()
                depth += 1
            case "]" | "}":
                depth -= 1
                if depth == 0 and head is not None:
                    table, head = _name(text[head : token.end()]), None
            case "\n" if depth == 0:
                yield _line(text, start, token.end(), table)
                start, table = token.end(), None
    if start < len(text):
        yield _line(text, start, len(text), table)


def _line(text: str, start: int, end: int, table: tuple[str, ...] | None) -> _Line:
    said = text[start:end].strip()
    return _Line(start, end, table, not said or said.startswith("#"))


def _name(head: str) -> tuple[str, ...]:
    parts: list[str] = []
    value: Any = tomllib.loads(head)
    while isinstance(value, dict) and value:
        ((key, value),) = value.items()
        parts.append(key)
    return tuple(parts)


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        problem = str(error)[: place.start()] if place else str(error)
        if place is None or place[1] is None:
            raise TomlError(problem, text.count("\n") + 1) from None
        raise TomlError(problem, int(place[1]), int(place[2])) from None


def _checked(new: str, wanted: dict[str, Any], problem: str) -> str:
    try:
        is_right = tomllib.loads(new) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise TomlError(problem)
    return new


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # A string in JSON is one in TOML; what differs, a path of ours never holds.
    return json.dumps(value, ensure_ascii=False)
