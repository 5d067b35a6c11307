"""Snapshots through the model and the real renderer: what is on the screen is what the model says, each time.

AGTMUX_TEST_SEED says which snapshots; it is printed.
"""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import pytest
import screen

from AgtmuxBar.tree import Menu
from desktop.menus import GOLDEN, menus
from desktop.moments import moments
from support.chance import any_seed

# How many menus the app's thread may be ahead of the screen.
AHEAD = 3


@pytest.fixture
def renderer(world):
    from AgtmuxBar.mac.rendering import MacRenderer

    chosen = []
    made = MacRenderer(chosen.append)
    made.chosen = chosen
    return made


class Watcher:
    """Compares, after each menu that was drawn."""

    def __init__(self, world, renderer) -> None:
        from AgtmuxBar.mac.status import SYMBOLS

        self._world = world
        self._renderer = renderer
        self._symbols = SYMBOLS
        self._before: Menu | None = None
        self._natives: dict[tuple[str, ...], object] = {}
        self._ever = weakref.WeakSet()
        self.compared = 0
        self.kept = 0
        self.largest = 0

    def compare(self, menu: Menu) -> None:
        changes = list(self._world.changes)
        owner = self._renderer._rumps.menu
        assert screen.status_item().menu() is owner._menu
        assert screen.drawn(owner, self._renderer.chosen) == screen.wanted(menu.items)
        self._compare_bar(menu)
        natives = dict(screen.natives(owner))
        shown = {native for native in natives.values() if not native.isSeparatorItem()}
        assert set(screen.table()) == shown, "rumps' table has other items than the menu"
        for path, native in natives.items():
            before = self._natives.get(path, native)
            assert native is before, f"{path} was made anew under the pointer"
        assert menu != self._before or not changes, f"nothing is new, and yet: {changes}"
        self.kept += len(natives.keys() & self._natives.keys())
        self._before, self._natives = menu, natives
        self._ever.update(natives.values())
        self.largest = max(self.largest, len(shown))
        self.compared += 1
        self._world.changes.clear()

    def _compare_bar(self, menu: Menu) -> None:
        item = screen.status_item()
        button = item.button()
        assert screen.symbol() == self._symbols[menu.icon]
        assert button.image().isTemplate()
        assert button.image().accessibilityDescription() == "agtmux"
        assert button.title() == (f" {menu.title}" if menu.title else "")
        assert button.toolTip() == button.accessibilityLabel() == menu.description
        # Collected or taken away, nobody would hear that the menu is opened.
        assert item.menu().delegate() is not None

    def left_over(self) -> int:
        """Items that are on the screen no longer, and kept by somebody."""
        gc.collect()
        return len(set(self._ever) - set(self._natives.values()))


def walk(world, renderer, count: int, seed: str, hand: Callable[[Callable[[], object]], object]) -> str:
    """As the app does it: its thread builds each menu and hands it over with `hand`. What is to be told of it."""
    watcher = Watcher(world, renderer)
    room = threading.Semaphore(AHEAD)
    is_over = threading.Event()
    failed: list[BaseException] = []
    sizes: set[int] = set()

    def compare(number: int, menu: Menu) -> None:
        try:
            watcher.compare(menu)
        except AssertionError as error:
            error.add_note(f"snapshot {number}, AGTMUX_TEST_SEED={seed}")
            raise
        room.release()

    def work() -> None:
        try:
            for number, moment in enumerate(islice(moments(random.Random(seed)), count)):
                menu = moment.menu()
                sizes.add(len(moment.snapshot.panes))
                room.acquire()
                if is_over.is_set():
                    return
                hand(lambda menu=menu: renderer.show(menu))
                world.loop.post(lambda number=number, menu=menu: compare(number, menu))
        except BaseException as error:
            failed.append(error)

    def script() -> None:
        worker = threading.Thread(target=work, name="agtmux-follow")
        worker.start()
        try:
            world.loop.until(lambda: bool(failed) or watcher.compared == count, limit=3600.0)
        finally:
            is_over.set()
            room.release()
            worker.join()
        for error in failed:
            raise error
        assert watcher.left_over() == 0

    began = time.monotonic()
    world.script = script
    renderer.run()
    return (
        f"{count} snapshots of {min(sizes)} to {max(sizes)} panes, {watcher.kept} items kept in place, "
        f"at most {watcher.largest} in the menu and in rumps' table, {time.monotonic() - began:.0f} s"
    )


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_the_screen_shows_what_the_model_says_after_every_snapshot(world, renderer, count):
    print(walk(world, renderer, count, any_seed(), renderer.call))


def test_a_menu_that_is_drawn_by_the_apps_own_thread_is_noticed(world, renderer):
    """The check that the walk relies on."""
    from standin import ObjCError

    with pytest.raises(ObjCError, match="off the main thread"):
        walk(world, renderer, 3, any_seed(), lambda function: function())
    assert world.offences
    world.offences.clear()


# The texts that all renderers share


class Line(NamedTuple):
    """What both a text and NSMenu can say of an item. A rule has no title."""

    depth: int
    title: str | None = None
    is_enabled: bool = False
    is_ticked: bool = False
    is_alternate: bool = False


def written(line: str) -> Line:
    """As `AgtmuxBar.text` writes it. To NSMenu a header is an item that cannot be chosen, and what is not ticked is
    like what never is."""
    text = line.lstrip(" ")
    depth = (len(line) - len(text) - 2) // 4
    if text == "───":
        return Line(depth)
    is_header, text = text.startswith("── "), text.removeprefix("── ")
    is_off = text.startswith("(") and text.endswith(")")
    text = text[1:-1] if is_off else text
    is_alternate, text = text.startswith("⌥ "), text.removeprefix("⌥ ")
    is_ticked, text = text.startswith("☑ "), text.removeprefix("☑ ").removeprefix("☐ ")
    return Line(depth, text, not is_header and not is_off, is_ticked, is_alternate)


def lines(rows: Sequence[screen.Row], depth: int = 0) -> Iterator[Line]:
    for row in rows:
        yield Line(depth, row.title, row.is_enabled, row.is_ticked, row.is_alternate)
        yield from lines(row.below or (), depth + 1)


@pytest.mark.parametrize("name", menus())
def test_the_screen_shows_what_is_written_down(world, renderer, name):
    from AgtmuxBar.mac.status import SYMBOLS

    head, *rest = (GOLDEN / f"{name}.txt").read_text("utf-8").splitlines()
    icon, _, title = head.removeprefix("[").partition("]")

    def script() -> None:
        worker = threading.Thread(target=lambda: renderer.call(lambda: renderer.show(menus()[name])))
        worker.start()
        worker.join()
        world.loop.drain()
        assert (screen.symbol(), screen.status_item().button().title()) == (SYMBOLS[icon], title)
        shown = screen.drawn(renderer._rumps.menu, renderer.chosen)
        assert list(lines(shown)) == [written(line) for line in rest]

    world.script = script
    renderer.run()
