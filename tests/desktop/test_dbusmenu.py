"""What a panel is told of a menu that changes, over a real session bus."""

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jeepney", reason="the tray's own library, on Linux alone")

from jeepney import DBusAddress, HeaderFields, MatchRule, MessageType, message_bus, new_method_call
from jeepney.io.blocking import DBusConnection, prep_socket

from AgtmuxBar.app import App
from AgtmuxBar.linux import dbusmenu
from AgtmuxBar.linux.bus import Bus
from AgtmuxBar.linux.dbusmenu import DBusMenu
from AgtmuxBar.linux.tray import Tray
from AgtmuxBar.tree import Action, Item, Kind, Menu
from desktop.desk import takes_calls
from desktop.menus import menus
from support.home import wait_until

NAME = "dev.agtmux.test"


class Panel:
    """The other end: asks, and hears what it is told."""

    def __init__(self, connection: DBusConnection) -> None:
        self._connection = connection
        self._connection.send_and_get_reply(message_bus.AddMatch(MatchRule(interface=dbusmenu.INTERFACE)))
        self.heard: list[tuple[str, tuple]] = []

    def ask(self, method: str, signature: str = "", *values):
        address = DBusAddress(dbusmenu.PATH, NAME, dbusmenu.INTERFACE)
        message = new_method_call(address, method, signature or None, values)
        serial = next(self._connection.outgoing_serial)
        self._connection.send(message, serial=serial)
        while True:
            answer = self._connection.receive(timeout=10)
            fields = answer.header.fields
            if answer.header.message_type is MessageType.signal and HeaderFields.member in fields:
                self.heard.append((fields[HeaderFields.member], answer.body))
            elif fields.get(HeaderFields.reply_serial) == serial:
                return answer

    def told(self) -> list[tuple[str, tuple]]:
        """Since the last time: an answer comes after all that was said before it."""
        self.ask("AboutToShow", "i", 99_999)
        heard = [each for each in self.heard if each[0] in ("LayoutUpdated", "ItemsPropertiesUpdated")]
        self.heard.clear()
        return heard

    def layout(self) -> tuple:
        return self.ask("GetLayout", "iias", 0, -1, []).body[1]


class Shown:
    def __init__(self, bus: Bus) -> None:
        self.chosen: list[Action] = []
        self.refused = 0
        self.opened = 0
        self._bus = bus
        bus.own(NAME)
        self.menu = DBusMenu(bus, self.chosen.append, self._open, self._refuse)

    def show(self, menu: Menu) -> None:
        done = threading.Event()
        self._bus.hand(lambda: (self.menu.show(menu), done.set()))
        assert done.wait(10)

    def _open(self) -> None:
        self.opened += 1

    def _refuse(self) -> None:
        self.refused += 1


@pytest.fixture
def bus_alone(short_tmp: Path, monkeypatch) -> Iterator[Bus]:
    """With nobody else on it."""
    address = f"unix:path={short_tmp}/bus"
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    monkeypatch.setenv("AGTMUX_STATE_DIR", str(short_tmp / "state"))
    daemon = subprocess.Popen(["dbus-daemon", "--session", "--nofork", f"--address={address}"])
    try:
        wait_until(lambda: takes_calls(short_tmp / "bus"), "a session bus")
        bus = Bus()
        try:
            yield bus
        finally:
            bus.close()
    finally:
        daemon.terminate()
        daemon.wait(10)


@pytest.fixture
def bus_and_panel(bus_alone: Bus, short_tmp: Path) -> Iterator[tuple[Shown, Panel]]:
    shown = Shown(bus_alone)
    thread = threading.Thread(target=bus_alone.run)
    thread.start()
    try:
        with DBusConnection(prep_socket(str(short_tmp / "bus"))) as connection:
            yield shown, Panel(connection)
    finally:
        bus_alone.end()
        thread.join(10)


def test_without_a_notification_server_a_terminal_tells(bus_alone, caplog):
    caplog.set_level("INFO")
    opened = []

    class Terminals:
        def open_terminal(self, argv, settings, *, stays):
            opened.append((list(argv), stays))

    tray = Tray(bus_alone)
    tray._app = App(tray, Terminals())
    tray.tell("Not approved", "it asks something else\nby now")
    wait_until(lambda: opened, "a terminal")
    ((argv, stays),) = opened
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert (said, stays) == ("Not approved\n\nit asks something else\nby now\n", True)
    # Who was told what: the first may be kept in a log, the second may be anything that an agent asks.
    assert "Not approved" in caplog.text and "something else" not in caplog.text


def of(*items: Item) -> Menu:
    return Menu("", "idle", "", items)


