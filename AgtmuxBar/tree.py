"""A menu as a value: what every renderer draws, and nothing about how.

Keys are stable: the same thing has the same key from one snapshot to the next, so that a renderer changes what differs
and leaves the rest, with the user's pointer on it, alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    ITEM = "item"
    SEPARATOR = "separator"
    # Text that heads what is below it and cannot be chosen.
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Action:
    """What choosing an item does. `name` is one of the app's own; what it needs to know goes with it."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    # Unique within the whole menu.
    key: str
    label: str = ""
    kind: Kind = Kind.ITEM
    # A shape that tells the state without colour; empty for none.
    glyph: str = ""
    # Without one, and without children, an item is only to be read.
    action: Action | None = None
    is_enabled: bool = True
    # None for what is neither on nor off.
    is_checked: bool | None = None
    children: tuple[Item, ...] = ()
    # Shown instead of the item before it while ⌥ is held; elsewhere as an item of its own.
    is_alternate: bool = False
    # More to read than fits: what a pointer that rests on it is told.
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Menu:
    # Beside the glyph in the bar: how many wait, or nothing.
    title: str
    # Which of the app's icons: `idle`, `running`, `waiting` or `down`.
    icon: str
    # For whoever cannot see it.
    description: str
    items: tuple[Item, ...] = ()

    def walk(self) -> Iterator[Item]:
        """Every item, each before its children."""
        waiting = list(reversed(self.items))
        while waiting:
            item = waiting.pop()
            yield item
            waiting += reversed(item.children)
