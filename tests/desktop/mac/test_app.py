"""The whole app but for Cocoa: a real daemon, a real tmux, the app's own threads, real rumps."""

import os
import subprocess
import sys
import threading

import pytest

from support.home import event, home_in, wait_until

LATE = 20.0


@pytest.fixture
def home(short_tmp, monkeypatch):
    with home_in(short_tmp) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def titles(menu):
    return [item.title() for item in menu.itemArray()]


def find(menu, text):
    for item in menu.itemArray():
        if text in item.title():
            return item
        if item.hasSubmenu() and (found := find(item.submenu(), text)) is not None:
            return found
    return None


def status_item():
    from AppKit import NSStatusBar

    (item,) = NSStatusBar.systemStatusBar()._values["items"]
    return item


def delivered():
    from UserNotifications import UNUserNotificationCenter

    return UNUserNotificationCenter.currentNotificationCenter()._values["delivered"]


def choose(text):
    item = find(status_item().menu(), text)
    assert item.isEnabled()
    item.target().callback_(item)


def run(world, script):
    from AgtmuxBar.mac.__main__ import run

    # The first window: not now.
    world.alert_answers.append(1001)
    world.script = script
    run(None)
    assert not world.offences


def test_a_wait_is_in_the_bar_in_a_notification_and_gone_when_answered(world, home):
    pane = home.pane()
    home.start()
    wait_until(lambda: pane in home.panes(), "the pane")

    def script():
        button = status_item().button()
        # What waited before the app came is no news, so it has to have seen the pane.
        world.loop.until(lambda: find(status_item().menu(), "claude") is not None, LATE)
        home.ask("POST", "/v1/events", event(pane, "state.waiting_approval"))
        world.loop.until(lambda: button.title() == " 1", LATE)
        world.loop.until(lambda: len(delivered()) == 1, LATE)
        (request,) = delivered().values()
        assert "approval" in request.content().title()
        home.ask("POST", "/v1/events", event(pane, "state.running"))
        world.loop.until(lambda: button.title() == "" and not delivered(), LATE)
        choose("Quit agtmux")
        world.loop.until(lambda: world.loop.is_stopped, LATE)

    run(world, script)
    assert len(world.alerts) == 1
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("agtmux-follow")]
    assert not left


def test_a_daemon_that_dies_is_shown_and_can_be_started_from_the_menu(world, home):
    daemon = home.start()

    def script():
        button = status_item().button()

        def is_up():
            return button.image()._values["source"] == "symbol:terminal" and find(status_item().menu(), "Restart")

        world.loop.until(is_up, LATE)
        home.end(daemon)
        world.loop.until(lambda: find(status_item().menu(), "Start the daemon") is not None, LATE)
        assert button.image()._values["source"] == "symbol:bolt.slash"
        choose("Start the daemon")
        world.loop.until(is_up, LATE)
        assert home.answering_pid() not in (None, daemon.pid)
        # ⌥: the daemon too.
        choose("Quit and stop the daemon")
        world.loop.until(lambda: world.loop.is_stopped, LATE)

    run(world, script)
    wait_until(lambda: home.lock_holder() is None, "the end of the daemon")


def test_the_app_finds_tmux_where_finder_has_started_it(world, home, monkeypatch, capsys):
    from AgtmuxBar.mac.__main__ import main

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("RESOURCEPATH", "/x")
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.setenv(name, "C")
    main(["--selftest"])
    assert "/opt/homebrew/bin" in os.environ["PATH"].split(":")
    assert (os.environ["LANG"], os.environ.get("LC_ALL")) == ("en_US.UTF-8", None)
    assert "RESOURCEPATH" not in os.environ
    assert "environment of children: of py2app's: none" in capsys.readouterr().out


def test_there_is_one_app_a_user(world, home, capsys):
    from AgtmuxBar import single
    from AgtmuxBar.mac.__main__ import main

    home.start()
    world.alert_answers.append(1001)
    world.script = world.loop.drain
    assert main([]) == 0
    with single.only_one() as is_ours:
        assert is_ours
        assert main([]) == 1
    assert "has one already" in capsys.readouterr().err


def test_a_command_starts_the_bundle_behind_what_the_user_types_into(home, tmp_path):
    from AgtmuxBar import single
    from AgtmuxBar.mac import starting

    note, opens, fails = tmp_path / "note", tmp_path / "opens", tmp_path / "fails"
    # Has the lock, as the app would.
    code = "from AgtmuxBar import single; c = single.only_one(); print(c.__enter__(), flush=True); input()"
    opens.write_text(f'#!/bin/sh\necho "$@" >{note}\n')
    fails.write_text("#!/bin/sh\nexit 1\n")
    for program in (opens, fails):
        program.chmod(0o755)
    home.state.mkdir(mode=0o700, exist_ok=True)
    assert starting.start(str(fails)) is False
    child = home.spawn(sys.executable, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == "True\n"
    assert single.is_running()
    # It is there already.
    assert starting.start(str(opens)) is True
    assert not note.exists()
    child.communicate("\n", timeout=20)
    assert starting.start(str(opens), limit=0.1) is True
    assert note.read_text() == "-g -b dev.agtmux.AgtmuxBar\n"
