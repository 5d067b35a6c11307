"""The bridge at work: lines from an agent's MCP client go to whoever has agtmux's socket here, and answers come back.

That is the daemon on its own machine, and a probe on any other, where this is part of one file (`compose`). It imports
as little as it can: every agent has one, and some wait for it before they do anything.
"""

from __future__ import annotations

import os
import select
import time

from agtmux.bridge.local import Packaged
from agtmux.bridge.relay import Relay
from agtmux.bridge.wire import GREETING, MOST_BYTES, Wire, WireError, framed
from agtmux.probe.owners import connected

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Callable, Final

_TRIES: Final = 5
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_FACTOR: Final = 2.0
# For the answer to a greeting, from a daemon that has much to do.
_GREETING_LIMIT: Final = 10.0
# For what can be answered here as well: a daemon's first bridge waits until its server is loaded.
_WORDS_LIMIT: Final = 0.1
# For answers that an agent still waits for when it has nothing more to ask.
_LAST_WORDS: Final = 5.0
_CHUNK: Final = 65_536


class Bridge:
    def __init__(
        self,
        socket_path: str,
        packaged: Packaged,
        on_given_up: Callable[[], None],
        most_bytes: int = MOST_BYTES,
        last_words: float = _LAST_WORDS,
    ) -> None:
        """`on_given_up` is called once, when nobody was found; a line from the agent may have `most_bytes`; answers
        are waited for `last_words` seconds after the agent's last line."""
        self._path = socket_path
        self._on_given_up = on_given_up
        self._last_words = last_words
        self._relay = Relay(packaged, most_bytes)
        self._connection: _socket.socket | None = None
        self._wire = Wire()
        self._read = b""
        self._tries_left = 0
        self._pause = _FIRST_PAUSE
        self._next_try = 0.0
        self._has_told = False
        # When what the daemon has not said by then is said here.
        self._words_until: float | None = None
        self._is_slow = False

    def run(self) -> int:
        if not self._reach():
            self._try_again_later()
        until: float | None = None
        while until is None or (self._relay.is_waiting and time.monotonic() < until):
            ready = self._ready([] if until is not None else [0], until)
            if self._connection is not None and self._connection.fileno() in ready:
                self._hear_daemon()
            if 0 in ready and not self._hear_agent():
                # It has nothing more to say. What it asked is answered yet.
                until = time.monotonic() + self._last_words
            if self._connection is None and self._tries_left and time.monotonic() >= self._next_try:
                self._try()
            self._keep_waiting_short()
            self._pass_on()
        # A daemon that is starting its server, or has much to do, may take longer than anyone waits here.
        self._relay.ended()
        self._pass_on()
        return 0

    def _ready(self, files: list[int], until: float | None) -> list[int]:
        if self._connection is not None:
            files = [*files, self._connection.fileno()]
        ends = [until] if until is not None else []
        if self._connection is None and self._tries_left:
            ends.append(self._next_try)
        if self._words_until is not None:
            ends.append(self._words_until)
        wait = max(0.0, min(ends) - time.monotonic()) if ends else None
        return select.select(files, [], [], wait)[0]

    def _keep_waiting_short(self) -> None:
        now = time.monotonic()
        if not self._relay.owes_words:
            self._words_until = None
        elif self._words_until is None:
            self._words_until = now + (0.0 if self._is_slow else _WORDS_LIMIT)
        elif now >= self._words_until:
            self._is_slow = True
            self._relay.answer_words()

    def _hear_agent(self) -> bool:
        data = os.read(0, _CHUNK)
        *lines, rest = (self._read + data).split(b"\n")
        if len(rest) > MOST_BYTES:
            # It is answered as what it is: no message.
            lines, rest = [*lines, b"("], b""
        self._read = rest
        for line in lines:
            if line.strip():
                if self._connection is None and not self._relay.is_hopeful:
                    # Somebody may have started one by now.
                    self._reach()
                self._relay.from_agent(line)
                self._pass_on()
        return bool(data)

    def _hear_daemon(self) -> None:
        assert self._connection is not None
        try:
            data = self._connection.recv(_CHUNK)
            messages = self._wire.receive(data)
            if self._wire.replies:
                self._connection.sendall(bytes(self._wire.replies))
                self._wire.replies.clear()
        except (OSError, WireError):
            self._lose()
            return
        for message in messages:
            self._is_slow = False
            self._relay.from_daemon(message)
        if not data or self._wire.is_closed:
            self._lose()

    def _pass_on(self) -> None:
        while self._connection is not None and self._relay.to_daemon:
            # Taken off before: what is lost on the way is asked again, or said to be uncertain, by the relay.
            messages, self._relay.to_daemon = self._relay.to_daemon, []
            try:
                self._connection.sendall(b"".join(map(framed, messages)))
            except OSError:
                self._lose()
        if self._relay.to_agent:
            _write(b"".join(line.replace(b"\n", b" ") + b"\n" for line in self._relay.to_agent))
            self._relay.to_agent.clear()

    # The line to the daemon

    def _reach(self) -> bool:
        wire = Wire()
        messages: list[bytes] = []
        try:
            connection = connected(os.fsencode(self._path), _GREETING_LIMIT)
        except OSError:
            return False
        try:
            connection.sendall(GREETING)
            while not wire.is_open:
                data = connection.recv(_CHUNK)
                if not data:
                    raise WireError("the connection ended")
                messages += wire.receive(data)
        except (OSError, WireError):
            connection.close()
            return False
        # A daemon that does not read is gone, for all that an agent can tell.
        self._connection, self._wire = connection, wire
        self._tries_left = 0
        self._relay.is_hopeful = True
        self._relay.connected()
        for message in messages:
            self._relay.from_daemon(message)
        return True

    def _lose(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._relay.lost()
        self._try_again_later()

    def _try_again_later(self) -> None:
        self._tries_left, self._pause = _TRIES, _FIRST_PAUSE
        self._next_try = time.monotonic() + self._pause

    def _try(self) -> None:
        self._tries_left -= 1
        if self._reach():
            return
        self._pause = min(_LONGEST_PAUSE, self._pause * _FACTOR)
        self._next_try = time.monotonic() + self._pause
        if not self._tries_left:
            self._relay.given_up()
            if not self._has_told:
                self._has_told = True
                # Whoever waits for an answer has it first: what follows may take seconds.
                self._pass_on()
                self._on_given_up()


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
