"""The app's core with a real daemon: what it shows, what it does, and how it gets over a daemon that goes."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agtmux import paths
from AgtmuxBar.app import App
from AgtmuxBar.settings import Settings, Surroundings, read_settings
from AgtmuxBar.tree import Action, Menu
from support.home import Home, event, home_in, wait_until


class Screen:
    """A renderer that keeps what it is told, on a thread of its own."""

    def __init__(self):
        self.menu: Menu | None = None
        self.shown = {}
        self.told = []
        self.menus = 0
        self.is_ended = False
        self.threads = set()
        self._lock = threading.Lock()

    def call(self, function):
        # One at a time, as a real one would.
        with self._lock:
            self.threads.add(threading.current_thread().name)
            function()

    def show(self, menu):
        assert menu != self.menu
        self.menu = menu
        self.menus += 1

    def notify(self, notification):
        self.shown[notification.key] = notification

    def withdraw(self, key):
        del self.shown[key]

    def tell(self, title, text):
        self.told.append((title, text))

    def end(self):
        self.is_ended = True

    def item(self, start: str):
        return next((item for item in self.menu.walk() if item.key.startswith(start)), None) if self.menu else None


class Desktop:
    def __init__(self):
        self.opened = []
        self.copied = []
        self.fronted = ()

    def surroundings(self):
        return Surroundings()

    def command(self):
        return ["agtmux"]

    def open_terminal(self, argv, settings, *, stays=False):
        self.opened.append(list(argv))

    def copy(self, text):
        self.copied.append(text)

    def looked_at(self, targets):
        return self.fronted


@pytest.fixture
def home(short_tmp: Path, monkeypatch) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        for name in ("AGTMUX_SOCKET", "XDG_RUNTIME_DIR"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "TMUX_TMPDIR"):
            monkeypatch.setenv(name, made.env[name])
        yield made


@pytest.fixture
def started(home: Home) -> Iterator[tuple[App, Screen, Desktop]]:
    home.pane()
    home.start()
    screen, desktop = Screen(), Desktop()
    app = App(screen, desktop)
    app.start()
    wait_until(lambda: screen.item("pane ") is not None, "the pane of an agent in the menu")
    yield app, screen, desktop
    app.stop()


def report(home: Home, envelope: dict) -> None:
    assert home.ask("POST", "/v1/events", envelope).json["status"] == "applied"


def asks(home: Home, what: str = "make deploy") -> None:
    payload = {"reason_code": "gate", "attention": {"kind": "approval", "summary": what}}
    report(home, event("%0", "state.waiting_approval", raw_payload=payload))


def test_a_wait_is_counted_and_shown(home, started):
    _, screen, _ = started
    asks(home)
    wait_until(lambda: screen.menu.title == "1", "the count")
    assert "make deploy" in screen.item("wait ").label


def test_a_wait_is_told_once_and_taken_back_when_it_is_over(home, started):
    _, screen, _ = started
    asks(home)
    wait_until(lambda: screen.shown, "a notification")
    (told,) = screen.shown.values()
    assert told.body == "make deploy"
    report(home, event("%0", "state.running"))
    wait_until(lambda: not screen.shown, "its end")


def test_nothing_is_told_of_a_pane_that_is_looked_at(home, started):
    app, screen, desktop = started
    desktop.fronted = {("host", "%0")}
    asks(home)
    wait_until(lambda: any(told.is_settled for told in app._memory.values()), "what would be shown, judged")
    assert screen.menu.title == "1" and not screen.shown


def test_attach_opens_a_terminal_with_the_daemons_words(home, started):
    app, screen, desktop = started
    app.choose(screen.item("pane ").action)
    wait_until(lambda: desktop.opened, "a terminal")
    assert "attach-session" in " ".join(desktop.opened[0])


def test_the_attach_command_is_copied(home, started):
    app, screen, desktop = started
    asks(home)
    wait_until(lambda: screen.item("wait copy"), "the item")
    app.choose(screen.item("wait copy").action)
    wait_until(lambda: desktop.copied, "what is copied")
    assert "attach-session" in desktop.copied[0]


def test_an_answer_to_what_is_no_longer_asked_is_refused_and_told(home, started):
    app, screen, _ = started
    asks(home)
    wait_until(lambda: screen.item("approve "), "the item")
    shown = screen.item("approve ").action
    report(home, event("%0", "state.running"))
    asks(home, "rm -rf /")
    wait_until(lambda: "rm -rf" in getattr(screen.item("wait "), "label", ""), "the next question")
    app.choose(shown)
    wait_until(lambda: screen.told, "the refusal")
    assert screen.told[0][0] == "Not approved"
    assert [item["result_code"] for item in home.ask("GET", "/v1/actions").json["items"]] in ([], ["refused"])


def test_a_snooze_is_kept_and_a_new_question_breaks_it(home, started):
    app, screen, _ = started
    asks(home)
    wait_until(lambda: screen.item("snooze 1h"), "the item")
    app.choose(screen.item("snooze 1h").action)
    wait_until(lambda: screen.menu.title == "" and screen.item("snoozed pane"), "the snooze")
    assert read_settings().snoozed
    assert Path(paths.state_directory(), "bar.json").stat().st_mode & 0o777 == 0o600
    report(home, event("%0", "state.running"))
    asks(home, "another")
    wait_until(lambda: screen.menu.title == "1", "the count")


def test_switches_are_kept(home, started):
    app, screen, _ = started
    app.choose(screen.item("switch has_sound").action)
    app.choose(Action("pause", {"seconds": "3600"}))
    app.choose(Action("terminal", {"name": "kitty"}))
    wait_until(lambda: read_settings().terminal == "kitty" and read_settings().paused_until, "what was chosen")
    wait_until(lambda: not read_settings().has_sound, "what was chosen")
    assert read_settings().paused_until == pytest.approx(time.time() + 3600, abs=30)


def test_a_request_is_shown_whole(home, started):
    app, screen, _ = started
    asks(home)
    wait_until(lambda: screen.item("wait show"), "the item")
    app.choose(screen.item("wait show").action)
    wait_until(lambda: screen.told, "a text")
    assert "make deploy" in screen.told[0][1]


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


def test_a_daemon_that_is_replaced_is_not_missed(home, started):
    """A restart takes less time than it takes to call a daemon gone."""
    _, screen, _ = started
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


@pytest.mark.parametrize("content", ["", "[]", "{", '{"has_sound": 3, "snoozed": {"a": "b"}, "paused_until": true}'])
def test_settings_that_cannot_be_read_count_as_not_set(tmp_path, content):
    file = tmp_path / "bar.json"
    file.write_text(content)
    assert read_settings(file) == Settings()


def test_agents_are_told_of_the_bridge_while_the_app_is_there(home: Home) -> None:
    (home.folder / ".claude").mkdir()
    settings = home.folder / ".claude.json"
    before = '{\n  "numStartups": 3\n}\n'
    settings.write_text(before)
    home.pane()
    home.start()
    screen = Screen()
    app = App(screen, Desktop())
    app.start()
    wait_until(lambda: '"agtmux"' in settings.read_text(), "the entry of the bridge")
    wait_until(lambda: screen.item("bridge claude") is not None, "its tick in the menu")
    assert screen.item("bridge claude").is_checked
    app.choose(Action("quit"))
    wait_until(lambda: screen.is_ended, "the end of the app")
    assert settings.read_text() == before
    app.stop()
