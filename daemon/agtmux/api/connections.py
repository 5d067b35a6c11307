"""The open connections of one listener: how many there may be, which one gives way, and when one that is not read ends.

A connection is `known` once a request on it has shown who sends it; on the Unix socket it is from the start. Those that
are not yet known are few, and the oldest of them gives way to a new one, so that nobody without a token can keep out
somebody who has one.
"""

from __future__ import annotations

import asyncio
import fcntl
import resource
import socket
import struct
import sys
import termios
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

# What a connection may keep in memory that its reader has not taken, beside the answer that is being sent.
MOST_UNREAD: Final = 65_536
# A browser opens six at a time; many phones may share an address, as may all that come through a tunnel.
_UNKNOWN: Final = 64
_SHARE_OF_ADDRESS: Final = 2
# On macOS, where Python has no name for it.
_SO_NWRITE: Final = 0x1024


def most_files(wanted: int, spare: int, share: float = 0.5) -> int:
    """At most a share of the files that this process may have, as it needs some to see agents: on macOS it has 256."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(min(wanted, int(soft * share) - spare), 1)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`unknown` are those that have yet to show who sends; 0 where everybody is known."""

    most: int
    unknown: int = 0
    unknown_per_address: int = 0
    # Seconds that an answer may wait without its reader taking anything of it. What a slow line takes comes in steps:
    # on loopback, where a tunnel ends, in steps of 64 KB.
    patience: float = 30.0
    unknown_patience: float = 5.0

    @classmethod
    def for_strangers(cls, most: int) -> ConnectionLimits:
        """Of a listener that anybody may connect to: a quarter is for those that are not known yet."""
        unknown = max(min(_UNKNOWN, most // 4), 1)
        return cls(most, unknown, max(unknown // _SHARE_OF_ADDRESS, 1))

    @property
    def known(self) -> int:
        return max(self.most - self.unknown, 1)


class Connection:
    """One connection, in the place of its transport: it counts what is written and sees whether that is taken."""

    def __init__(self, transport: asyncio.Transport, connections: Connections) -> None:
        self._transport = transport
        self._connections = connections
        self._written = 0
        self._taken_before = 0
        self._timer: asyncio.TimerHandle | None = None
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        self.is_known = not connections.limits.unknown
        # Whether a request is under way, or it has become another protocol's and lasts.
        self.is_busy: Callable[[], bool] = lambda: False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written += len(data)
        self._transport.write(data)
        if self._timer is None and self.unread:
            self._watch()

    @property
    def unread(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size()

    def know(self) -> bool:
        """Somebody with a right to be here sends. False if there is no room for one more of those."""
        return self._connections.know(self)

    def doubt(self) -> None:
        """Whoever sends now has shown no right to."""
        self._connections.doubt(self)

    def ended(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._connections.closed(self)

    def _watch(self) -> None:
        self._taken_before = self._taken()
        limits = self._connections.limits
        patience = limits.patience if self.is_known else limits.unknown_patience
        self._timer = asyncio.get_running_loop().call_later(patience, self._look)

    def _taken(self) -> int:
        """Bytes that have arrived. The kernel asks for more only when much of what it has is gone, which on a slow line
        may take longer than the patience; so what it has counts as not taken yet."""
        return self._written - self.unread - _queued(self._transport.get_extra_info("socket"))

    def _look(self) -> None:
        self._timer = None
        if not self.unread:
            return
        if self._taken() > self._taken_before:
            self._watch()
            return
        self._connections.counts["not read"] += 1
        # Nothing of it can be sent any more, so it is not waited for either.
        self._transport.abort()


def _queued(connection: Any) -> int:
    """Bytes that the kernel has yet to hand over; 0 where it does not tell."""
    try:
        if sys.platform == "darwin":
            return int(connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE))
        return int(struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0])
    except (OSError, ValueError, AttributeError):
        return 0


class Connections:
    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        # Oldest first.
        self._unknown: dict[Connection, None] = {}
        self._known: dict[Connection, None] = {}
        self.counts: Counter[str] = Counter()

    @property
    def all(self) -> list[Connection]:
        return [*self._unknown, *self._known]

    @property
    def is_empty(self) -> bool:
        return not self._unknown and not self._known

    def opened(self, connection: Connection) -> bool:
        """False if there is no room for it."""
        if connection.is_known:
            return self._admit(connection)
        of_address = self._from(connection.address)
        if len(of_address) >= self.limits.unknown_per_address:
            self._evict(of_address[0])
        elif len(self._unknown) >= self.limits.unknown:
            addresses = Counter(each.address for each in self._unknown)
            self._evict(self._from(addresses.most_common(1)[0][0])[0])
        self._unknown[connection] = None
        return True

    def closed(self, connection: Connection) -> None:
        self._unknown.pop(connection, None)
        self._known.pop(connection, None)

    def know(self, connection: Connection) -> bool:
        if connection in self._known:
            return True
        if not self._admit(connection):
            return False
        self._unknown.pop(connection, None)
        connection.is_known = True
        return True

    def doubt(self, connection: Connection) -> None:
        if self.limits.unknown and connection in self._known:
            del self._known[connection]
            connection.is_known = False
            self.opened(connection)

    def _admit(self, connection: Connection) -> bool:
        if len(self._known) >= self.limits.known:
            idle = next((each for each in self._known if not each.is_busy()), None)
            if idle is None:
                self.counts["refused"] += 1
                return False
            self._evict(idle)
        self._known[connection] = None
        return True

    def _from(self, address: str) -> list[Connection]:
        return [each for each in self._unknown if each.address == address]

    def _evict(self, connection: Connection) -> None:
        self.counts["evicted"] += 1
        self.closed(connection)
        connection.abort()
