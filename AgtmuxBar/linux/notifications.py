"""Notifications over `org.freedesktop.Notifications`, as much of them as the server at hand can do."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2s
from html import escape
from pathlib import Path
from typing import Any, Final

from jeepney import DBusAddress, MatchRule

from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.icons import pixels
from AgtmuxBar.linux.bus import Bus, BusError
from AgtmuxBar.notify import Notification
from AgtmuxBar.settings import write_json
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
# What somebody has asked to read is there for as long as that takes: milliseconds, and for each letter.
_GLANCE: Final = 10_000
_LETTER: Final = 60

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Shown:
    """One that the server has, or is about to have."""

    # What its buttons do, by the words that the server knows them by.
    actions: Mapping[str, Action]
    # The server's own; 0 until it has answered.
    number: int = 0
    # Sends what it has become meanwhile: without a number it would be a second one.
    then: Callable[[], object] | None = None


class Notifications:
    def __init__(self, bus: Bus, choose: Callable[[Action], object], file: Path | None = None) -> None:
        """`file` has the numbers of what is shown, for the next one to take back if this one is killed."""
        self._bus = bus
        self._file = file
        # Who gives numbers: a bus, and a server on it. Both are needed to know that a number is still ours.
        self._bus_id = self._server = ""
        self._has_cleared_up = False
        self._choose = choose
        self._capabilities: frozenset[str] = frozenset()
        self.is_served = False
        self._shown: dict[str, _Shown] = {}

    def begin(self) -> None:
        for member, heard in (("ActionInvoked", self._invoked), ("NotificationClosed", self._closed)):
            self._bus.hear(MatchRule(type="signal", interface=NAME, member=member), heard)
        self._bus.identify(self._bus_is)
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
            word = _DEFAULT if action == notification.default else _word(number, action)
            actions[word] = action
            words += [word, label]
        body = "\n".join(part for part in (notification.body, notification.place) if part)
        is_quiet = notification.is_silent or not notification.has_sound
        lasts = _STAYS if notification.is_urgent else _PASSES
        self._put(notification.key, notification.title, body, words, actions, is_quiet=is_quiet, lasts=lasts)

    def tell(self, title: str, text: str) -> None:
        """Something to be read, which asks nothing."""
        self._put(f"told {title}", title, text, [], {}, is_quiet=True, lasts=_GLANCE + _LETTER * len(text))

    def withdraw(self, key: str) -> None:
        known = self._shown.pop(key, None)
        # One whose number is not known yet is closed when it is.
        if known is not None and known.number:
            self._bus.call(_SERVER, "CloseNotification", "u", known.number)
            self._note()

    def withdraw_all(self) -> None:
        for key in list(self._shown):
            self.withdraw(key)

    def _put(
        self,
        key: str,
        title: str,
        body: str,
        words: list[str],
        actions: Mapping[str, Action],
        *,
        is_quiet: bool,
        lasts: int,
    ) -> None:
        known = self._shown.get(key)
        if known is None:
            known = self._shown[key] = _Shown(actions)
        elif not known.number:
            known.then = lambda: self._put(key, title, body, words, actions, is_quiet=is_quiet, lasts=lasts)
            return
        known.actions = actions
        self._send(key, known, title, body, words, is_quiet=is_quiet, lasts=lasts)

    def _send(
        self, key: str, known: _Shown, title: str, body: str, words: list[str], *, is_quiet: bool, lasts: int
    ) -> None:
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
        arguments = ("agtmux", known.number, "", title, shown_body, actions, hints, lasts)
        self._bus.call(_SERVER, "Notify", _NOTIFY, *arguments, then=lambda answer: self._numbered(key, known, answer))

    def _numbered(self, key: str, known: _Shown, answer: Any) -> None:
        is_there = self._shown.get(key) is known
        if isinstance(answer, BusError):
            logger.warning("a notification could not be shown: %s", answer)
            if is_there:
                del self._shown[key]
        elif not is_there:
            # It was withdrawn before it was shown; another of that name may be on its way.
            self._bus.call(_SERVER, "CloseNotification", "u", answer[0])
        else:
            known.number = answer[0]
            self._note()
            then, known.then = known.then, None
            if then is not None:
                then()

    def _invoked(self, values: tuple[Any, ...]) -> None:
        number, word = values[:2]
        key = self._key(number)
        action = None if key is None else self._shown[key].actions.get(word)
        if action is not None:
            self._choose(action)

    def _closed(self, values: tuple[Any, ...]) -> None:
        key = self._key(values[0])
        if key is not None:
            del self._shown[key]
            self._note()

    def _key(self, number: int) -> str | None:
        return next((key for key, known in self._shown.items() if number and known.number == number), None)

    def _capable(self, answer: Any) -> None:
        self.is_served = not isinstance(answer, BusError)
        self._capabilities = frozenset(answer[0]) if self.is_served else frozenset()

    def _bus_is(self, bus_id: str) -> None:
        self._bus_id = bus_id
        self._clear_up()

    def _clear_up(self) -> None:
        """What one that was killed has left: its buttons do nothing, and nobody would take it back."""
        if self._file is None or self._has_cleared_up or not (self._bus_id and self._server):
            return
        self._has_cleared_up = True
        try:
            left = json.loads(self._file.read_text("utf-8"))
            numbers = [int(each) for each in left["numbers"]] if left["server"] == self._place else []
        except FileNotFoundError:
            return
        except (OSError, ValueError, LookupError, TypeError) as error:
            logger.info("%s: %s", self._file, error)
            numbers = []
        for number in numbers:
            self._bus.call(_SERVER, "CloseNotification", "u", number)
        self._note()

    def _note(self) -> None:
        numbers = [known.number for known in self._shown.values() if known.number]
        if self._file is None:
            return
        try:
            if numbers:
                write_json(self._file, {"server": self._place, "numbers": numbers})
            else:
                self._file.unlink(missing_ok=True)
        except (OSError, AgtmuxError) as error:
            logger.info("%s: %s", self._file, error)

    @property
    def _place(self) -> str:
        return f"{self._bus_id} {self._server}"

    def _server_is(self, owner: str) -> None:
        """Another one knows nothing of what the last one showed. What has no number yet may have started it."""
        self._shown = {key: known for key, known in self._shown.items() if not known.number}
        self._server = owner
        if owner:
            self._clear_up()
            self._bus.call(_SERVER, "GetCapabilities", then=self._capable)


def _word(number: int, action: Action) -> str:
    """Of that action alone. A press may arrive when another notification has taken the place of the one it was for:
    then it is for none, instead of what stands in that button's place by now."""
    meant = repr((action.name, sorted(action.parameters.items()))).encode("utf-8", "backslashreplace")
    return f"{number} {blake2s(meant, digest_size=8).hexdigest()}"


@cache
def _image() -> tuple[int, int, int, bool, int, int, bytes]:
    return _ICON_SIZE, _ICON_SIZE, _ICON_SIZE * 4, True, 8, 4, pixels("waiting", _ICON_SIZE)