def as_drawn(node: tuple) -> tuple:
    """Label, what else is said of it, and children; the numbers are the panel's business."""
    _, properties, children = node
    said = {name: value for name, (_, value) in properties.items()}
    return said.pop("label", "").replace("__", "_"), said, [as_drawn(child) for _, child in children]


def as_modelled(item: Item) -> tuple:
    if item.kind is Kind.SEPARATOR:
        return "", {"type": "separator"}, []
    said: dict = {}
    if item.kind is Kind.HEADER or not item.is_enabled or not (item.action or item.children):
        said["enabled"] = False
    if item.is_checked is not None:
        said |= {"toggle-type": "checkmark", "toggle-state": int(item.is_checked)}
    if item.children:
        said["children-display"] = "submenu"
    label = f"{item.glyph} {item.label}" if item.glyph else item.label
    return label, said, [as_modelled(child) for child in item.children]


@pytest.mark.parametrize("name", menus())
def test_the_panel_gets_the_menu_that_the_text_shows(bus_and_panel, name):
    shown, panel = bus_and_panel
    menu = menus()[name]
    shown.show(menu)
    assert as_drawn(panel.layout())[2] == [as_modelled(item) for item in menu.items]


def test_what_changes_in_place_moves_nothing(bus_and_panel):
    shown, panel = bus_and_panel
    first = Item("a", "now", action=Action("x"), is_checked=False)
    shown.show(of(first, Item("b", "other", action=Action("y"))))
    panel.told()
    shown.show(of(replace(first, label="1m", is_checked=None), Item("b", "other", action=Action("y"))))
    ((name, body),) = panel.told()
    assert name == "ItemsPropertiesUpdated"
    assert body == ([(1, {"label": ("s", "1m")})], [(1, ["toggle-type", "toggle-state"])])


def test_only_the_place_that_changed_is_drawn_anew(bus_and_panel):
    shown, panel = bus_and_panel
    one, two = Item("one", "1", action=Action("x")), Item("two", "2", action=Action("x"))
    shown.show(of(Item("a", "a", children=(one,)), Item("b", "b", children=(Item("three", "3"),))))
    numbers = {child[1]["label"][1]: child[0] for _, child in panel.layout()[2]}
    panel.told()
    shown.show(of(Item("a", "a", children=(one, two)), Item("b", "b", children=(Item("three", "3"),))))
    assert [(name, body[1]) for name, body in panel.told()] == [("LayoutUpdated", numbers["a"])]


def test_the_same_menu_again_is_no_news(bus_and_panel):
    shown, panel = bus_and_panel
    shown.show(menus()["day"])
    panel.told()
    shown.show(menus()["day"])
    assert panel.told() == []


def test_numbers_of_what_is_gone_are_not_given_again(bus_and_panel):
    """A click that is on its way may not mean another item."""
    shown, panel = bus_and_panel
    shown.show(of(Item("a", "a", action=Action("a"))))
    ((_, (gone, *_)),) = panel.layout()[2]
    shown.show(of(Item("b", "b", action=Action("b"))))
    ((_, (there, *_)),) = panel.layout()[2]
    assert there != gone
    panel.ask("Event", "isvu", gone, "clicked", ("s", ""), 0)
    assert (shown.chosen, shown.refused) == ([], 1)
    panel.ask("Event", "isvu", there, "clicked", ("s", ""), 0)
    assert [action.name for action in shown.chosen] == ["b"]


def test_an_answer_that_came_into_an_open_menu_just_now_is_refused(bus_and_panel, monkeypatch):
    shown, panel = bus_and_panel
    shown.show(of(Item("a", "a", action=Action("attach"))))
    panel.ask("AboutToShow", "i", 0)
    assert shown.opened == 1
    shown.show(of(Item("approve 2", "Approve once", action=Action("approve"))))
    ((_, (number, *_)),) = panel.layout()[2]
    panel.ask("Event", "isvu", number, "clicked", ("s", ""), 0)
    assert (shown.refused, shown.chosen) == (1, [])
    # Whoever opens the menu again sees what it says now.
    panel.ask("AboutToShow", "i", 0)
    panel.ask("Event", "isvu", number, "clicked", ("s", ""), 0)
    assert [action.name for action in shown.chosen] == ["approve"]


def test_what_nobody_knows_is_an_error_and_no_end(bus_and_panel):
    shown, panel = bus_and_panel
    shown.show(menus()["nobody"])
    for method, signature, values in (
        ("Nonsense", "", ()),
        ("GetLayout", "iias", (4_711, -1, [])),
        ("Event", "s", ("x",)),
    ):
        assert panel.ask(method, signature, *values).header.message_type is MessageType.error
    assert panel.layout()[0] == 0
