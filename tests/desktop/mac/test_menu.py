"""The tree as rumps draws it: equal to the model, in place, and nothing left in rumps' table."""

import random
from dataclasses import replace

import pytest
from trees import random_menu

from AgtmuxBar.tree import Action, Item, Kind, Menu

pytestmark = pytest.mark.usefixtures("world")


def drawn_menu(chosen=None):
    import rumps

    from AgtmuxBar.mac.menu import DrawnMenu

    owner = rumps.rumps.Menu()

    def choose(action, since):
        (chosen if chosen is not None else []).append(action)

    return owner, DrawnMenu(owner, choose)


def on_screen(menu):
    """What NSMenu shows, as the model would say it."""
    return [
        "-"
        if native.isSeparatorItem()
        else (
            native.title(),
            native.isEnabled(),
            native.state(),
            native.toolTip(),
            native.isAlternate(),
            native.keyEquivalentModifierMask(),
            native.action(),
            on_screen(native.submenu()) if native.hasSubmenu() else None,
        )
        for native in menu.itemArray()
    ]


def as_modelled(items):
    def text(value):
        return value.encode("utf-8", "replace").decode()

    return [
        "-"
        if item.kind is Kind.SEPARATOR
        else (
            text(f"{item.glyph} {item.label}" if item.glyph else item.label),
            item.kind is Kind.ITEM and item.is_enabled and bool(item.action or item.children),
            1 if item.is_checked else 0,
            item.hint or None,
            item.is_alternate,
            1 << 19 if item.is_alternate else 1 << 20,
            "callback:" if item.action else None,
            as_modelled(item.children) if item.children else None,
        )
        for item in items
    ]


def table():
    from rumps.rumps import NSApp

    return NSApp._ns_to_py_and_callback


def natives(menu):
    for native in menu.itemArray():
        if not native.isSeparatorItem():
            yield native
        if native.hasSubmenu():
            yield from natives(native.submenu())


def check(owner, menu):
    assert on_screen(owner._menu) == as_modelled(menu.items)
    assert set(table()) == set(natives(owner._menu))


def snapshots(count, seed):
    chance = random.Random(seed)
    owner, drawn = drawn_menu()
    menu = None
    largest = 0
    for number in range(count):
        menu = random_menu(chance, menu if chance.random() > 0.02 else None)
        drawn.draw(menu.items)
        try:
            check(owner, menu)
        except AssertionError:
            raise AssertionError(f"snapshot {number} of seed {seed}") from None
        largest = max(largest, len(table()))
    return largest


def test_the_menu_equals_the_model_after_every_snapshot():
    seed = random.SystemRandom().randrange(2**32)
    largest = snapshots(300, seed)
    print(f"seed {seed}, at most {largest} items")
    assert largest > 20


@pytest.mark.soak
def test_the_menu_equals_the_model_after_ten_thousand_snapshots(record_property):
    seed = random.SystemRandom().randrange(2**32)
    largest = snapshots(10_000, seed)
    print(f"seed {seed}, 10,000 snapshots, at most {largest} items in the menu and in rumps' table")


def test_what_stays_is_the_same_object(world):
    owner, drawn = drawn_menu()
    items = [Item(f"k{n}", "same title", action=Action("a")) for n in range(5)]
    drawn.draw(items)
    before = owner._menu.itemArray()
    assert len(before) == 5
    world.changes.clear()
    drawn.draw([items[4], items[0], replace(items[1], label="other"), items[3]])
    after = owner._menu.itemArray()
    assert after == [before[4], before[0], before[1], before[3]]
    # One went, one moved, one has another title; the rest was not touched.
    assert sorted(world.changes) == [
        ("NSMenu", "insertItem_atIndex_"),
        ("NSMenu", "removeItem_"),
        ("NSMenu", "removeItem_"),
        ("NSMenuItem", "setTitle_"),
    ]


def test_the_same_menu_again_touches_nothing(world):
    _, drawn = drawn_menu()
    menu = Menu("", "idle", "", (Item("a", "x", action=Action("a")), Item("b", kind=Kind.SEPARATOR)))
    drawn.draw(menu.items)
    world.changes.clear()
    drawn.draw(menu.items)
    assert world.changes == []


def test_choosing_does_what_the_item_says_now():
    chosen = []
    owner, drawn = drawn_menu(chosen)
    drawn.draw([Item("a", "x", action=Action("approve", {"version": "1"}))])
    native = owner._menu.itemArray()[0]
    drawn.draw([Item("a", "x", action=Action("approve", {"version": "2"}))])
    native.target().callback_(native)
    assert chosen == [Action("approve", {"version": "2"})]


def test_an_item_without_children_has_no_empty_submenu():
    owner, drawn = drawn_menu()
    drawn.draw([Item("a", "x", children=(Item("b", "y"),))])
    native = owner._menu.itemArray()[0]
    assert native.hasSubmenu()
    drawn.draw([Item("a", "x")])
    assert not native.hasSubmenu()
    drawn.draw([Item("a", "x", children=(Item("c", "z"),))])
    assert [each.title() for each in native.submenu().itemArray()] == ["z"]


def test_two_items_with_one_key_are_refused():
    _, drawn = drawn_menu()
    with pytest.raises(ValueError, match="one key"):
        drawn.draw([Item("a"), Item("a")])


def test_a_failing_choice_is_logged_and_does_not_reach_cocoa(caplog):
    import rumps

    from AgtmuxBar.mac.menu import DrawnMenu

    owner = rumps.rumps.Menu()

    def fail(action, since):
        raise OSError("no")

    DrawnMenu(owner, fail).draw([Item("a", "x", action=Action("a"))])
    native = owner._menu.itemArray()[0]
    native.target().callback_(native)
    assert "choosing a failed" in caplog.text
