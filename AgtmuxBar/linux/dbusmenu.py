"""A menu over `com.canonical.dbusmenu`: items keep their numbers for as long as they keep their keys, and a panel is
told just what has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from AgtmuxBar.linux.bus import Bus, Reply
from AgtmuxBar.text import label_of
from AgtmuxBar.tree import Action, Item, Kind, Menu

PATH: Final = "/MenuBar"
INTERFACE: Final = "com.canonical.dbusmenu"
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_ROOT: Final = 0
_OWN: Final[dict[str, tuple[str, Any]]] = {
    "Version": ("u", 3),
    "TextDirection": ("s", "ltr"),
    "Status": ("s", "normal"),
    "IconThemePath": ("as", []),
}
# An answer that has come under the pointer just now, in a menu that was open, was hardly meant.
_TOO_SOON: Final = 0.5
_ANSWERS: Final = ("approve", "deny")

Properties = dict[str, tuple[str, Any]]


class DBusMenu:
    def __init__(
        self,
        bus: Bus,
        choose: Callable[[Action], object],
        opened: Callable[[], object],
        refuse: Callable[[], object],
    ) -> None:
        """`opened` is called when the menu is about to be looked at, `refuse` when an answer is not taken for one."""
        self._bus = bus
        self._choose = choose
        self._opened = opened
        self._refuse = refuse
        self._opened_at = 0.0
        self._revision = 1
        self._last_id = _ROOT
        self._ids: dict[str, int] = {}
        self._nodes: dict[int, _Node] = {_ROOT: _Node(_root(()), ())}
        bus.serve(PATH, INTERFACE, self._answer)
        bus.serve(PATH, _PROPERTIES, self._answer_property)

    def show(self, menu: Menu) -> None:
        before, self._nodes = self._nodes, {}
        self._ids = {item.key: self._ids.get(item.key) or self._next_id() for item in menu.walk()}
        now = time.monotonic()
        self._nodes[_ROOT] = _Node(_root(menu.items), self._children(menu.items))
        for item in menu.walk():
            number = self._ids[item.key]
            born = before[number].born if number in before else now
            self._nodes[number] = _Node(_properties(item), self._children(item.children), item.action, born)
        self._tell(before)

    def _children(self, items: Sequence[Item]) -> tuple[int, ...]:
        return tuple(self._ids[item.key] for item in items)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _tell(self, before: dict[int, _Node]) -> None:
        """Properties of items that were there, then the places where other items are now."""
        updated, removed = [], []
        for number, node in self._nodes.items():
            if number not in before or (old := before[number].properties) == node.properties:
                continue
            changed = {name: value for name, value in node.properties.items() if old.get(name) != value}
            gone = [name for name in old if name not in node.properties]
            updated += [(number, changed)] if changed else []
            removed += [(number, gone)] if gone else []
        moved = list(self._moved(_ROOT, before))
        if updated or removed:
            self._bus.emit(PATH, INTERFACE, "ItemsPropertiesUpdated", "a(ia{sv})a(ias)", updated, removed)
        if moved:
            self._revision += 1
        for number in moved:
            self._bus.emit(PATH, INTERFACE, "LayoutUpdated", "ui", self._revision, number)

    def _moved(self, number: int, before: dict[int, _Node]) -> Iterator[int]:
        """The topmost items that have other children than before; what is below them is asked for with them."""
        if number not in before or before[number].children != self._nodes[number].children:
            yield number
            return
        for child in self._nodes[number].children:
            yield from self._moved(child, before)

    # What a panel asks

    def _answer(self, method: str, arguments: tuple[Any, ...]) -> Reply:
        match method, arguments:
            case "GetLayout", (parent, depth, names):
                layout = self._layout(parent, depth, names)
                return None if layout is None else ("u(ia{sv}av)", (self._revision, layout))
            case "GetGroupProperties", (numbers, names):
                known = [number for number in numbers or self._nodes if number in self._nodes]
                return "a(ia{sv})", ([(number, self._chosen(number, names)) for number in known],)
            case "GetProperty", (number, name):
                value = self._nodes[number].properties.get(name) if number in self._nodes else None
                return None if value is None else ("v", (value,))
            case "Event", (number, kind, _, _):
                self._happened(number, kind)
                return "", ()
            case "EventGroup", (events,):
                for number, kind, *_ in events:
                    self._happened(number, kind)
                return "ai", ([number for number, *_ in events if number not in self._nodes],)
            case "AboutToShow", (number,):
                if number == _ROOT:
                    self._open()
                return "b", (False,)
            case "AboutToShowGroup", (numbers,):
                if _ROOT in numbers:
                    self._open()
                return "aiai", ([], [number for number in numbers if number not in self._nodes])
            case _:
                return None

    def _answer_property(self, method: str, arguments: tuple[Any, ...]) -> Reply:
        match method, arguments:
            case "GetAll", (_,):
                return "a{sv}", (_OWN,)
            case "Get", (_, name) if name in _OWN:
                return "v", (_OWN[name],)
            case _:
                return None

    def _layout(self, number: int, depth: int, names: Sequence[str]) -> tuple[int, Properties, list[Any]] | None:
        node = self._nodes.get(number)
        if node is None:
            return None
        inside = [self._layout(child, depth - 1, names) for child in node.children] if depth else []
        return number, self._chosen(number, names), [("(ia{sv}av)", each) for each in inside if each is not None]

    def _chosen(self, number: int, names: Sequence[str]) -> Properties:
        every = self._nodes[number].properties
        return {name: value for name, value in every.items() if not names or name in names}

    def _open(self) -> None:
        self._opened_at = time.monotonic()
        self._opened()

    def _happened(self, number: int, kind: str) -> None:
        if number == _ROOT and kind == "opened":
            self._open()
        if kind != "clicked":
            return
        node = self._nodes.get(number)
        if node is None:
            # It went while the click was on its way, and somebody would think that it was taken.
            self._refuse()
            return
        if node.action is None:
            return
        has_just_come = node.born > self._opened_at and time.monotonic() - node.born < _TOO_SOON
        if node.action.name in _ANSWERS and has_just_come:
            self._refuse()
        else:
            self._choose(node.action)


class _Node:
    """An item as the panel knows it."""

    __slots__ = ("action", "born", "children", "properties")

    def __init__(
        self, properties: Properties, children: tuple[int, ...], action: Action | None = None, born: float = 0.0
    ) -> None:
        self.properties = properties
        self.children = children
        self.action = action
        self.born = born


def _root(items: Sequence[Item]) -> Properties:
    return {"children-display": ("s", "submenu")} if items else {}


def _properties(item: Item) -> Properties:
    """Only what differs from what a panel assumes."""
    if item.kind is Kind.SEPARATOR:
        return {"type": ("s", "separator")}
    # An underscore would mark the letter that the keyboard chooses it with.
    properties: Properties = {"label": ("s", label_of(item).replace("_", "__"))}
    can_be_chosen = item.kind is Kind.ITEM and item.is_enabled and (item.action is not None or bool(item.children))
    if not can_be_chosen:
        properties["enabled"] = ("b", False)
    if item.is_checked is not None:
        properties["toggle-type"] = ("s", "checkmark")
        properties["toggle-state"] = ("i", int(item.is_checked))
    if item.children:
        properties["children-display"] = ("s", "submenu")
    return properties
