"""The menu bar from in front of the screen: what NSMenu shows, what a click sends, and what the tree wants of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from AgtmuxBar.tree import Action, Item, Kind

_COMMAND, _OPTION = 1 << 20, 1 << 19


class Row(NamedTuple):
    """An item, as it is drawn or as it should be."""

    key: str
    title: str | None = None
    is_enabled: bool = False
    is_ticked: bool = False
    hint: str | None = None
    is_alternate: bool = False
    # Held down for it to be shown.
    modifiers: int = _COMMAND
    # What choosing it sends; None where a click does nothing.
    sends: Action | None = None
    below: tuple[Row, ...] | None = None


def drawn(owner: Any, chosen: list[Action]) -> tuple[Row, ...]:
    """The items of a menu of rumps'. Each is chosen on the way, and what `chosen` gets from that is in its row."""
    keys = {each._menuitem: key for key, each in owner.items()}
    items = owner._menu.itemArray()
    assert len(keys) == len(items), "rumps and NSMenu do not have the same items"
    return tuple(_drawn(keys[native], native, chosen) for native in items)


def _drawn(key: str, native: Any, chosen: list[Action]) -> Row:
    if native.isSeparatorItem():
        return Row(key)
    assert not native.isHidden()
    ours, _ = table()[native]
    return Row(
        key,
        native.title(),
        native.isEnabled(),
        native.state() == 1,
        native.toolTip(),
        native.isAlternate(),
        native.keyEquivalentModifierMask(),
        _sent(native, chosen),
        drawn(ours, chosen) if native.hasSubmenu() else None,
    )


def _sent(native: Any, chosen: list[Action]) -> Action | None:
    if native.action() is None:
        return None
    assert native.action() == "callback:"
    assert hasattr(native.target(), "callback_")
    chosen.clear()
    # Where rumps' own callback_ finds it, which looks through all of the application's methods first.
    ours, callback = table()[native]
    callback(ours)
    (action,) = chosen
    return action


def wanted(items: Sequence[Item]) -> tuple[Row, ...]:
    return tuple(_wanted(item) for item in items)


def _wanted(item: Item) -> Row:
    if item.kind is Kind.SEPARATOR:
        return Row(item.key)
    return Row(
        item.key,
        _whole(f"{item.glyph} {item.label}" if item.glyph else item.label),
        item.kind is Kind.ITEM and item.is_enabled and bool(item.action or item.children),
        bool(item.is_checked),
        _whole(item.hint) or None,
        item.is_alternate,
        _OPTION if item.is_alternate else _COMMAND,
        item.action,
        wanted(item.children) if item.children else None,
    )


def _whole(text: str) -> str:
    """Half a character is no part of an NSString."""
    return text.encode("utf-8", "replace").decode()


def table() -> dict[Any, tuple[Any, Any]]:
    """rumps' own, which it never takes anything out of."""
    from rumps.rumps import NSApp

    return NSApp._ns_to_py_and_callback


def natives(owner: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every NSMenuItem below, by the keys that lead to it."""
    for key, each in owner.items():
        native = each._menuitem
        yield (*path, key), native
        if not native.isSeparatorItem() and native.hasSubmenu():
            yield from natives(each, (*path, key))


def status_item() -> Any:
    from AppKit import NSStatusBar

    (item,) = NSStatusBar.systemStatusBar()._values["items"]
    return item


def symbol() -> str:
    """The name of the one in the menu bar."""
    return status_item().button().image()._values["source"].removeprefix("symbol:")
