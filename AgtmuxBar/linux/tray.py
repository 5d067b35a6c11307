"""The tray: the app's renderer on a Linux desktop, and its process."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.domain.errors import AgtmuxError
from AgtmuxBar import single
from AgtmuxBar.app import App
from AgtmuxBar.linux import login
from AgtmuxBar.linux.bus import Bus
from AgtmuxBar.linux.dbusmenu import DBusMenu
from AgtmuxBar.linux.desktop import LinuxDesktop
from AgtmuxBar.linux.item import TrayItem
from AgtmuxBar.linux.notifications import Notifications
from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action, Menu

_LOG_SIZE: Final = 1_000_000

logger = logging.getLogger(__name__)


class Tray:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._app: App | None = None
        self._item = TrayItem(bus)
        self._menu = DBusMenu(bus, self._choose, self._opened, self._refuse)
        self._notifications = Notifications(bus, self._choose, Path(paths.state_directory(), "bar-shown.json"))

    def run(self, app: App) -> None:
        """Until the app is left, the session ends, or a signal comes."""
        self._app = app
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._bus.hand(self.end))
        self._item.announce()
        self._notifications.begin()
        app.start()
        self._bus.run()
        app.stop()

    def call(self, function: Callable[[], object]) -> None:
        self._bus.hand(function)

    def show(self, menu: Menu) -> None:
        self._item.show(menu)
        self._menu.show(menu)

    def notify(self, notification: Notification) -> None:
        self._notifications.show(notification)

    def withdraw(self, key: str) -> None:
        self._notifications.withdraw(key)

    def tell(self, title: str, text: str) -> None:
        # What agents ask may be nobody else's business, and a log is kept.
        logger.info("told: %s", title)
        if self._notifications.is_served:
            self._notifications.tell(title, text)
        elif self._app is not None:
            # A terminal may take its time to open.
            threading.Thread(target=_write_out, args=(self._app, title, text), daemon=True).start()

    def end(self) -> None:
        """What is asked for in a notification could no longer be answered there."""
        self._notifications.withdraw_all()
        self._bus.end()

    def _choose(self, action: Action) -> None:
        if self._app is not None:
            self._app.choose(action)

    def _refuse(self) -> None:
        self.tell("Not answered", "The menu changed under the pointer; look at what is asked now, and choose again.")

    def _opened(self) -> None:
        if self._app is not None:
            self._app.opened()


def _write_out(app: App, title: str, text: str) -> None:
    """For a desktop without a notification server."""
    words = ["sh", "-c", 'printf "%s\\n\\n%s\\n" "$1" "$2"', "sh", title, text]
    try:
        app.desktop.open_terminal(words, app.settings, stays=True)
    except (AgtmuxError, OSError) as error:
        logger.warning("it could not be told: %s", error)


def main() -> int:
    paths.private_directory(paths.state_directory())
    with single.only_one() as is_ours:
        if not is_ours:
            return 0
        _log_to(login.log_file())
        try:
            bus = Bus()
        except (OSError, KeyError, ValueError) as error:
            logger.error("there is no session bus: %s", error)
            return 1
        tray = Tray(bus)
        tray.run(App(tray, LinuxDesktop()))
    return 0


def _log_to(file: Path) -> None:
    paths.private_directory(str(file.parent))
    handler = RotatingFileHandler(file, maxBytes=_LOG_SIZE, backupCount=1, encoding="utf-8")
    file.chmod(0o600)
    logging.basicConfig(
        handlers=[handler], level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
