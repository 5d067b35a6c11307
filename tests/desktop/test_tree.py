"""The value that every renderer draws."""

from AgtmuxBar.tree import Item, Menu


def test_a_walk_comes_to_every_item_before_its_children():
    inner = (Item("c"), Item("d"))
    menu = Menu("", "idle", "", (Item("a"), Item("b", children=inner), Item("e")))
    assert [item.key for item in menu.walk()] == ["a", "b", "c", "d", "e"]
