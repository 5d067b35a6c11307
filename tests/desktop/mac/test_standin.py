"""The stand-in is as strict as it says: what a Mac would punish is an error here, and is not forgotten when caught."""

import gc
import threading

import pytest


@pytest.fixture
def offended(world):
    """What was done wrong on purpose, which the world would complain of at its end."""
    yield world.offences
    assert world.offences, "the stand-in did not mind"
    world.offences.clear()


def test_an_item_is_in_one_menu(world, offended):
    from AppKit import NSMenu, NSMenuItem
    from standin import ObjCError

    item = NSMenuItem.alloc().initWithTitle_action_keyEquivalent_("x", None, "")
    NSMenu.alloc().init().addItem_(item)
    with pytest.raises(ObjCError, match="already is in another menu"):
        NSMenu.alloc().init().addItem_(item)


def test_a_selector_that_nobody_has_is_unknown(world):
    from AppKit import NSMenuItem

    item = NSMenuItem.alloc().init()
    with pytest.raises(AttributeError, match="no such selector"):
        item.setTittle_("x")


def test_a_selector_takes_as_many_arguments_as_it_has_colons(world):
    from AppKit import NSMenuItem

    with pytest.raises(TypeError, match="Need 1 arguments, got 0"):
        NSMenuItem.alloc().init().setTitle_()


def test_a_method_of_ours_has_the_arguments_of_its_selector(world):
    from Foundation import NSObject
    from standin import BadPrototypeError

    with pytest.raises(BadPrototypeError, match="expects 1 arguments"):

        class Wrong(NSObject):
            def menuWillOpen_(self):
                pass


def test_nothing_can_be_hung_on_what_is_cocoas(world):
    from AppKit import NSMenuItem

    with pytest.raises(AttributeError):
        NSMenuItem.alloc().init().ours = 1


def test_init_comes_first(world, offended):
    from AppKit import NSMenu
    from standin import ObjCError

    with pytest.raises(ObjCError, match="before init"):
        NSMenu.alloc().addItem_(None)


def test_a_title_is_a_string(world, offended):
    from AppKit import NSMenuItem
    from standin import ObjCError

    with pytest.raises(ObjCError, match="no string"):
        NSMenuItem.alloc().init().setTitle_(None)


def test_reading_off_the_main_thread_is_an_offence_too(world, offended):
    from AppKit import NSMenu
    from standin import ObjCError

    menu = NSMenu.alloc().init()
    failed = []

    def work():
        try:
            menu.itemArray()
        except ObjCError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed


@pytest.mark.parametrize("kind", ["NSMenu", "UNUserNotificationCenter", "NSApplication"])
def test_a_delegate_that_nobody_keeps_is_collected(world, offended, kind):
    from AppKit import NSApplication, NSMenu
    from Foundation import NSObject
    from standin import ObjCError
    from UserNotifications import UNUserNotificationCenter

    owner = {
        "NSMenu": NSMenu.alloc().init,
        "UNUserNotificationCenter": UNUserNotificationCenter.currentNotificationCenter,
        "NSApplication": NSApplication.sharedApplication,
    }[kind]()
    owner.setDelegate_(NSObject.alloc().init())
    gc.collect()
    with pytest.raises(ObjCError, match="was collected"):
        owner.delegate()


def test_a_timer_off_the_main_thread_would_never_fire(world, offended):
    from Foundation import NSRunLoop
    from standin import ObjCError

    failed = []

    def work():
        try:
            NSRunLoop.currentRunLoop().addTimer_forMode_(None, "kCFRunLoopCommonModes")
        except ObjCError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "never runs" in str(failed[0])


def test_an_offence_that_was_swallowed_still_fails_the_test(cocoa_modules):
    import contextlib

    from AppKit import NSMenuItem
    from standin import ObjCError, new_world

    with pytest.raises(AssertionError, match="used wrongly"), new_world(), contextlib.suppress(ObjCError):
        NSMenuItem.alloc().init().setTitle_(3)
