"""The daemon's end of the bridges on another machine: what agents there say to the MCP server, and its answers.

They share their probe's line with everything else. So they are told in pieces, no more ahead than a window, and no
faster than a pace: a machine that says too much waits, and whoever does not keep to that is refused.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from agtmux.domain.errors import AgtmuxError
from agtmux.probe.bridges import LONGEST_LINE, MOST_BRIDGES, PIECE, WINDOW
from agtmux.targets.messages import BridgeCame, BridgeLeft, BridgeNotice, BridgeSaid, BridgeTook, refused

# Of all bridges on one line together: lines that have no end yet.
_MOST_UNFINISHED: Final = 4 * LONGEST_LINE
# Pieces that one line may keep us busy with, by the second, after so many at once; and new bridges. A probe of ours
# brings no more of these, but its line may hang for a while.
_PIECES: Final = (100.0, 200.0)
_NEW: Final = (20.0, 200.0)


class _Pace:
    """So much a second, after so much at once."""

    def __init__(self, a_second: float, at_once: float) -> None:
        self._each = 1 / a_second
        self._ahead = at_once / a_second
        self._used_until = 0.0

    def take(self, now: float) -> float:
        """From when on it may be; not later than now if it may be at once."""
        self._used_until = max(self._used_until, now - self._ahead) + self._each
        return self._used_until


@dataclass(frozen=True, slots=True)
class Way:
    """From the process that speaks up to what it was started by, as the probe's kernel says."""

    lineage: tuple[int, ...]
    # As far as they have a terminal.
    on_terminal: tuple[int, ...]
    # The command of what they end at, if that has none; it is only told to people.
    service: str = ""


class Channel:
    """One bridge: its lines, in and out. It ends with its bridge or with the line that it comes on."""

    def __init__(self, number: int, bridges: Bridges) -> None:
        self.number = number
        # Who said the last line that was received.
        self.way: Way | None = None
        self._bridges = bridges
        self._lines: asyncio.Queue[tuple[bytes, Way | None] | None] = asyncio.Queue()
        self._unfinished = bytearray()
        # Pieces that it may still send, and that may still be sent to it.
        self._owed = WINDOW
        self._room = asyncio.Semaphore(WINDOW)
        self._untaken = 0
        self.is_open = True

    async def receive(self) -> bytes | None:
        """The next line; None when there is nothing more to come."""
        told = await self._lines.get() if self.is_open or not self._lines.empty() else None
        if told is None:
            return None
        line, self.way = told
        self._bridges.let_more(self)
        return line

    async def send(self, line: bytes) -> None:
        """Raises OSError when it is not there any more."""
        for start in range(0, max(len(line), 1), PIECE):
            await self._room.acquire()
            if not self.is_open:
                raise ConnectionResetError("the bridge has gone")
            self._untaken += 1
            piece = base64.b64encode(line[start : start + PIECE]).decode()
            self._bridges.order("tell", self.number, data=piece, is_last=start + PIECE >= len(line))

    def close(self) -> None:
        self._bridges.drop(self)

    # What the line does with it

    @property
    def unfinished(self) -> int:
        return len(self._unfinished)

    def hear(self, said: BridgeSaid) -> None:
        if self._owed <= 0:
            raise refused("a bridge of it says more than it may")
        self._owed -= 1
        if not self.is_open:
            return
        self._unfinished += said.data
        if len(self._unfinished) > LONGEST_LINE:
            raise refused("a bridge of it says a line without end")
        if not said.is_last:
            self._bridges.let_more(self)
            return
        is_known = said.lineage is not None and said.on_terminal is not None
        way = Way(said.lineage or (), said.on_terminal or (), said.service) if is_known else None
        self._lines.put_nowait((bytes(self._unfinished), way))
        self._unfinished.clear()

    def took(self) -> None:
        if self._untaken <= 0:
            raise refused("a bridge of it takes what nobody gave")
        self._untaken -= 1
        self._room.release()

    def end(self) -> None:
        self.is_open = False
        self._unfinished.clear()
        self._lines.put_nowait(None)
        self._room.release()

    def let_more(self) -> None:
        if self.is_open:
            self._owed += 1
            self._bridges.order("more", self.number)


class Bridges:
    """Those of one line. `serve` is a session of the MCP server, to its end."""

    def __init__(
        self, write: Callable[[dict[str, Any]], None], serve: Callable[[Channel], Awaitable[None]] | None
    ) -> None:
        self._write = write
        self._serve = serve
        # Also those that were dropped, until the other end says that they have left.
        self._channels: dict[int, Channel] = {}
        self._sessions: set[asyncio.Task[None]] = set()
        self._pieces = _Pace(*_PIECES)
        self._new = _Pace(*_NEW)

    def hear(self, notice: BridgeNotice) -> None:
        """Raises AgtmuxError for what no probe of ours would say."""
        number = notice.bridge
        if isinstance(notice, BridgeCame):
            self._begin(number)
            return
        channel = self._channels.get(number)
        if channel is None:
            raise refused("it speaks for a bridge that is not there")
        match notice:
            case BridgeLeft():
                del self._channels[number]
                if channel.is_open:
                    channel.end()
            case BridgeTook():
                channel.took()
            case BridgeSaid():
                channel.hear(notice)
                if sum(each.unfinished for each in self._channels.values()) > _MOST_UNFINISHED:
                    self.drop(channel)

    def end(self) -> None:
        """The line is gone, and they with it."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            if channel.is_open:
                channel.end()

    def order(self, what: str, number: int, **more: object) -> None:
        """Raises OSError where the line is cut."""
        try:
            self._write({"do": what, "bridge": number, **more})
        except AgtmuxError as error:
            raise ConnectionResetError(error.message) from None

    def drop(self, channel: Channel) -> None:
        if not channel.is_open:
            return
        channel.end()
        try:
            self.order("drop", channel.number)
        except OSError:
            # It went with the line.
            return

    def let_more(self, channel: Channel) -> None:
        """One more piece, at once or when its time has come."""
        loop = asyncio.get_running_loop()
        at = self._pieces.take(loop.time())
        if at <= loop.time():
            self._let_more(channel)
        else:
            loop.call_at(at, self._let_more, channel)

    def _let_more(self, channel: Channel) -> None:
        try:
            channel.let_more()
        except OSError:
            # It went with the line.
            return

    def _begin(self, number: int) -> None:
        if number in self._channels or len(self._channels) >= MOST_BRIDGES:
            raise refused(f"it has a bridge twice, or more than {MOST_BRIDGES}")
        now = asyncio.get_running_loop().time()
        if self._new.take(now) > now:
            raise refused("it has more new bridges than can be")
        channel = self._channels[number] = Channel(number, self)
        if self._serve is None:
            self.drop(channel)
            return
        session = asyncio.create_task(self._session(self._serve, channel), name=f"bridge-{number}")
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)

    async def _session(self, serve: Callable[[Channel], Awaitable[None]], channel: Channel) -> None:
        try:
            await serve(channel)
        finally:
            self.drop(channel)
