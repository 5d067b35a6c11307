"""The whole face over the stand-in: real rumps, the status item, the timer, other threads, and the end."""

import gc
import os
import signal
import threading

import pytest
from screen import status_item

from AgtmuxBar.tree import Action, Item, Menu

MENU = Menu("2", "waiting", "2 agents wait", (Item("a", "claude", glyph="!", action=Action("attach", {"ref": "r"})),))


@pytest.fixture
def renderer(world):
    from AgtmuxBar.mac.rendering import MacRenderer

    chosen = []
    made = MacRenderer(chosen.append)
    made.chosen = chosen
    return made


def run(world, renderer, script, **hooks):
    world.script = script
    renderer.run(**hooks)


def test_the_first_menu_is_there_when_the_app_is(world, renderer):
    renderer.show(MENU)

    def script():
        button = status_item().button()
        assert button.title() == " 2"
        assert button.image()._values["source"] == "symbol:exclamationmark.bubble.fill"
        assert button.image().isTemplate()
        assert button.accessibilityLabel() == "2 agents wait"
        assert [item.title() for item in status_item().menu().itemArray()] == ["! claude"]

    run(world, renderer, script)


def test_a_symbol_that_macos_lacks_is_drawn(world, renderer):
    from AgtmuxBar.mac.status import SYMBOLS

    world.missing_symbols |= set(SYMBOLS.values())

    def script():
        seen = set()
        for icon in SYMBOLS:
            renderer.show(Menu("", icon, icon))
            image = status_item().button().image()
            assert image.isTemplate() and image.size() == (18.0, 18.0)
            seen.add(image._values["source"])
        assert len(seen) == len(SYMBOLS)
        assert status_item().button().title() == ""

    run(world, renderer, script)


def test_it_never_comes_to_the_front_by_itself(world, renderer):
    from AppKit import NSApplication

    def script():
        renderer.show(MENU)
        assert ("NSApplication", "activateIgnoringOtherApps_") not in world.changes
        assert NSApplication.sharedApplication().activationPolicy() == 1
        world.alert_answers.append(1000)
        renderer.tell("title", "text 100 %")
        assert ("NSApplication", "activateIgnoringOtherApps_") in world.changes
        assert world.alerts[0].informativeText() == "text 100 %"

    run(world, renderer, script)


def test_what_another_thread_wants_drawn_is_drawn_on_the_main_one(world, renderer):
    drawn = []

    def script():
        def work():
            for number in range(50):
                menu = Menu(str(number), "running", "", (Item("a", str(number)),))
                renderer.call(lambda menu=menu: (renderer.show(menu), drawn.append(threading.current_thread())))

        worker = threading.Thread(target=work)
        worker.start()
        world.loop.until(lambda: len(drawn) == 50)
        worker.join()
        assert set(drawn) == {world.main_thread}
        assert [item.title() for item in status_item().menu().itemArray()] == ["49"]

    run(world, renderer, script)


def test_drawing_off_the_main_thread_is_caught_by_the_stand_in(world, renderer):
    """The check that all others rely on."""
    from standin import ObjCError

    failed = []

    def script():
        def work():
            try:
                renderer.show(MENU)
            except ObjCError as error:
                failed.append(str(error))

        worker = threading.Thread(target=work)
        worker.start()
        worker.join()

    run(world, renderer, script)
    assert "off the main thread" in failed[0]
    world.offences.clear()


def test_opening_the_menu_waking_and_quitting_are_heard_of(world, renderer):
    from AppKit import NSWorkspace, NSWorkspaceDidWakeNotification

    heard = []

    def script():
        # Whatever Cocoa keeps weakly and nobody else keeps is gone now.
        gc.collect()
        menu = status_item().menu()
        menu.delegate().menuWillOpen_(menu)
        NSWorkspace.sharedWorkspace().notificationCenter().postNotificationName_object_(
            NSWorkspaceDidWakeNotification, None
        )
        assert heard == ["started", "opened", "woken"]
        renderer.end()

    run(
        world,
        renderer,
        script,
        started=lambda: heard.append("started"),
        opened=lambda: heard.append("opened"),
        woken=lambda: heard.append("woken"),
        ended=lambda: heard.append("ended"),
    )
    assert heard == ["started", "opened", "woken", "ended"]
    assert world.loop.is_stopped


