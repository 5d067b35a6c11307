"""Notifications over a real session bus, with a server that is started by the first call, is slow, ends and comes."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jeepney", reason="the tray's own library, on Linux alone")

from AgtmuxBar.linux.bus import Bus
from AgtmuxBar.linux.notifications import NAME, Notifications
from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action
from desktop.desk import takes_calls
from support.home import wait_until

NOTE = Notification("rt1", "claude asks for approval", "host-work %1", "make deploy", Action("attach"))


class Server:
    """What was asked of it, and its whims."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def calls(self) -> list[tuple[str, int]]:
        """What, and of which number."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(member, number) for member, _, number in map(json.loads, lines)]

    def open(self) -> set[int]:
        """The numbers of those on the screen."""
        shown: set[int] = set()
        for member, number in self.calls():
            (shown.add if member == "Notify" else shown.discard)(number)
        return shown


@pytest.fixture
def server(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """On a bus that starts it for whoever calls it."""
    made = Server(short_tmp / "notifyd")
    services = short_tmp / "data" / "dbus-1" / "services"
    services.mkdir(parents=True)
    program = Path(__file__).with_name("notifyd.py")
    started = f'"{sys.executable}" "{program}" {made.folder}'
    (services / "n.service").write_text(f"[D-BUS Service]\nName={NAME}\nExec={started}\n")
    address = f"unix:path={short_tmp}/bus"
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    monkeypatch.setenv("XDG_DATA_HOME", str(short_tmp / "data"))
    daemon = subprocess.Popen(["dbus-daemon", "--session", "--nofork", f"--address={address}"])
    try:
        wait_until(lambda: takes_calls(short_tmp / "bus"), "a session bus")
        yield made
    finally:
        (made.folder / "end").touch()
        daemon.terminate()
        daemon.wait(10)


class Shown:
    """The tray's end, on its thread."""

    def __init__(self, bus: Bus, file: Path) -> None:
        self._bus = bus
        self.notifications = Notifications(bus, lambda action: None, file)
        self.owners: list[str] = []

    def do(self, function) -> None:
        done = threading.Event()
        self._bus.hand(lambda: (function(self.notifications), done.set()))
        assert done.wait(10)


@contextmanager
def tray(file: Path) -> Iterator[Shown]:
    """One that comes, and goes without a word."""
    bus = Bus()
    made = Shown(bus, file)
    thread = threading.Thread(target=bus.run)
    thread.start()
    try:
        made.do(lambda notifications: notifications.begin())
        bus.hand(lambda: bus.follow_owner(NAME, made.owners.append))
        wait_until(lambda: made.owners and made.owners[-1], "a server that was started by the first call")
        yield made
    finally:
        bus.end()
        thread.join(10)
        bus.close()


@pytest.fixture
def shown(server: Server, tmp_path: Path) -> Iterator[Shown]:
    tmp_path.chmod(0o700)
    with tray(tmp_path / "shown.json") as made:
        yield made


def test_one_that_starts_the_server_is_shown_and_stays(server: Server, shown: Shown):
    """Servers end when they have had nothing to do for a while; the next call has another one started."""
    (server.folder / "end").touch()
    wait_until(lambda: not shown.owners[-1], "the end of the server")
    (server.folder / "end").unlink()
    shown.do(lambda notifications: notifications.show(NOTE))
    wait_until(server.open, "the notification")
    # Something that is answered after it, by the same server.
    shown.do(lambda notifications: notifications.tell("a", "b"))
    wait_until(lambda: len(server.open()) == 2, "the next")
    wait_until(lambda: all(each.number for each in shown.notifications._shown.values()), "their numbers")
    shown.do(lambda notifications: notifications.tell("c", "d"))
    wait_until(lambda: len(server.calls()) == 3, "one more")
    assert len(server.open()) == 3, "none was taken back"
    shown.do(lambda notifications: notifications.withdraw(NOTE.key))
    wait_until(lambda: len(server.open()) == 2, "its end")


def test_what_changes_before_the_server_has_answered_is_still_one_notification(server: Server, shown: Shown):
    (server.folder / "hold").touch()
    shown.do(lambda notifications: notifications.show(NOTE))
    shown.do(lambda notifications: notifications.show(replace(NOTE, body="make clean", is_silent=True)))
    shown.do(lambda notifications: notifications.show(replace(NOTE, body="make install", is_silent=True)))
    wait_until(lambda: server.calls(), "the first")
    (server.folder / "hold").unlink()
    wait_until(lambda: len(server.calls()) == 2, "the last word on it")
    assert server.open() == {1}
    assert "make install" in (server.folder / "calls").read_text().splitlines()[-1]
    shown.do(lambda notifications: notifications.withdraw(NOTE.key))
    wait_until(lambda: not server.open(), "its end")


