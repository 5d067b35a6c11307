"""The bridges of agents on a machine without a daemon: they come through the door for hooks, and their lines go on over
the probe's own line, in pieces, so that looks are not held up.

    out  {"notice": "bridge", "bridge": number}                          one has come
         {"notice": "said", "bridge", "data", "is_last", "lineage", "on_terminal", "service"}
                                                                          a piece of what it says; with the last one who
                                                                          it is, by its processes, null if not known
         {"notice": "took", "bridge"}                                     a piece that was for it has gone to it
         {"notice": "left", "bridge"}
    in   {"do": "tell", "bridge", "data", "is_last"}                      a piece of what it is told
         {"do": "more", "bridge"}                                         a piece was taken: one more may come
         {"do": "drop", "bridge"}

Neither end sends more than WINDOW pieces ahead of the other: one that does not listen costs nobody any memory. Data is
in base64. All bridges are the business of one thread.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import os
import selectors
import socket
import threading
import time
from typing import Any, Callable, Dict

from agtmux.probe.peer import peer_pid
from agtmux.probe.processes import read_one, way_up
from agtmux.probe.websocket import Incoming, SocketError, framed

MOST_BRIDGES = 64
# A message of a megabyte, as escaped as JSON can be.
LONGEST_LINE = 4 * 1024 * 1024
PIECE = 48 * 1024
WINDOW = 4
# Each connection is told of, and the other end takes a probe that tells too much for hostile.
_MOST_A_SECOND = 20
_CHUNK = 65_536
NAMES = frozenset(("tell", "more", "drop"))

Send = Callable[[Dict[str, object]], None]


class _Bridge:
    def __init__(self, number: int, connection: socket.socket) -> None:
        self.number = number
        self.connection = connection
        self.pid = peer_pid(connection)
        process = None if self.pid is None else read_one(self.pid)
        self.began = None if process is None else process.started
        self.incoming = Incoming(LONGEST_LINE)
        # Pieces of what it said that were not sent on yet, and how many may be.
        self.said: collections.deque[tuple[bytes, bool]] = collections.deque()
        self.credit = WINDOW
        # What goes to it, each with whether the other end waits to hear that it went.
        self.to_tell: collections.deque[tuple[bytes, bool]] = collections.deque()
        self.rest = b""
        self.is_told_for = False
        self.is_first_piece = True

    def who(self) -> dict[str, object]:
        """The processes above it now: all, those that have a terminal, and what they end at."""
        process = None if self.pid is None else read_one(self.pid)
        if self.pid is None or process is None or process.started != self.began:
            # Its number may be another's by now.
            return {"lineage": None, "on_terminal": None, "service": ""}
        way = way_up(self.pid)
        if way is None:
            return {"lineage": None, "on_terminal": None, "service": ""}
        return {"lineage": way.lineage, "on_terminal": way.on_terminal, "service": way.service_name}

    def wants(self) -> int:
        """What of its connection is to be waited for."""
        # What it says meanwhile waits in the kernel, and then in the bridge itself. So does who asks and never listens.
        reads = 0 if self.said or len(self.to_tell) > 2 * WINDOW else selectors.EVENT_READ
        return reads | (selectors.EVENT_WRITE if self.rest or self.to_tell else 0)


class Bridges:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._bridges: dict[int, _Bridge] = {}
        self._numbered = 0
        self._lock = threading.Lock()
        # What other threads want done: taken up by the one that has them all.
        self._wanted: collections.deque[Callable[[], None]] = collections.deque()
        self._second, self._in_second = 0, 0
        self._selector: selectors.BaseSelector | None = None
        self._bell = (-1, -1)
        self._is_closed = False

    def take(self, connection: socket.socket, answer: bytes, rest: bytes) -> bool:
        """A connection that is a bridge's from now on; False, and nothing done, if there are too many."""
        with self._lock:
            if self._is_closed or len(self._bridges) >= MOST_BRIDGES or not self._has_room():
                return False
            if self._selector is None and not self._start():
                return False
            self._numbered += 1
            bridge = self._bridges[self._numbered] = _Bridge(self._numbered, connection)
        connection.setblocking(False)
        bridge.rest = answer
        self._do(lambda: self._begin(bridge, rest))
        return True

    def obey(self, message: dict[str, Any]) -> None:
        self._do(lambda: self._obey(message))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        self._ring()

    def _has_room(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second <= _MOST_A_SECOND

    def _start(self) -> bool:
        self._selector = selectors.DefaultSelector()
        self._bell = os.pipe()
        os.set_blocking(self._bell[0], False)
        os.set_blocking(self._bell[1], False)
        self._selector.register(self._bell[0], selectors.EVENT_READ, None)
        try:
            threading.Thread(target=self._run, args=(self._selector,), name="bridges", daemon=True).start()
        except RuntimeError:
            # No thread left, which passes.
            self._clear(self._selector)
            self._selector = None
            return False
        return True

    def _do(self, what: Callable[[], None]) -> None:
        self._wanted.append(what)
        self._ring()

    def _ring(self) -> None:
        # Full is rung enough; closed, there is nobody to hear.
        with contextlib.suppress(OSError, ValueError):
            os.write(self._bell[1], b"\0")

    # All that follows is the thread's.

    def _run(self, selector: selectors.BaseSelector) -> None:
        try:
            while not self._is_closed:
                for key, events in selector.select():
                    if key.data is None:
                        with contextlib.suppress(BlockingIOError):
                            os.read(key.fd, 65_536)
                    elif key.data.number in self._bridges:
                        self._serve(key.data, events)
                while self._wanted:
                    self._wanted.popleft()()
        except OSError:
            # The probe's own line has ended, and with it the probe.
            pass
        finally:
            with self._lock:
                self._is_closed = True
                for bridge in self._bridges.values():
                    bridge.connection.close()
                self._bridges.clear()
                self._clear(selector)

    def _clear(self, selector: selectors.BaseSelector) -> None:
        selector.close()
        bell, self._bell = self._bell, (-1, -1)
        for descriptor in bell:
            os.close(descriptor)

    def _begin(self, bridge: _Bridge, rest: bytes) -> None:
        assert self._selector is not None
        self._selector.register(bridge.connection, selectors.EVENT_READ, bridge)
        self._send({"notice": "bridge", "bridge": bridge.number})
        self._hear(bridge, rest)

    def _obey(self, message: dict[str, Any]) -> None:
        bridge = self._bridges.get(message["bridge"])
        if bridge is None:
            # It has left, which is on its way to the other end.
            return
        if message["do"] == "drop":
            self._leave(bridge)
        elif message["do"] == "more":
            bridge.credit += 1
            self._go_on(bridge)
        else:
            data, is_last = base64.b64decode(message["data"]), bool(message["is_last"])
            bridge.to_tell.append((framed(data, bridge.is_first_piece, is_last), True))
            bridge.is_first_piece = is_last
            self._go_on(bridge)

    def _serve(self, bridge: _Bridge, events: int) -> None:
        if events & selectors.EVENT_READ:
            try:
                data = bridge.connection.recv(_CHUNK)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                self._leave(bridge)
                return
            if data is not None and not self._hear(bridge, data):
                return
        self._go_on(bridge)

    def _hear(self, bridge: _Bridge, data: bytes) -> bool:
        """False if it has left over it."""
        try:
            messages = bridge.incoming.receive(data)
        except SocketError:
            self._leave(bridge)
            return False
        if bridge.incoming.replies:
            bridge.to_tell.append((bytes(bridge.incoming.replies), False))
            bridge.incoming.replies.clear()
        for message in messages:
            starts = range(0, max(len(message), 1), PIECE)
            bridge.said.extend((message[at : at + PIECE], at + PIECE >= len(message)) for at in starts)
        if bridge.incoming.is_closed:
            self._leave(bridge)
            return False
        self._go_on(bridge)
        return bridge.number in self._bridges

    def _go_on(self, bridge: _Bridge) -> None:
        """Pass on what may be passed on, in both directions."""
        while bridge.said and bridge.credit:
            bridge.credit -= 1
            self._say(bridge, *bridge.said.popleft())
        while bridge.rest or bridge.to_tell:
            if not bridge.rest:
                bridge.rest, bridge.is_told_for = bridge.to_tell.popleft()
            try:
                bridge.rest = bridge.rest[bridge.connection.send(bridge.rest) :]
            except BlockingIOError:
                break
            except OSError:
                self._leave(bridge)
                return
            if not bridge.rest and bridge.is_told_for:
                bridge.is_told_for = False
                self._send({"notice": "took", "bridge": bridge.number})
        self._wait_for(bridge)

    def _say(self, bridge: _Bridge, piece: bytes, is_last: bool) -> None:
        # Only now, and so no more often than the other end wants to know.
        who = bridge.who() if is_last else {}
        data = base64.b64encode(piece).decode()
        self._send({"notice": "said", "bridge": bridge.number, "data": data, "is_last": is_last, **who})

    def _wait_for(self, bridge: _Bridge) -> None:
        assert self._selector is not None
        wanted, registered = bridge.wants(), bridge.connection in self._selector.get_map()
        if wanted and registered:
            self._selector.modify(bridge.connection, wanted, bridge)
        elif wanted:
            self._selector.register(bridge.connection, wanted, bridge)
        elif registered:
            # Nothing to wait for: that it goes is heard when more may come.
            self._selector.unregister(bridge.connection)

    def _leave(self, bridge: _Bridge) -> None:
        assert self._selector is not None
        if bridge.connection in self._selector.get_map():
            self._selector.unregister(bridge.connection)
        bridge.connection.close()
        with self._lock:
            self._bridges.pop(bridge.number, None)
        self._send({"notice": "left", "bridge": bridge.number})
