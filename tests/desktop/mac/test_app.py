"""The whole app but for Cocoa: a real daemon, a real tmux, the app's own threads, real rumps."""

import os
import subprocess
import sys
import threading

import pytest
from screen import status_item

from support.home import event, home_in, wait_until
from support.puppets import Puppet

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


def test_what_an_app_that_was_killed_has_left_is_taken_back(world, home):
    """At once what is no longer asked, and what is when it is answered."""
    from AgtmuxBar.mac.notifications import Notifier
    from AgtmuxBar.notify import Notification
    from AgtmuxBar.tree import Action

    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    item = puppet.ask("d1", "make deploy")
    killed = Notifier(lambda _: None)
    killed.start()
    world.loop.drain()
    for key, dialog in ((item["runtime_id"], item["attention"]["fingerprint"]), ("gone", "f00d")):
        killed.show(Notification(key, "claude asks", "", "make deploy", Action("attach", {"fingerprint": dialog})))
    assert len(delivered()) == 2

    def script():
        world.loop.until(lambda: list(delivered()) == [item["runtime_id"]], LATE)

        def content():
            return delivered()[item["runtime_id"]].content()

        # Still there, with buttons for what is asked, and without a sound.
        world.loop.until(lambda: content().categoryIdentifier() == "attach approve deny", LATE)
        assert content().sound() is None
        puppet.tell("answer")
        world.loop.until(lambda: not delivered(), LATE)
        choose("Quit agtmux")
        world.loop.until(lambda: world.loop.is_stopped, LATE)

    run(world, script)


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


BEFORE = {".claude.json": '{"numStartups": 3}\n', ".codex/config.toml": 'model = "gpt-5"\n'}


@pytest.fixture
def agents(home):
    """Two that are used here, with settings; a function that reads them."""
    for name, text in BEFORE.items():
        (home.folder / name).parent.mkdir(exist_ok=True)
        (home.folder / name).write_text(text)
    (home.folder / ".claude").mkdir()
    home.start()
    return lambda: {name: (home.folder / name).read_text() for name in BEFORE}


@pytest.fixture
def life(world):
    """Has the app live once, in a world of its own; how many windows it opened."""
    import rumps
    import standin

    from AgtmuxBar.mac.__main__ import run

    def live(bundle, script, *answers):
        rumps.rumps.NSApp._ns_to_py_and_callback.clear()

        def whole():
            script(made.loop.until)
            choose("Quit agtmux")
            made.loop.until(lambda: made.loop.is_stopped, LATE)

        with standin.new_world() as made:
            made.alert_answers += answers
            made.script = whole
            run(bundle)
        return len(made.alerts)

    return live


def test_nothing_is_written_before_the_first_window_is_answered_and_a_no_is_kept(life, agents):
    def untick(alert):
        assert agents() == BEFORE
        boxes = {box.title(): box for box in alert.accessoryView()._values["views"]}
        assert list(boxes) == [
            "Let agents report to agtmux",
            "Let claude see the other agents",
            "Let codex see the other agents",
        ]
        assert "MCP server to ~/.claude.json" in alert.informativeText()
        assert "the same in ~/.codex/config.toml" in alert.informativeText()
        assert "~/.claude/settings.json" in alert.informativeText()
        boxes["Let agents report to agtmux"].setState_(0)
        boxes["Let codex see the other agents"].setState_(0)
        return 1000

    def is_shown_as_chosen():
        claude, codex = (find(status_item().menu(), name) for name in ("claude", "codex"))
        return claude is not None and (claude.state(), codex.state()) == (1, 0)

    def script(until):
        until(is_shown_as_chosen, LATE)
        now = agents()
        assert "agtmux" in now[".claude.json"]
        assert now[".codex/config.toml"] == BEFORE[".codex/config.toml"]

    assert life(None, script, untick) == 1
    assert agents() == BEFORE
    # Again: nobody is asked, and both answers hold.
    assert life(None, script) == 0
    assert agents() == BEFORE


@pytest.mark.parametrize("place", ["not now", "AppTranslocation"])
def test_who_said_not_now_or_runs_a_copy_that_will_be_gone_finds_nothing_changed(life, home, agents, place):
    from AgtmuxBar.mac.bundle import Bundle

    bundle = None if place == "not now" else Bundle(home.folder / place / "d" / "AgtmuxBar.app")
    if bundle is not None:
        # By the one in Applications, so that there is nothing left to ask.
        (home.state / "bar-welcomed").touch()

    def script(until):
        until(lambda: find(status_item().menu(), "claude") is not None, LATE)
        assert agents() == BEFORE
        assert find(status_item().menu(), "claude").state() == 0

    assert life(bundle, script, *([1001] if bundle is None else [])) == (1 if bundle is None else 0)
    assert life(bundle, script) == 0
    assert agents() == BEFORE


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
