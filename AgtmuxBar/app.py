"""What every desktop's app shares: it follows the daemon, keeps the menu and the notifications right, and carries out
what is chosen. How things are drawn is a renderer's business, and how the system is asked a desktop's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from AgtmuxBar.notify import Notification
from AgtmuxBar.settings import Settings, Surroundings
from AgtmuxBar.tree import Action, Menu


class Renderer(Protocol):
    """The face. Everything but `call` is called on the renderer's own thread, through `call`."""

    def call(self, function: Callable[[], object]) -> None:
        """Have it run soon on the renderer's thread. May be called from any thread, in order."""

    def show(self, menu: Menu) -> None:
        """Only called with a menu that differs from the last one."""

    def notify(self, notification: Notification) -> None:
        """Show it, in the place of one with the same key."""

    def withdraw(self, key: str) -> None: ...

    def tell(self, title: str, text: str) -> None:
        """A text to be read: what an agent asks, or why something chosen was not done."""

    def end(self) -> None:
        """The app has been left; the renderer's loop ends."""


class Desktop(Protocol):
    """The system beneath. Called on the app's worker threads; may block, and raises AgtmuxError or OSError."""

    def surroundings(self) -> Surroundings: ...

    def open_terminal(self, argv: Sequence[str], settings: Settings) -> None:
        """A window of the user's terminal in which that command runs."""

    def open_file(self, path: str) -> None:
        """In whatever the user reads such files with."""

    def copy(self, text: str) -> None: ...

    def launch_at_login(self, on: bool) -> None: ...

    def restart_daemon(self) -> None: ...

    def stop_daemon(self) -> None: ...

    def install_command(self) -> None: ...

    def looked_at(self) -> Collection[str]:
        """Refs of the panes that are in front of the user; empty where that cannot be known."""


class App:
    def __init__(self, renderer: Renderer, desktop: Desktop) -> None:
        """Nothing happens before `start`."""

    def start(self) -> None:
        """Returns at once; the first menu comes through the renderer."""

    def choose(self, action: Action) -> None:
        """An item, a button or a notification was chosen. From any thread; returns at once."""

    def opened(self) -> None:
        """The menu is about to be looked at: what is seldom asked for is asked for again."""

    def woken(self) -> None:
        """The machine slept."""

    def stop(self) -> None:
        """Ends the threads; does not call the renderer any more."""
