"""A real Linux desktop for tests: an X server in memory, a session bus, a panel with a tray, a notification server.

Screens are read from the X server's own frame buffer. What is started here is ended here, by process id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from jeepney import DBusAddress, MessageType, Properties, new_method_call
from jeepney.bus import parse_addresses
from jeepney.io.blocking import DBusConnection, prep_socket

from AgtmuxBar.icons import _AMBER as AMBER
from support.home import Home, wait_until

PROGRAMS = ("Xvfb", "dbus-daemon", "dbus-monitor", "xfce4-panel", "xdotool")
NOTIFYD = "xfce4/notifyd/xfce4-notifyd"
SIZE = (1200, 700)
# Where the panel draws its only icon.
ICON = (16, 16)
_PANEL = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array"><value type="int" value="1"/>
    <property name="dark-mode" type="bool" value="{dark}"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="size" type="uint" value="30"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="systray"/>
  </property>
</channel>
"""


def why_not() -> str | None:
    """What is missing. Where tests must run, and not only may, nothing may be missing."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    missing += [] if _notifyd() else [NOTIFYD]
    if sys.platform != "linux":
        return "trays are Linux's"
    assert not (missing and os.environ.get("CI")), f"tests/setup-system has not installed {missing}"
    return f"{', '.join(missing)} missing: run tests/setup-system" if missing else None


def takes_calls(path: Path) -> bool:
    """A socket is there a moment before anybody listens on it."""
    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(str(path))
        except OSError:
            return False
    return True


class Desk:
    def __init__(self, home: Home, pictures: Path, *, dark: bool) -> None:
        self.home = home
        self._pictures = pictures
        self._folder = home.folder / "desk"
        self._dark = dark
        self._panel: subprocess.Popen[str] | None = None

    # The desktop

    def start(self) -> None:
        frame = self._folder / "frame"
        frame.mkdir(parents=True)
        self._spawn_x(frame)
        self.start_bus()
        config = self.home.folder / ".config" / "xfce4" / "xfconf" / "xfce-perchannel-xml"
        config.mkdir(parents=True)
        (config / "xfce4-panel.xml").write_text(_PANEL.format(dark=str(self._dark).lower()), "utf-8")
        interest = "interface='org.freedesktop.Notifications'"
        with (self._folder / "bus.log").open("w") as log:
            self.home.spawn("dbus-monitor", "--session", interest, stdout=log, stderr=subprocess.DEVNULL)
        notifyd = _notifyd()
        assert notifyd is not None
        self._spawn(notifyd)
        self.start_panel()
        wait_until(lambda: self.has_owner("org.freedesktop.Notifications"), "a notification server")

    def _spawn(self, *words: str | Path) -> subprocess.Popen[str]:
        return self.home.spawn(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _spawn_x(self, frame: Path) -> None:
        reading, writing = os.pipe()
        screen = f"{SIZE[0]}x{SIZE[1]}x24"
        words = ("Xvfb", "-displayfd", str(writing), "-screen", "0", screen, "-nolisten", "tcp", "-fbdir", str(frame))
        self.home.spawn(*words, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as told:
            self.home.env["DISPLAY"] = f":{told.readline().strip()}"

    def start_bus(self) -> None:
        """Enough for a tray that nobody looks at."""
        self._folder.mkdir(exist_ok=True)
        address = f"unix:path={self._folder}/bus"
        self.home.env |= {
            "DBUS_SESSION_BUS_ADDRESS": address,
            # Nothing here is read aloud, and asking for it takes seconds.
            "NO_AT_BRIDGE": "1",
            "GTK_A11Y": "none",
        }
        self._spawn("dbus-daemon", "--session", "--nofork", f"--address={address}")
        wait_until(lambda: takes_calls(self._folder / "bus"), "a session bus")

    def start_panel(self) -> None:
        self._panel = self._spawn("xfce4-panel", "--disable-wm-check")
        wait_until(lambda: self.has_owner("org.kde.StatusNotifierWatcher"), "a panel with a tray")

    def end_panel(self) -> None:
        assert self._panel is not None
        self._panel.terminate()
        self._panel.wait(20)
        wait_until(lambda: not self.has_owner("org.kde.StatusNotifierWatcher"), "the end of the panel")

    # The tray

    def start_tray(self) -> subprocess.Popen[str]:
        tray = self._spawn(sys.executable, "-m", "AgtmuxBar.linux")
        wait_until(self.items, "the tray's name on the bus")
        return tray

    def items(self) -> list[str]:
        return [name for name in self.names() if name.startswith("org.kde.StatusNotifierItem-")]

    def item_property(self, name: str) -> object:
        (item,) = self.items()
        address = DBusAddress("/StatusNotifierItem", item, "org.kde.StatusNotifierItem")
        return self.call(Properties(address).get(name))[0][1]

    def layout(self) -> tuple:
        """The menu as the panel gets it: (id, properties, children)."""
        (item,) = self.items()
        address = DBusAddress("/MenuBar", item, "com.canonical.dbusmenu")
        return self.call(new_method_call(address, "GetLayout", "iias", (0, -1, [])))[1]

    def labels(self) -> dict[str, int]:
        """Every item's number by what is read there."""

        def below(node: tuple) -> Iterator[tuple[str, int]]:
            number, properties, children = node
            if "label" in properties:
                yield properties["label"][1], number
            for _, child in children:
                yield from below(child)

        return dict(below(self.layout()))

    def choose(self, label: str) -> None:
        """As a panel tells of a click."""
        (item,) = self.items()
        address = DBusAddress("/MenuBar", item, "com.canonical.dbusmenu")
        self.call(new_method_call(address, "Event", "isvu", (self.labels()[label], "clicked", ("s", ""), 0)))

    # The bus

    def call(self, message) -> tuple:
        address = next(parse_addresses(self.home.env["DBUS_SESSION_BUS_ADDRESS"]))[1]["path"]
        with DBusConnection(prep_socket(address)) as connection:
            reply = connection.send_and_get_reply(message, timeout=10)
            assert reply.header.message_type is MessageType.method_return, reply.body
            return reply.body

    def names(self) -> list[str]:
        address = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
        return self.call(new_method_call(address, "ListNames"))[0]

    def has_owner(self, name: str) -> bool:
        return name in self.names()

    def notified(self) -> str:
        """Everything that was said to and by the notification server."""
        return (self._folder / "bus.log").read_text("utf-8", "replace")

    # The user

    def do(self, *words: str) -> str:
        done = subprocess.run(["xdotool", *words], env=self.home.env, capture_output=True, text=True, timeout=20)
        return done.stdout

    def click(self, x: int, y: int) -> None:
        self.do("mousemove", str(x), str(y), "click", "1")

    def press(self, *keys: str) -> None:
        self.do("key", "--delay", "80", *keys)

    def windows(self, kind: str) -> list[tuple[int, int, int, int]]:
        """Where the visible windows of a program are: x, y, width, height."""
        found = []
        for window in self.do("search", "--onlyvisible", "--class", kind).split():
            told = dict(line.split("=") for line in self.do("getwindowgeometry", "--shell", window).splitlines())
            if told:
                found.append((int(told["X"]), int(told["Y"]), int(told["WIDTH"]), int(told["HEIGHT"])))
        # What is only there to be asked has no size.
        return [each for each in found if each[2] > 40 and each[3] > 40]

    def menus(self) -> list[tuple[int, int, int, int]]:
        """The open menus, from left to right; the panel itself is as wide as the screen."""
        return sorted(each for each in self.windows("xfce4-panel|wrapper") if each[2] < SIZE[0] and each[3] > 40)

    def popups(self) -> list[tuple[int, int, int, int]]:
        return self.windows("xfce4-notifyd")

    # The screen

    def pixels(self) -> tuple[int, bytes]:
        """The bytes of a row, and the screen as blue, green, red and nothing."""
        content = (self._folder / "frame" / "Xvfb_screen0").read_bytes()
        head = struct.unpack(">25I", content[:100])
        header_size, row, colours = head[0], head[12], head[19]
        begin = header_size + colours * 12
        return row, content[begin : begin + row * SIZE[1]]

    def amber(self) -> int:
        """How many pixels of the tray's icon have the colour of a wait."""
        row, screen = self.pixels()
        blue_green_red = bytes(reversed(AMBER))
        places = (y * row + x * 4 for y in range(30) for x in range(32))
        return sum(screen[at : at + 3] == blue_green_red for at in places)

    def icon(self) -> bytes:
        """The corner of the panel in which it is."""
        row, screen = self.pixels()
        return b"".join(screen[y * row : y * row + 32 * 4] for y in range(30))

    def picture(self, name: str) -> Path:
        """The screen as it is, kept to be looked at."""
        row, screen = self.pixels()
        lines = bytearray()
        for y in range(SIZE[1]):
            line = screen[y * row : y * row + SIZE[0] * 4]
            rgb = bytearray(SIZE[0] * 3)
            rgb[0::3], rgb[1::3], rgb[2::3] = line[2::4], line[1::4], line[0::4]
            lines += b"\0" + rgb
        parts = (
            (b"IHDR", struct.pack(">IIBBBBB", *SIZE, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(lines)),
            (b"IEND", b""),
        )
        chunks = (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
            for kind, body in parts
        )
        self._pictures.mkdir(parents=True, exist_ok=True)
        file = self._pictures / f"{name}.png"
        file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
        return file


@contextlib.contextmanager
def desk_in(home: Home, pictures: Path, *, dark: bool = False) -> Iterator[Desk]:
    if reason := why_not():
        pytest.skip(reason)
    desk = Desk(home, pictures, dark=dark)
    desk.start()
    yield desk


def _notifyd() -> str | None:
    places = (Path("/usr/lib"), Path("/usr/libexec"))
    return next((str(file) for place in places for file in place.glob(f"**/{NOTIFYD}")), None)
