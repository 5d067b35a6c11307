"""Our entry in an agent's TOML file: text in, text out.

agtmux writes the entry as a table of its own at the end of the file. tomlkit writes the table and finds it again; the
cut itself is made in the text, so every other byte stays. Each change is parsed again before it counts, with the
standard library's parser: unless the result is the old document with or without the entry, the change is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from agtmux.agents.mcp.sheet import NAME

if TYPE_CHECKING:
    from tomlkit.items import Item

_PLACE: Final = re.compile(r"\s*\(at line (\d+), column (\d+)\)\Z|\s*\(at end of document\)\Z")
# Rust's TOML parsers, Codex's among them, skip a byte order mark. Python's refuse it.
_BOM: Final = "\ufeff"
# No TOML document holds a NUL.
_MARK: Final = "\0"


class TomlError(ValueError):
    """A text that is not TOML, or in which the entry cannot be changed, and where."""

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


def found(text: str, under: str) -> Any:
    """The entry of our name, whoever wrote it; None if there is none."""
    servers = _parse(text.removeprefix(_BOM)).get(under)
    return servers.get(NAME) if isinstance(servers, dict) else None


def added(text: str | None, under: str, entry: dict[str, Any]) -> str:
    """The text with the entry, which it does not have yet. An existing file gets an empty line before the entry, and
    ends as it ended before, so that removing the entry restores every byte."""
    if text is None:
        return _table(under, entry, "\n") + "\n"
    body = text.removeprefix(_BOM)
    wanted = _parse(body)
    servers = wanted.setdefault(under, {})
    if not isinstance(servers, dict):
        raise TomlError(f"{under} should be a table")
    servers[NAME] = entry
    newline = _newline(body)
    table = _table(under, entry, newline)
    is_ended = body == "" or body.endswith("\n")
    new = body + newline + table + newline if is_ended else body + newline * 2 + table
    if not _is(new, wanted):
        raise TomlError(f"{under} is written so that no [{under}.{NAME}] can follow")
    if _removed(new, under) != body:
        raise TomlError(f"[{under}.{NAME}] could not be removed again without changing the rest")
    return text[: len(text) - len(body)] + new


def removed(text: str, under: str) -> str | None:
    """The text without the entry and all that is in it; None if the file was made for it."""
    body = text.removeprefix(_BOM)
    left = _removed(body, under)
    return left if left is None else text[: len(text) - len(body)] + left


def _removed(text: str, under: str) -> str | None:
    wanted = _parse(text)
    entry = wanted[under].pop(NAME)
    for spans in (_spans_as_written(text, under, entry), _spans_of_tables(text, under)):
        new = text
        for start, end in reversed(spans):
            new = _before(text, start, end) + new[end:]
        if not spans or not any(_is(new, each) for each in _acceptable(wanted, under)):
            continue
        return None if not new and not text.startswith(_newline(text)) else new
    raise TomlError(f"{under}.{NAME} cannot be removed without changing other lines, so remove it by hand")


def _acceptable(wanted: dict[str, Any], under: str) -> Iterator[dict[str, Any]]:
    yield wanted
    if not wanted[under]:
        # The entry alone made the table it was in.
        yield {key: value for key, value in wanted.items() if key != under}


def _before(text: str, start: int, end: int) -> str:
    """What precedes an entry, without the empty line that came with it."""
    newline = _newline(text)
    if start and end == len(text) and not text.endswith("\n"):
        return text[:start].removesuffix(newline * 2)
    shorter = text[:start].removesuffix(newline)
    return shorter if not shorter or shorter.endswith("\n") else text[:start]


def _table(under: str, entry: dict[str, Any], newline: str) -> str:
    import tomlkit  # Here: no start of a daemon or command waits for it.

    lines = [f"{tomlkit.key(key).as_string()} = {tomlkit.item(value).as_string()}" for key, value in entry.items()]
    return newline.join([f"[{under}.{NAME}]", *lines])


def _spans_as_written(text: str, under: str, entry: Any) -> list[tuple[int, int]]:
    """Where the entry is just as `added` has written it: no parser has to agree with how the rest is written."""
    if not isinstance(entry, dict) or any(isinstance(value, dict) for value in entry.values()):
        return []
    newline = _newline(text)
    table = _table(under, entry, newline)
    # The last: an earlier one can only be part of a string.
    start = text.rfind(table)
    if start < 0 or text[:start].rpartition("\n")[2]:
        return []
    end = start + len(table)
    if text.startswith(newline, end):
        return [(start, end + len(newline))]
    return [(start, end)] if end == len(text) else []


def _spans_of_tables(text: str, under: str) -> list[tuple[int, int]]:
    """From the head of each table of our name to the last line in it that says anything, as tomlkit finds it. Comments
    and empty lines after that belong to what follows."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import Table

    try:
        document = tomlkit.parse(text)
        if document.as_string() != text:
            return []
        # A table that others interrupt has several parts.
        parts = [table for key, table in document.body if key and key.key == under and isinstance(table, Table)]
        ours = [item for part in parts for key, item in part.value.body if key and key.key == NAME]
        for item in ours:
            written = list(_written(item))
            written[0].trivia.indent = _MARK + written[0].trivia.indent
            # Before the end of the line: tomlkit adds one where a table follows what does not end with one.
            written[-1].trivia.trail = _MARK + written[-1].trivia.trail
        pieces = document.as_string().split(_MARK)
    except (TOMLKitError, RecursionError, IndexError):
        return []
    if "".join(pieces) != text or len(pieces) != 2 * len(ours) + 1:
        return []
    marks = [sum(map(len, pieces[:count])) for count in range(1, len(pieces))]
    return [(start, text.find("\n", end) + 1 or len(text)) for start, end in zip(marks[::2], marks[1::2], strict=True)]


def _written(item: Item) -> Iterator[Item]:
    """Heads and values that the item is written as, in order."""
    from tomlkit.items import AoT, Comment, Null, Table, Whitespace

    if isinstance(item, AoT):
        for table in item.body:
            yield from _written(table)
    elif isinstance(item, Table):
        if not item.is_super_table():
            yield item
        for _, each in item.value.body:
            yield from _written(each)
    elif not isinstance(item, Comment | Null | Whitespace):
        yield item


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or int's own for more digits than it takes
        place = _PLACE.search(str(error))
        problem = str(error)[: place.start()] if place else str(error)
        if place is None or place[1] is None:
            raise TomlError(problem, text.count("\n") + 1) from None
        raise TomlError(problem, int(place[1]), int(place[2])) from None
    except RecursionError:
        raise TomlError("values are nested too deeply") from None


def _is(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _same(tomllib.loads(text), wanted)
    except (ValueError, RecursionError):
        return False


def _same(one: Any, other: Any) -> bool:
    """Equal in type too; and unlike with ==, one NaN is as good as another."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
