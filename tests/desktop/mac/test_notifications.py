"""Notifications: with buttons where macOS lets us, withdrawn, and plain elsewhere."""

import gc
import threading
from dataclasses import replace

import pytest

from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action

APPROVE = Action("approve", {"ref": "r", "state_version": "7"})
NOTE = Notification(
    "rt1",
    "claude asks for approval",
    "host-work",
    'make deploy"; say "x\ud83d',
    Action("attach", {"ref": "r"}),
    (("Attach", Action("attach", {"ref": "r"})), ("Approve once", APPROVE), ("Deny", Action("deny", {"ref": "r"}))),
)
SILENT = replace(NOTE, is_silent=True)


@pytest.fixture
def notifier(world, tmp_path):
    from AgtmuxBar.mac.notifications import Notifier

    chosen = []
    # A program that notes each call: its arguments and its standard input, with zero bytes between them.
    osascript = tmp_path / "osascript"
    osascript.write_text(f"""#!/bin/sh
{{ printf '%s\\0' "$@"; cat; }} >'{tmp_path}/call.part'
n=$(ls '{tmp_path}' | grep -c '^call[0-9]')
mv '{tmp_path}/call.part' "{tmp_path}/call$n"
""")
    osascript.chmod(0o700)
    made = Notifier(chosen.append, str(osascript))
    made.chosen, made.folder = chosen, tmp_path
    return made


def center():
    from UserNotifications import UNUserNotificationCenter

    return UNUserNotificationCenter.currentNotificationCenter()


def delivered():
    return center()._values["delivered"]


def test_the_buttons_are_what_the_app_says(world, notifier):
    import UserNotifications as UN

    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    content = delivered()["rt1"].content()
    assert (content.title(), content.subtitle()) == ("claude asks for approval", "host-work")
    category = center()._values["categories"][content.categoryIdentifier()]
    assert [(each.identifier(), each.title(), each.options()) for each in category.actions()] == [
        ("attach", "Attach", UN.UNNotificationActionOptionForeground),
        ("approve", "Approve once", UN.UNNotificationActionOptionAuthenticationRequired),
        ("deny", "Deny", UN.UNNotificationActionOptionDestructive),
    ]


@pytest.mark.parametrize(
    ("pressed", "does"),
    [
        ("approve", APPROVE),
        ("com.apple.UNNotificationDefaultActionIdentifier", Action("attach", {"ref": "r"})),
        ("com.apple.UNNotificationDismissActionIdentifier", None),
    ],
)
def test_a_button_does_what_it_said_on_the_main_thread(world, notifier, pressed, does):
    from UserNotifications import presses

    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    gc.collect()
    presses(center(), "rt1", pressed)
    # Not on the thread that macOS calls us on.
    assert notifier.chosen == []
    world.loop.drain()
    assert notifier.chosen == ([does] if does else [])


def test_a_button_of_an_earlier_run_still_works(world, notifier):
    from UserNotifications import presses

    from AgtmuxBar.mac.notifications import Notifier

    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    later = []
    again = Notifier(later.append)
    again.start()
    presses(center(), "rt1", "approve")
    world.loop.drain()
    assert later == [APPROVE]


def test_what_is_answered_is_withdrawn(world, notifier):
    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    notifier.withdraw("rt1")
    assert not delivered()


def test_what_comes_before_macos_has_decided_waits_and_can_be_withdrawn(world, notifier):
    notifier.show(NOTE)
    notifier.show(replace(NOTE, key="rt2"))
    notifier.withdraw("rt1")
    notifier.start()
    assert not delivered()
    world.loop.drain()
    assert list(delivered()) == ["rt2"]


def test_a_silent_one_takes_the_place_without_sound_or_banner(world, notifier):
    import UserNotifications as UN

    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    assert delivered()["rt1"].content().sound() is not None
    notifier.show(replace(NOTE, is_silent=True))
    world.loop.drain()
    content = delivered()["rt1"].content()
    assert content.sound() is None
    assert content.interruptionLevel() == UN.UNNotificationInterruptionLevelPassive


def test_what_the_user_has_put_away_is_not_brought_back_by_other_buttons(world, notifier):
    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    del delivered()["rt1"]
    notifier.show(SILENT)
    world.loop.drain()
    assert not delivered()