def test_one_that_is_taken_back_and_comes_again_leaves_none_behind(server: Server, shown: Shown):
    (server.folder / "hold").touch()
    shown.do(lambda notifications: notifications.show(NOTE))
    wait_until(lambda: server.calls(), "the first")
    shown.do(lambda notifications: notifications.withdraw(NOTE.key))
    shown.do(lambda notifications: notifications.show(NOTE))
    wait_until(lambda: len(server.calls()) == 2, "the second")
    (server.folder / "hold").unlink()
    wait_until(lambda: server.open() == {2}, "the second alone")
    shown.do(lambda notifications: notifications.withdraw(NOTE.key))
    wait_until(lambda: not server.open(), "its end")


def test_what_a_tray_that_was_killed_has_left_is_taken_away_by_the_next(server: Server, tmp_path: Path):
    tmp_path.chmod(0o700)
    file = tmp_path / "shown.json"
    with tray(file) as killed:
        killed.do(lambda notifications: notifications.show(NOTE))
        killed.do(lambda notifications: notifications.show(replace(NOTE, key="rt2")))
        wait_until(lambda: file.exists() and len(json.loads(file.read_text())["numbers"]) == 2, "both, noted")
        killed.do(lambda notifications: notifications.withdraw("rt2"))
    assert file.stat().st_mode & 0o777 == 0o600
    wait_until(lambda: server.open() == {1}, "the first alone")
    with tray(file):
        wait_until(lambda: not server.open(), "its end")
    assert not file.exists()


def test_numbers_of_another_server_are_somebody_elses(server: Server, tmp_path: Path):
    tmp_path.chmod(0o700)
    file = tmp_path / "shown.json"
    with tray(file) as killed:
        killed.do(lambda notifications: notifications.show(NOTE))
        wait_until(file.exists, "its number, noted")
        (server.folder / "end").touch()
        left = file.read_text()
        wait_until(lambda: not killed.owners[-1], "the end of the server")
    (server.folder / "end").unlink()
    file.write_text(left)
    with tray(file) as next_one:
        next_one.do(lambda notifications: notifications.show(NOTE))
        wait_until(lambda: len(server.calls()) == 2, "one of its own")
        wait_until(lambda: file.exists() and file.read_text() != left, "its note")
        assert [member for member, _ in server.calls()] == ["Notify", "Notify"]


class _DirectBus:
    """Takes calls, and answers with a number at once."""

    def __init__(self) -> None:
        self.words: list[list[str]] = []

    def call(self, address, member, signature="", *arguments, then=None) -> None:
        if member == "Notify":
            self.words.append(arguments[5])
            then((7,))


def _asking(*answers: tuple[str, str]) -> Notification:
    buttons = (("Attach", NOTE.default), *((label, Action(name, {"state_version": name})) for label, name in answers))
    return replace(NOTE, buttons=buttons, is_silent=True)


@pytest.mark.parametrize("pressed", ["Approve once", "Deny"])
def test_a_press_that_comes_late_is_not_for_what_has_taken_its_place(pressed: str) -> None:
    """The server shows the old one until it has taken the new one, and its numbers are the same."""
    chosen: list[Action] = []
    bus = _DirectBus()
    notifications = Notifications(bus, chosen.append)
    notifications._capabilities = frozenset({"actions"})
    first = (("Approve once", "approve"), ("Deny", "deny")) if pressed == "Approve once" else (("Deny", "deny"),)
    notifications.show(replace(_asking(*first), is_silent=False))
    words = dict(zip(bus.words[-1][1::2], bus.words[-1][::2], strict=True))
    # The next one: shorter or longer by a button, and of another state.
    later = replace(
        NOTE,
        buttons=tuple(
            (label, Action(name, {"state_version": "2"})) for label, name in (("Approve once", "approve"),) * 3
        ),
        is_silent=True,
    )
    notifications.show(later)
    notifications._invoked((7, words[pressed]))
    assert chosen == []
    notifications._invoked((7, bus.words[-1][0]))
    assert chosen == [Action("approve", {"state_version": "2"})]
