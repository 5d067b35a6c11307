"""A listener with so many connections and no more: each is a file of the daemon's, which needs some to see agents."""

from __future__ import annotations

import socket
from typing import Any, Final

from agtmux.api.connections import most_files

_MOST: Final = 256
# A connection that gave way to another is closed a moment later.
_CLOSING: Final = 16
# Accepted, and sent away, at one time before others have their turn. Those that are not known yet give way to new ones:
# with so few at a time each has been read from and answered before that.
_ACCEPTED_AT_ONCE: Final = 8
_REFUSED_AT_ONCE: Final = 128


def most_connections() -> int:
    return most_files(_MOST, _CLOSING)


class Listener(socket.socket):
    def __init__(self, family: socket.AddressFamily) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.open = 0
        self._most = most_connections() + _CLOSING
        self._accepted = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """asyncio accepts until nobody is left or this says so; what waits is asked for again at its next turn."""
        for _ in range(_REFUSED_AT_ONCE if self._accepted < _ACCEPTED_AT_ONCE else 0):
            try:
                connection, address = super().accept()
            except BlockingIOError:
                break
            if self.open < self._most:
                self._accepted += 1
                return _Counted(connection, self), address
            connection.close()
        self._accepted = 0
        raise BlockingIOError


class _Counted(socket.socket):
    def __init__(self, connection: socket.socket, listener: Listener) -> None:
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self._listener: Listener | None = listener
        listener.open += 1

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.open -= 1
        super().close()
