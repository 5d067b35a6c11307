"""The face on macOS: rumps' application with our menu in it, and a timer that also runs while the menu is open.

rumps starts the application, owns the status item and hears of sleep and wake. Its own `run` is not called: it would
bring the app before whatever the user is typing into, and its `__init__` would make a folder in the user's Library.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import rumps
from AppKit import NSApplication, NSApplicationActivationPolicyAccessory
from Foundation import NSDate, NSObject, NSRunLoop, NSRunLoopCommonModes, NSTimer
from PyObjCTools import AppHelper
from rumps.rumps import NSApp

from AgtmuxBar.mac import dialogs, status
from AgtmuxBar.mac.menu import DrawnMenu
from AgtmuxBar.mac.notifications import Notifier
from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action, Menu

_log = logging.getLogger(__name__)

T = TypeVar("T")

_BEAT: Final = 1.0
_ANSWERS: Final = ("approve", "deny")
# Seconds in which nobody reads a question and decides.
_TOO_SOON: Final = 0.5


class MacRenderer:
    """`AgtmuxBar.app.Renderer`, to be made and run on the main thread."""

    def __init__(self, choose: Callable[[Action], object]) -> None:
        self._choose = choose
        self._rumps = _Application()
        self._menu = DrawnMenu(self._rumps.menu, self._chosen)
        self._opened_at = float("inf")
        self._notifier = Notifier(choose)
        self._status: status.StatusItem | None = None
        self._latest: Menu | None = None
        # Cocoa keeps delegates and targets weakly.
        self._watcher: Any = _MenuWatcher.alloc().init()
        self._beat: _Beat | None = None
        self._handlers: list[tuple[Any, Callable[[], object]]] = []

    # What the app calls

    def call(self, function: Callable[[], object]) -> None:
        AppHelper.callAfter(_guarded, function)

    def ask(self, function: Callable[[], T]) -> T:
        """What it returns on the main thread, where it may open a window and wait. For other threads."""
        answered: Future[T] = Future()

        def answer() -> None:
            try:
                answered.set_result(function())
            except Exception as error:
                # Whoever waits must not wait for ever.
                answered.set_exception(error)

        self.call(answer)
        return answered.result()

    def show(self, menu: Menu) -> None:
        self._latest = menu
        if self._status is None:
            return
        self._status.show(menu)
        self._menu.draw(menu.items)
        # A menu that rumps made with its first item is another than the one that was there before.
        self._watch()

    def notify(self, notification: Notification) -> None:
        self._notifier.show(notification)

    def withdraw(self, key: str) -> None:
        self._notifier.withdraw(key)

    def tell(self, title: str, text: str) -> None:
        dialogs.tell(title, text)

    def end(self) -> None:
        rumps.quit_application()

    # What its owner calls

    def run(
        self,
        *,
        started: Callable[[], object] = lambda: None,
        opened: Callable[[], object] = lambda: None,
        woken: Callable[[], object] = lambda: None,
        ended: Callable[[], object] = lambda: None,
        left: Callable[[Mapping[str, str]], object] = lambda _: None,
    ) -> None:
        """The app's loop; does not come back before the app ends, and on a Mac not at all: AppKit exits.

        `ended` is called at the very end, whoever asked for it: the menu, SIGTERM, or the user who logs out. `left` is
        told of the notifications that are on display at the start: the dialog by the key.
        """
        self._watcher.opened = lambda: self._opened(opened)
        self._on(rumps.events.on_wake, woken)
        self._on(rumps.events.before_quit, lambda: self._end(ended))
        previous = {each: signal.signal(each, lambda *_: self.end()) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._rumps.begin(self._begun(started, left))
        finally:
            for each, handler in previous.items():
                signal.signal(each, handler)
            for event, registered in self._handlers:
                event.unregister(registered)
            if self._beat is not None:
                self._beat.stop()

    def _begun(self, started: Callable[[], object], left: Callable[[Mapping[str, str]], object]) -> Callable[[], None]:
        def begin() -> None:
            self._status = status.StatusItem(self._rumps.status_item)
            if self._latest is not None:
                self.show(self._latest)
            self._watch()
            # Python looks for signals only while it runs, and Cocoa may not call it for hours.
            self._beat = _Beat(_BEAT, lambda: None)
            self._notifier.start(left)
            started()

        return begin

    def _end(self, ended: Callable[[], object]) -> None:
        # Nobody would take them back when they are answered elsewhere.
        self._notifier.withdraw_all()
        ended()

    def _opened(self, opened: Callable[[], object]) -> None:
        self._opened_at = time.monotonic()
        opened()

    def _chosen(self, action: Action, since: float) -> None:
        """An answer is for what was read. One that came under the pointer, in a menu that is open, was not."""
        if action.name in _ANSWERS and since > self._opened_at and time.monotonic() - since < _TOO_SOON:
            self.tell(
                "Not answered", "The menu changed under the pointer; look at what is asked now, and choose again."
            )
        else:
            self._choose(action)

    def _watch(self) -> None:
        menu = self._rumps.menu._menu
        if menu is not None and menu.delegate() is None:
            menu.setDelegate_(self._watcher)

    def _on(self, event: Any, handler: Callable[[], object]) -> None:
        # rumps keeps them in a set of the module's, for all applications that there ever are.
        def guarded() -> None:
            _guarded(handler)

        event.register(guarded)
        self._handlers.append((event, guarded))


class _Application(rumps.App):
    def __init__(self) -> None:
        self._name = "agtmux"
        self._icon = self._title = self._template = None
        self._quit_button = None
        # Something to show until the first menu is there; rumps would write out its name.
        self._icon_nsimage = status.image("idle")
        self._menu = rumps.rumps.Menu()

    def begin(self, ready: Callable[[], object]) -> None:
        application = NSApplication.sharedApplication()
        application.setActivationPolicy_(NSApplicationActivationPolicyAccessory)
        self._nsapp = NSApp.alloc().init()
        self._nsapp._app = self.__dict__
        application.setDelegate_(self._nsapp)
        setattr(rumps.App, "*app_instance", self)
        self._nsapp.initializeStatusBar()
        ready()
        rumps.events.before_start.emit()
        AppHelper.runEventLoop()

    @property
    def status_item(self) -> Any:
        return self._nsapp.nsstatusitem


class _MenuWatcher(NSObject):
    """Hears that the menu is about to be looked at."""

    def menuWillOpen_(self, menu: Any) -> None:
        _guarded(self.opened)


class _Ticks(NSObject):
    def tick_(self, timer: Any) -> None:
        _guarded(self.function)


class _Beat:
    """A timer in the common modes: rumps' stop while a menu or an alert is open."""

    def __init__(self, every: float, function: Callable[[], object]) -> None:
        target = _Ticks.alloc().init()
        target.function = function
        self._timer = NSTimer.alloc().initWithFireDate_interval_target_selector_userInfo_repeats_(
            NSDate.dateWithTimeIntervalSinceNow_(every), every, target, "tick:", None, True
        )
        # Lets the system wake once for several timers.
        self._timer.setTolerance_(every / 2)
        NSRunLoop.mainRunLoop().addTimer_forMode_(self._timer, NSRunLoopCommonModes)

    def stop(self) -> None:
        self._timer.invalidate()


def _guarded(function: Callable[[], object]) -> None:
    """An exception that reaches Cocoa ends the app."""
    try:
        function()
    except Exception:
        _log.exception("the menu bar failed")
