"""A listener with so many connections and no more: each is a file of the daemon's, which needs some to see agents."""

from __future__ import annotations

import resource
import socket
from typing import Any, Final

_MOST: Final = 256
# Those a little above it are told so; the rest find nobody there.
_POLITE: Final = 16
# Who comes at one time and is sent away, before others have their turn.
_MOST_AT_ONCE: Final = 128


def most_connections() -> int:
    """Half of the files that this process may have, where those are few: on macOS it is 256."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(min(_MOST, soft // 2 - _POLITE), 1)


class Listener(socket.socket):
    def __init__(self, family: socket.AddressFamily) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.open = 0
        self._most = most_connections() + _POLITE

    def accept(self) -> tuple[socket.socket, Any]:
        for _ in range(_MOST_AT_ONCE):
            connection, address = super().accept()
            if self.open < self._most:
                return _Counted(connection, self), address
            connection.close()
        # As if there were no more for now; whoever waits is asked for again.
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
