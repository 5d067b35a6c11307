"""Random menus, also such as no snapshot makes. From one to the next most stays, some changes, moves, comes or goes."""

from __future__ import annotations

import random
from dataclasses import replace

from AgtmuxBar.tree import Action, Item, Kind, Menu

# Titles meet again and again: two items may read the same.
_LABELS = ("claude", "codex · web", "…", "Attach", "日本語の質問?", "50 % done", "", "naïve ▸ é", "a\tb", "\ud83d half")
_GLYPHS = ("", "", "▶", "!", "?", "✓")
_KINDS = (Kind.ITEM,) * 8 + (Kind.HEADER, Kind.SEPARATOR)


def random_menu(chance: random.Random, before: Menu | None = None) -> Menu:
    counter = iter(range(chance.randrange(10**9), 10**10))
    items = _items(chance, before.items if before else (), counter, depth=0)
    return Menu(chance.choice(["", "1", "2", "12"]), chance.choice(["idle", "running", "waiting", "down"]), "d", items)


def _items(chance, before, counter, depth):
    items = [_changed(chance, item, counter, depth) for item in before if chance.random() > 0.1]
    for _ in range(chance.choice([0, 0, 1, 2]) if before else chance.randrange(6)):
        items.insert(chance.randint(0, len(items)), _item(chance, f"k{next(counter)}", counter, depth))
    if len(items) > 1 and chance.random() < 0.3:
        items.insert(chance.randrange(len(items)), items.pop(chance.randrange(len(items))))
    if chance.random() < 0.05:
        chance.shuffle(items)
    if chance.random() < 0.03:
        return ()
    return tuple(items[:30])


def _item(chance, key, counter, depth):
    kind = chance.choice(_KINDS)
    if kind is Kind.SEPARATOR:
        return Item(key, kind=kind)
    has_children = kind is Kind.ITEM and depth < 3 and chance.random() < 0.3
    return Item(
        key,
        chance.choice(_LABELS),
        kind,
        chance.choice(_GLYPHS),
        Action(chance.choice(["attach", "approve"]), {"ref": key}) if chance.random() < 0.6 else None,
        chance.random() < 0.9,
        chance.choice([None, None, True, False]),
        _items(chance, (), counter, depth + 1) if has_children else (),
        chance.random() < 0.1,
        chance.choice(["", "", "more to read"]),
    )


def _changed(chance, item, counter, depth):
    roll = chance.random()
    if roll < 0.6:
        return item
    if roll < 0.7:
        # The same key, and perhaps of another kind.
        return _item(chance, item.key, counter, depth)
    if roll < 0.85 and item.kind is Kind.ITEM and depth < 3:
        return replace(item, children=_items(chance, item.children, counter, depth + 1))
    if item.kind is Kind.SEPARATOR:
        return item
    return replace(item, label=chance.choice(_LABELS), is_checked=chance.choice([None, True, False]))
