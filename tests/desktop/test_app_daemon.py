"""The app while its daemon ends, comes back, or cannot start."""

import os
import signal
import time

from AgtmuxBar import app as app_module
from AgtmuxBar.app import App
from desktop.running import Desktop, Screen, asks, report
from support.home import PATIENCE, event, wait_until


def test_it_gets_over_a_daemon_that_is_killed(home, started):
    """And tells nothing twice: what waited before waits still."""
    _, screen, _ = started
    asks(home)
    wait_until(lambda: screen.shown, "a notification")
    first = dict(screen.shown)
    os.kill(home.answering_pid(), signal.SIGKILL)
    wait_until(lambda: screen.menu.icon == "down", "the news of its end")
    assert screen.shown == first
    home.start()
    wait_until(lambda: screen.menu.icon == "waiting", "the count again")
    assert screen.shown == first


def test_what_fails_while_the_daemon_is_away_does_not_end_it(home, started):
    app, screen, _ = started
    home.run("down", "--headless")
    wait_until(lambda: screen.menu.icon == "down", "the news of its end")
    failed = []

    def fail():
        failed.append(True)
        raise RuntimeError("can't start new thread")

    # While the stream is waited for, and while it is given up for a moment.
    for number in (1, 2):
        app.hand(fail)
        wait_until(lambda number=number: len(failed) == number, "the fault")
    home.start()
    wait_until(lambda: screen.menu.icon == "idle", "the next daemon's news")


def test_what_fails_again_and_again_keeps_no_processor_busy(home, monkeypatch):
    monkeypatch.setattr(app_module, "_RETRY", 0.2)
    home.configure("nonsense = [")
    screen, failed = Screen(), []

    def fail(function):
        failed.append(time.monotonic())
        raise RuntimeError("no such display")

    call, screen.call = screen.call, fail
    app = App(screen, Desktop())
    app.start()
    try:
        wait_until(lambda: len(failed) >= 10, "a fault at every turn")
        # Twice in each turn: before the daemon is asked, and while it is away.
        assert failed[9] - failed[0] > 4 * 0.2
        screen.call = call
        wait_until(lambda: screen.menu is not None and screen.menu.icon == "down", "what it has to show")
    finally:
        app.stop()


def test_a_daemon_that_is_replaced_is_not_missed(home, started):
    """A restart takes less time than it takes to call a daemon gone; on this machine it may take longer."""
    app, screen, _ = started
    app._grace = PATIENCE
    icons = []
    show = screen.show
    screen.show = lambda menu: (icons.append(menu.icon), show(menu))
    home.run("down", "--headless")
    home.run("up", "--headless")
    report(home, event("%0", "state.running"))
    wait_until(lambda: screen.menu.icon == "running", "the next daemon's news")
    assert "down" not in icons


def test_an_idle_app_draws_nothing(home, started):
    app, _, _ = started
    # What is asked for beside the stream comes a moment later, and then not for a minute.
    wait_until(lambda: app._next() - time.monotonic() > 30, "a time without anything to do")
    assert app._redraw_at == float("inf")


def test_quitting_ends_it(home, started):
    app, screen, _ = started
    app.choose(screen.item("quit").action)
    wait_until(lambda: screen.is_ended, "the end")
    assert home.answering_pid(), "the daemon stays"


def test_it_starts_a_daemon_as_every_front_end_does(home):
    screen = Screen()
    app = App(screen, Desktop())
    app.start()
    try:
        wait_until(lambda: screen.menu is not None and screen.menu.icon == "idle", "a daemon")
    finally:
        app.stop()


def test_a_daemon_that_cannot_start_is_told_with_the_reason(home):
    home.configure("nonsense = [")
    screen = Screen()
    app = App(screen, Desktop())
    app.start()
    try:
        wait_until(lambda: screen.item("trouble") is not None, "the reason")
        assert "config.toml" in screen.item("trouble").hint
        assert screen.menu.icon == "down"
    finally:
        app.stop()
