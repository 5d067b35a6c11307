"""The menu as text: for a terminal, for whoever has no tray, and for tests of every other renderer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from AgtmuxBar.tree import Item, Kind, Menu

_INDENT: Final = "  "
_RULE: Final = "───"
# Of items that are neither a state nor a tick, so that all labels begin in one column.
_TICKS: Final = {True: "☑ ", False: "☐ ", None: ""}


def as_text(menu: Menu) -> str:
    """One line an item: `(…)` cannot be chosen, `⌥` takes the place of the item before it while that key is held."""
    head = f"[{menu.icon}]{' ' if menu.title else ''}{menu.title}"
    return "\n".join([head, *_lines(menu.items, _INDENT)]) + "\n"


def as_json(menu: Menu) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "title": menu.title,
        "icon": menu.icon,
        "description": menu.description,
        "items": [_item(item) for item in menu.items],
    }


def label_of(item: Item) -> str:
    """What is read: the glyph and the label."""
    return f"{item.glyph} {item.label}" if item.glyph else item.label


def _lines(items: Sequence[Item], indent: str) -> Iterator[str]:
    for item in items:
        yield f"{indent}{_line(item)}"
        yield from _lines(item.children, indent + _INDENT * 2)


def _line(item: Item) -> str:
    if item.kind is Kind.SEPARATOR:
        return _RULE
    if item.kind is Kind.HEADER:
        return f"── {item.label}"
    label = f"{'⌥ ' if item.is_alternate else ''}{_TICKS[item.is_checked]}{label_of(item)}"
    return label if item.is_enabled else f"({label})"


def _item(item: Item) -> dict[str, Any]:
    content = asdict(item)
    content["kind"] = str(item.kind)
    content["children"] = [_item(child) for child in item.children]
    return content
