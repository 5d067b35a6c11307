"""One D-Bus connection and the thread that owns it: calls that are answered, calls that are made, signals, and whatever
other threads hand over. Nothing here waits for an answer; what is to be done with one is said when the call is made.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

# A signature and the values that go with it, or None for a method that there is not.
Reply = tuple[str, tuple[Any, ...]] | None
# Given a method's name and its arguments.
Handler = Callable[[str, tuple[Any, ...]], Reply]

_UNKNOWN_METHOD: Final = "org.freedesktop.DBus.Error.UnknownMethod"
_FAILED: Final = "org.freedesktop.DBus.Error.Failed"
_BUS_NAME: Final = "org.freedesktop.DBus"

logger = logging.getLogger(__name__)


class BusError(Exception):
    """Somebody on the bus answered with an error, or the bus itself did for them."""


class Bus:
    def __init__(self) -> None:
        """Raises OSError, KeyError or ValueError where there is no session bus."""
        self._connection: DBusConnection = open_dbus_connection("SESSION")
        self._served: dict[tuple[str, str], Handler] = {}
        self._answers: dict[int, Callable[[Any], object]] = {}
        self._heard: list[tuple[MatchRule, Callable[[tuple[Any, ...]], object]]] = []
        self._inbox: deque[Callable[[], object]] = deque()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._is_ended = False

    # From any thread

    def hand(self, function: Callable[[], object]) -> None:
        """Have it run on the bus's thread, in order."""
        self._inbox.append(function)
        # A pipe that is full wakes as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._waker, b"!")

    def end(self) -> None:
        self._is_ended = True
        self.hand(lambda: None)

    # On the bus's own thread

    def own(self, name: str) -> None:
        self._send(message_bus.RequestName(name))

    def serve(self, path: str, interface: str, handler: Handler) -> None:
        self._served[path, interface] = handler

    def emit(self, path: str, interface: str, name: str, signature: str = "", *values: Any) -> None:
        address = DBusAddress(path, interface=interface)
        self._connection.send(new_signal(address, name, signature or None, values))

    def call(
        self,
        address: DBusAddress,
        method: str,
        signature: str = "",
        *values: Any,
        then: Callable[[Any], object] | None = None,
    ) -> None:
        """`then` is given what came back, as a tuple, or a BusError."""
        self._send(new_method_call(address, method, signature or None, values), then)

    def hear(self, rule: MatchRule, then: Callable[[tuple[Any, ...]], object]) -> None:
        """Signals that fit the rule, as the tuples they carry."""
        self._heard.append((rule, then))
        self._send(message_bus.AddMatch(rule))

    def follow_owner(self, name: str, then: Callable[[str], object]) -> None:
        """Told who owns that name, by a name of the bus's own; empty for nobody. Now, and each time it changes."""
        rule = MatchRule(type="signal", sender=_BUS_NAME, interface=_BUS_NAME, member="NameOwnerChanged")
        rule.add_arg_condition(0, name)
        self.hear(rule, lambda values: then(values[2]))
        self._send(message_bus.GetNameOwner(name), lambda found: then("" if isinstance(found, BusError) else found[0]))

    def identify(self, then: Callable[[str], object]) -> None:
        """Told which bus this is: the next session's has another."""
        self._send(message_bus.GetId(), lambda found: then("" if isinstance(found, BusError) else found[0]))

    def run(self) -> None:
        """Until `end`, or until the session's bus is gone."""
        waiting = select.poll()
        waiting.register(self._connection.sock, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        while not self._is_ended:
            self._take_in()
            if not self._inbox and not self._is_ended:
                waiting.poll()
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
            while self._inbox:
                _guarded(self._inbox.popleft())

    def close(self) -> None:
        """Once no other thread hands anything over any more."""
        self._connection.close()
        os.close(self._woken)
        os.close(self._waker)

    def _take_in(self) -> None:
        try:
            while True:
                self._take(self._connection.receive(timeout=0))
        except TimeoutError:
            return
        except ConnectionError:
            logger.info("the session's bus is gone")
            self._is_ended = True

    def _take(self, message: Message) -> None:
        fields, kind = message.header.fields, message.header.message_type
        if kind is MessageType.method_call:
            self._answer(message)
        elif kind is MessageType.signal:
            for rule, then in self._heard:
                if rule.matches(message):
                    _guarded(lambda then=then: then(message.body))  # type: ignore[misc]
        elif fields[HeaderFields.reply_serial] in self._answers:
            answered = self._answers.pop(fields[HeaderFields.reply_serial])
            answer = message.body if kind is MessageType.method_return else BusError(_complaint(message))
            _guarded(lambda: answered(answer))

    def _answer(self, message: Message) -> None:
        fields = message.header.fields
        place = fields.get(HeaderFields.path, ""), fields.get(HeaderFields.interface, "")
        handler = self._served.get(place)
        try:
            reply = None if handler is None else handler(fields[HeaderFields.member], message.body)
        except Exception:
            logger.exception("%s failed", fields[HeaderFields.member])
            self._connection.send(new_error(message, _FAILED))
            return
        if reply is None:
            self._connection.send(new_error(message, _UNKNOWN_METHOD))
        else:
            self._connection.send(new_method_return(message, reply[0] or None, reply[1]))

    def _send(self, message: Message, then: Callable[[Any], object] | None = None) -> None:
        serial = next(self._connection.outgoing_serial)
        if then is not None:
            self._answers[serial] = then
        self._connection.send(message, serial=serial)


def _guarded(function: Callable[[], object]) -> None:
    """One mistake must not end the tray."""
    try:
        function()
    except Exception:
        logger.exception("what was to be done on the bus failed")


def _complaint(message: Message) -> str:
    name = message.header.fields.get(HeaderFields.error_name, "")
    return f"{name}: {message.body[0]}" if message.body else str(name)