def test_handlers_do_not_outlive_the_run(world, renderer):
    import rumps

    run(world, renderer, None)
    assert not rumps.events.on_wake.callbacks
    assert not rumps.events.before_quit.callbacks


def test_a_signal_ends_it_even_while_the_menu_is_open(world, renderer):
    ended = []

    def script():
        world.loop.mode = "NSEventTrackingRunLoopMode"
        os.kill(os.getpid(), signal.SIGTERM)
        world.loop.advance(3)
        assert world.loop.is_stopped

    before = signal.getsignal(signal.SIGTERM)
    run(world, renderer, script, ended=lambda: ended.append(True))
    assert ended == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_timer_beats_while_the_menu_is_open_and_rumps_own_would_not(world, renderer):
    import rumps

    from AgtmuxBar.mac.rendering import _Beat

    beats, rumps_beats = [], []

    def script():
        mine = _Beat(1.0, lambda: beats.append(True))
        theirs = rumps.Timer(lambda _: rumps_beats.append(True), 1.0)
        theirs.start()
        world.loop.mode = "NSEventTrackingRunLoopMode"
        gc.collect()
        world.loop.advance(10)
        mine.stop()
        theirs.stop()
        assert len(beats) == 10
        assert not rumps_beats
        world.loop.advance(10)
        assert len(beats) == 10

    run(world, renderer, script)


def test_what_fails_on_the_main_thread_is_logged_and_the_next_is_drawn(world, renderer, caplog):
    def script():
        renderer.call(lambda: 1 / 0)
        renderer.call(lambda: renderer.show(MENU))
        world.loop.drain()
        assert status_item().button().title() == " 2"

    run(world, renderer, script)
    assert "ZeroDivisionError" in caplog.text


def test_an_item_that_is_chosen_reaches_the_app(world, renderer):
    def script():
        renderer.show(MENU)
        native = status_item().menu().itemArray()[0]
        native.target().callback_(native)

    run(world, renderer, script)
    assert renderer.chosen == [Action("attach", {"ref": "r"})]


def test_no_folder_is_made_in_the_library(world, renderer):
    """The stand-in refuses to name one, as rumps' own start would ask for."""
    import rumps
    from standin import ObjCError

    with pytest.raises(ObjCError, match="Application Support"):
        rumps.App("agtmux")
    world.offences.clear()
    run(world, renderer, None)


def test_an_answer_that_came_under_the_pointer_is_not_taken(world, renderer):
    approve = Action("approve", {"state_version": "2"})

    def script():
        menu = status_item().menu()
        renderer.show(Menu("1", "waiting", "", (Item("approve 1", "Approve once", action=approve),)))
        first = menu.itemArray()[0]
        first.target().callback_(first)
        assert renderer.chosen == [approve]
        menu.delegate().menuWillOpen_(menu)
        # Another question, in the place of the one that was read.
        renderer.show(
            Menu(
                "1",
                "waiting",
                "",
                (Item("approve 2", "Approve once", action=approve), Item("a", "x", action=Action("attach"))),
            )
        )
        answer, attach = menu.itemArray()
        world.alert_answers.append(1000)
        answer.target().callback_(answer)
        assert renderer.chosen == [approve]
        assert world.alerts[0].messageText() == "Not answered"
        # A jump to the wrong place harms nobody.
        attach.target().callback_(attach)
        assert renderer.chosen[1:] == [Action("attach")]

    run(world, renderer, script)


def test_what_is_on_the_screen_is_withdrawn_at_the_end(world, renderer):
    from UserNotifications import UNUserNotificationCenter

    from AgtmuxBar.notify import Notification

    def script():
        world.loop.drain()
        renderer.notify(Notification("k", "t", "p", "b", Action("attach")))
        delivered = UNUserNotificationCenter.currentNotificationCenter()._values["delivered"]
        assert list(delivered) == ["k"]
        renderer.end()
        assert not delivered

    run(world, renderer, script)
