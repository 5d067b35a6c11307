"""The tree as rumps draws it: equal to the model, in place, and nothing left in rumps' table."""

import random
from dataclasses import replace

import pytest
import screen
from trees import random_menu

from AgtmuxBar.tree import Action, Item, Kind, Menu
from support.chance import any_seed

pytestmark = pytest.mark.usefixtures("world")


def drawn_menu(chosen=None):
    import rumps

    from AgtmuxBar.mac.menu import DrawnMenu

    owner = rumps.rumps.Menu()

    def choose(action, since):
        (chosen if chosen is not None else []).append(action)

    return owner, DrawnMenu(owner, choose)


def test_the_menu_equals_the_tree_whatever_becomes_of_it():
    """Also as no snapshot has it: a key that is an item, then a rule; deep down; half a character."""
    seed = any_seed()
    chance = random.Random(seed)
    chosen: list[Action] = []
    owner, drawn = drawn_menu(chosen)
    menu, largest = None, 0
    for number in range(300):
        menu = random_menu(chance, menu if chance.random() > 0.02 else None)
        drawn.draw(menu.items)
        assert screen.drawn(owner, chosen) == screen.wanted(menu.items), f"tree {number} of {seed}"
        natives = {native for _, native in screen.natives(owner) if not native.isSeparatorItem()}
        assert set(screen.table()) == natives, f"tree {number} of {seed}"
        largest = max(largest, len(natives))
    assert largest > 20


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
