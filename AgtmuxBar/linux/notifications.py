"""Notifications over `org.freedesktop.Notifications`, as much of them as the server at hand can do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final

from jeepney import DBusAddress, MatchRule

from AgtmuxBar.icons import pixels
from AgtmuxBar.linux.bus import Bus, BusError
from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action

NAME: Final = "org.freedesktop.Notifications"
_SERVER: Final = DBusAddress("/org/freedesktop/Notifications", NAME, NAME)
_NOTIFY: Final = "susssasa{sv}i"
_DEFAULT: Final = "default"
_ICON_SIZE: Final = 48
_NORMAL: Final = ("y", 1)
# Until it is answered; or for as long as the server thinks fit.
_STAYS: Final = 0
_PASSES: Final = -1

logger = logging.getLogger(__name__)


class Notifications:
    def __init__(self, bus: Bus, choose: Callable[[Action], object]) -> None:
        self._bus = bus
        self._choose = choose
        self._capabilities: frozenset[str] = frozenset()
        self.is_served = False
        # By key: the number the server gave, 0 until it has; and what its buttons do.
        self._shown: dict[str, int] = {}
        self._actions: dict[str, Mapping[str, Action]] = {}

    def begin(self) -> None:
        for member, heard in (("ActionInvoked", self._invoked), ("NotificationClosed", self._closed)):
            self._bus.hear(MatchRule(type="signal", interface=NAME, member=member), heard)
        self._bus.follow_owner(NAME, self._server_is)
        # Many servers are started by being asked; and what they can do is asked for in any case.
        self._bus.call(_SERVER, "GetCapabilities", then=self._capable)

    def show(self, notification: Notification) -> None:
        if notification.is_silent and notification.key not in self._shown:
            # The user has put it away; that its buttons mean something else by now is no reason to bring it back.
            return
        # What a click on the text does has a name of its own, and is a button only where the server makes it one.
        actions = {_DEFAULT: notification.default}
        words: list[str] = []
        for number, (label, action) in enumerate(notification.buttons):
            word = _DEFAULT if action == notification.default else str(number)
            actions[word] = action
            words += [word, label]
        body = "\n".join(part for part in (notification.body, notification.place) if part)
        self._actions[notification.key] = actions
        is_quiet = notification.is_silent or not notification.has_sound
        lasts = _STAYS if notification.is_urgent else _PASSES
        self._send(notification.key, notification.title, body, words, is_quiet=is_quiet, lasts=lasts)

    def tell(self, title: str, text: str) -> None:
        """Something to be read, which asks nothing."""
        self._actions.pop(title, None)
        self._send(f"told {title}", title, text, [], is_quiet=True, lasts=_PASSES)

    def withdraw(self, key: str) -> None:
        self._actions.pop(key, None)
        number = self._shown.pop(key, None)
        # One whose number is not known yet is closed when it is.
        if number:
            self._bus.call(_SERVER, "CloseNotification", "u", number)

    def withdraw_all(self) -> None:
        for key in list(self._shown):
            self.withdraw(key)

    def _send(self, key: str, title: str, body: str, words: list[str], *, is_quiet: bool, lasts: int) -> None:
        hints: dict[str, tuple[str, Any]] = {
            "urgency": _NORMAL,
            "image-data": ("(iiibiiay)", _image()),
            "suppress-sound": ("b", is_quiet),
        }
        if not is_quiet and "sound" in self._capabilities:
            hints["sound-name"] = ("s", "message-new-instant")
        shown_body = escape(body, quote=False) if "body-markup" in self._capabilities else body
        # Without them, a button that does nothing would be worse than none.
        actions = words if "actions" in self._capabilities else []
        replaces = self._shown.get(key, 0)
        self._shown[key] = replaces
        arguments = ("agtmux", replaces, "", title, shown_body, actions, hints, lasts)
        self._bus.call(_SERVER, "Notify", _NOTIFY, *arguments, then=lambda answer: self._numbered(key, answer))

    def _numbered(self, key: str, answer: Any) -> None:
        if isinstance(answer, BusError):
            self._shown.pop(key, None)
            logger.warning("a notification could not be shown: %s", answer)
        elif key in self._shown:
            self._shown[key] = answer[0]
        else:
            # It was withdrawn before it was shown.
            self._bus.call(_SERVER, "CloseNotification", "u", answer[0])

    def _invoked(self, values: tuple[Any, ...]) -> None:
        number, word = values[:2]
        key = self._key(number)
        action = self._actions.get(key, {}).get(word) if key is not None else None
        if action is not None:
            self._choose(action)

    def _closed(self, values: tuple[Any, ...]) -> None:
        key = self._key(values[0])
        if key is not None:
            self._shown.pop(key)
            self._actions.pop(key, None)

    def _key(self, number: int) -> str | None:
        return next((key for key, known in self._shown.items() if known == number and number), None)

    def _capable(self, answer: Any) -> None:
        self.is_served = not isinstance(answer, BusError)
        self._capabilities = frozenset(answer[0]) if self.is_served else frozenset()

    def _server_is(self, is_there: bool) -> None:
        """Another one knows nothing of what the last one showed."""
        self._shown.clear()
        if is_there:
            self._bus.call(_SERVER, "GetCapabilities", then=self._capable)


def _image() -> tuple[int, int, int, bool, int, int, bytes]:
    return _ICON_SIZE, _ICON_SIZE, _ICON_SIZE * 4, True, 8, 4, pixels("waiting", _ICON_SIZE)