@pytest.mark.parametrize("meanwhile", ["withdrawn", "all withdrawn", "told anew", "renewed"])
def test_what_happens_while_macos_is_asked_what_is_there_holds(world, notifier, meanwhile):
    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    notifier.show(SILENT)
    match meanwhile:
        case "withdrawn":
            notifier.withdraw("rt1")
        case "all withdrawn":
            notifier.withdraw_all()
        case "told anew":
            notifier.show(replace(NOTE, body="rm -rf build"))
        case "renewed":
            notifier.show(replace(SILENT, body="in other words"))
    world.loop.drain()
    bodies = [each.content().body() for each in delivered().values()]
    assert bodies == {"told anew": ["rm -rf build"], "renewed": ["in other words"]}.get(meanwhile, [])


def test_news_that_wait_for_macos_stay_news_when_their_buttons_change(world, notifier):
    notifier.show(NOTE)
    notifier.show(SILENT)
    notifier.start()
    world.loop.drain()
    assert delivered()["rt1"].content().sound() is not None


def test_what_one_that_was_killed_has_left_is_told_at_the_start(world, notifier):
    from AgtmuxBar.mac.notifications import Notifier

    notifier.start()
    world.loop.drain()
    attach = Action("attach", {"ref": "r", "fingerprint": "f00d"})
    notifier.show(replace(NOTE, default=attach))
    notifier.show(replace(NOTE, key="letter 1", default=Action("read"), buttons=(("Read", Action("read")),)))
    notifier.show(replace(NOTE, key="old"))
    delivered()["old"].content().setUserInfo_({"actions": "{"})
    left = []
    again = Notifier(lambda _: None)
    again.start(left.append)
    # On the main thread, like everything.
    assert left == []
    world.loop.drain()
    assert left == [{"rt1": "f00d", "letter 1": "", "old": ""}]


def test_outside_a_bundle_nothing_is_asked_for(world, notifier):
    world.bundle_identifier = None
    left = []
    notifier.start(left.append)
    world.loop.drain()
    assert left == []


def test_the_banner_is_shown_while_the_app_is_in_front(world, notifier):
    from UserNotifications import UNNotification

    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    notification = UNNotification.alloc().init()
    notification._values["request"] = delivered()["rt1"]
    options = []
    center().delegate().userNotificationCenter_willPresentNotification_withCompletionHandler_(
        center(), notification, options.append
    )
    assert options == [2 | 8 | 16]


def plainly(notifier, world, count):
    """The arguments and the script of the last of so many calls."""
    call = notifier.folder / f"call{count - 1}"
    world.loop.until(call.exists)
    *argv, script = call.read_text().split("\0")
    return argv, script


@pytest.mark.parametrize("lacking", ["identifier", "signature"])
def test_outside_a_signed_bundle_osascript_is_told_by_arguments_and_the_first_says_so(world, notifier, lacking):
    if lacking == "identifier":
        world.bundle_identifier = None
    else:
        world.is_signed = False
    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    argv, script = plainly(notifier, world, 1)
    assert argv[:3] == ["-", "claude asks for approval", "host-work"]
    assert argv[3].startswith('make deploy"; say "x?\n') and "Without buttons" in argv[3]
    assert "deploy" not in script and "on run argv" in script
    notifier.show(NOTE)
    assert "Without buttons" not in plainly(notifier, world, 2)[0][3]
    # There is nothing to take back, and asking for it must not end the process.
    notifier.withdraw("rt1")


def test_a_users_no_is_not_gone_around(world, notifier):
    world.may_notify = False
    notifier.start()
    world.loop.drain()
    notifier.show(NOTE)
    assert not delivered()
    for thread in threading.enumerate():
        if thread.name == "osascript":
            thread.join()
    assert not list(notifier.folder.glob("call*"))


def test_a_notification_of_another_version_is_left_alone(world, notifier, caplog):
    from AgtmuxBar.mac.notifications import _chosen

    for info in (None, {}, {"actions": "{"}, {"actions": "{}"}, {"actions": '{"approve": 3}'}):
        assert _chosen("approve", info) is None
