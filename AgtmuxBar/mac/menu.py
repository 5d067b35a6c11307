"""The tree into rumps' menu: what differs is changed in place, and the rest, with the pointer on it, is left alone.

Three of rumps' habits are avoided. Its table of callbacks keeps every item there ever was: what goes is taken out of
it. `add` drops an item whose title is there already: ours go in by key. A menu item that loses its last child keeps an
empty submenu: ours is taken away.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import rumps
from AppKit import (
    NSControlStateValueOff,
    NSControlStateValueOn,
    NSEventModifierFlagCommand,
    NSEventModifierFlagOption,
)
from rumps.rumps import NSApp, SeparatorMenuItem

from AgtmuxBar.tree import Action, Item, Kind

_log = logging.getLogger(__name__)

# What was chosen, and since when it has been on the screen, by time.monotonic.
Choose = Callable[[Action, float], object]


class DrawnMenu:
    """The items of one menu or submenu, as they were drawn last."""

    def __init__(self, owner: Any, choose: Choose) -> None:
        """`owner` is rumps' main menu, or the item whose submenu this is."""
        self._owner = owner
        self._choose = choose
        self._rows: dict[str, _Row] = {}

    def draw(self, items: Sequence[Item]) -> None:
        wanted = {item.key: item for item in items}
        if len(wanted) != len(items):
            raise ValueError("two items of a menu have one key")
        for key, known in list(self._rows.items()):
            if key not in wanted or not known.can_become(wanted[key]):
                self._remove(key)
        drawn = list(self._rows)
        staying = _longest_in_order([key for key in wanted if key in self._rows], drawn)
        # All at once and before the rest, so that the places counted below are those of the new order.
        for key in drawn:
            if key not in staying:
                self._owner._menu.removeItem_(self._rows[key].native)
        after = {}
        for index, item in enumerate(items):
            row = self._rows.get(item.key)
            if row is None:
                row = self._insert(item, index)
            elif item.key not in staying:
                self._owner._menu.insertItem_atIndex_(row.native, index)
            after[item.key] = row
            row.become(item)
        # In the order that is now drawn, which the next one is compared with.
        self._rows = after

    def clear(self) -> None:
        for key in list(self._rows):
            self._remove(key)

    def _insert(self, item: Item, index: int) -> _Row:
        row = _Row(item, self._choose)
        # rumps puts it last, and makes the submenu with its first item.
        self._owner[item.key] = row.drawn
        menu = self._owner._menu
        if menu.autoenablesItems():
            # What can be chosen is said by the tree, not guessed by AppKit.
            menu.setAutoenablesItems_(False)
        if menu.indexOfItem_(row.native) != index:
            menu.removeItem_(row.native)
            menu.insertItem_atIndex_(row.native, index)
        return row

    def _remove(self, key: str) -> None:
        row = self._rows.pop(key)
        del self._owner[key]
        row.forget()


class _Row:
    """One item on the screen."""

    def __init__(self, item: Item, choose: Choose) -> None:
        self._choose = choose
        self._since = time.monotonic()
        # What is drawn; None where nothing is yet.
        self._item: Item | None = None
        self._kind = item.kind
        self._below: DrawnMenu | None = None
        self.drawn: Any = SeparatorMenuItem() if item.kind is Kind.SEPARATOR else rumps.MenuItem(_title(item))
        self.native: Any = self.drawn._menuitem

    def can_become(self, item: Item) -> bool:
        return (item.kind is Kind.SEPARATOR) == (self._kind is Kind.SEPARATOR)

    def become(self, item: Item) -> None:
        before, self._item = self._item, item
        if item == before or item.kind is Kind.SEPARATOR:
            return
        for read, change in _CHANGES:
            value = read(item)
            if before is None or read(before) != value:
                change(self.native, value)
        if before is None or (before.action is None) != (item.action is None):
            self.drawn.set_callback(self._chosen if item.action else None)
        if before is None or before.children != item.children:
            self._draw_below(item.children)

    def forget(self) -> None:
        """Out of rumps' table, with all that is below."""
        self._draw_below(())
        NSApp._ns_to_py_and_callback.pop(self.native, None)

    def _draw_below(self, children: Sequence[Item]) -> None:
        if children:
            self._below = self._below or DrawnMenu(self.drawn, self._choose)
            self._below.draw(children)
        elif self._below is not None:
            self._below.clear()
            self._below = None
            self.native.setSubmenu_(None)
            self.drawn._menu = None

    def _chosen(self, _: object) -> None:
        # What it does now, not what it did when it was drawn first.
        if self._item is None or self._item.action is None:
            return
        try:
            self._choose(self._item.action, self._since)
        except Exception:
            # rumps would print it where nobody looks.
            _log.exception("choosing %s failed", self._item.key)


def _title(item: Item) -> str:
    return encodable(f"{item.glyph} {item.label}" if item.glyph else item.label)


def encodable(text: str) -> str:
    """Half a character, as a cut-off file name may have one, cannot become an NSString."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _can_be_chosen(item: Item) -> bool:
    return item.kind is Kind.ITEM and item.is_enabled and bool(item.action or item.children)


# What is read from the tree, and how the screen is told when it differs.
_CHANGES: tuple[tuple[Callable[[Item], Any], Callable[[Any, Any], object]], ...] = (
    (_title, lambda native, title: native.setTitle_(title)),
    (_can_be_chosen, lambda native, enabled: native.setEnabled_(enabled)),
    (
        lambda item: bool(item.is_checked),
        lambda native, checked: native.setState_(NSControlStateValueOn if checked else NSControlStateValueOff),
    ),
    (lambda item: encodable(item.hint) or None, lambda native, hint: native.setToolTip_(hint)),
    # An alternate has the keys of the item before it, and ⌥ more.
    (
        lambda item: NSEventModifierFlagOption if item.is_alternate else NSEventModifierFlagCommand,
        lambda native, mask: native.setKeyEquivalentModifierMask_(mask),
    ),
    (lambda item: item.is_alternate, lambda native, alternate: native.setAlternate_(alternate)),
)


def _longest_in_order(wanted: Sequence[str], drawn: Sequence[str]) -> set[str]:
    """The most keys that need not move: the longest run of `wanted` that stands in that order in `drawn`."""
    place = {key: index for index, key in enumerate(drawn)}
    # The smallest last place of a run of each length, and the keys by which the runs are told.
    ends: list[int] = []
    tails: list[str] = []
    before: dict[str, str | None] = {}
    for key in wanted:
        at = bisect_left(ends, place[key])
        before[key] = tails[at - 1] if at else None
        ends[at : at + 1] = [place[key]]
        tails[at : at + 1] = [key]
    found = set()
    last = tails[-1] if tails else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found
