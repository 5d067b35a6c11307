"""How a target is looked at, wherever it is: a line to its probe, opened when needed, and what was seen on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import Limits
from agtmux.domain.panes import Target
from agtmux.targets.bridges import Channel
from agtmux.targets.link import Line, Link, unreachable
from agtmux.targets.messages import MOST_PANES, Begun, Door, Hook, Looked, Notice, PaneRow, Screen, refused

T = TypeVar("T")

# A probe whose daemon is gone without a word, as when a route is dropped, ends by itself after this.
_SILENCE: Final = 20.0
# Characters that one target may make us keep.
_MOST_TEXT: Final = 8_000_000
# How much of the time for an answer the other end may use.
_OF_THE_LIMIT: Final = 0.8


@dataclass(frozen=True, slots=True)
class Sighting:
    """A target as it is now."""

    # Pid and start of the tmux server, empty when there is none.
    server: str
    # By how many seconds this machine's clock is ahead of its.
    ahead: float
    panes: dict[str, PaneRow]
    # Those that have changed since the last sighting.
    screens: list[Screen]
    # Whether the probe says so by itself when something may have changed.
    is_metered: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What the last look told of the machine itself."""

    tmux_said: str
    has_server: bool
    ahead: float


class ProbeExecutor:
    """Looks at one tmux server through a probe beside it."""

    def __init__(
        self,
        target: Target,
        open_line: Callable[[], Awaitable[Line]],
        *,
        limits: Limits,
        hooks: bool,
        session_files: list[dict[str, Any]],
        on_notice: Callable[[Notice], Awaitable[None]],
        on_refusal: Callable[[AgtmuxError], None],
        on_end: Callable[[], None],
        on_server: Callable[[], None],
        on_bridge: Callable[[Channel], Awaitable[None]] | None = None,
        admit: Callable[[Hook], Hook | None] = lambda hook: hook,
    ) -> None:
        self._target = target
        self._admit = admit
        self._open_line = open_line
        self._limits = limits
        self._begin = {
            "tmux_socket": target.tmux_socket,
            "silence": _SILENCE,
            "hooks": hooks,
            "watch": session_files,
        }
        self._on_notice = on_notice
        self._on_refusal = on_refusal
        self._on_end = on_end
        self._on_server = on_server
        self._on_bridge = on_bridge
        # The tmux server that was seen last on this line.
        self._server = ""
        self._link: Link | None = None
        self._has_looked = False
        # Files whose growth is to be told.
        self._followed: list[str] = []
        self._panes: dict[str, PaneRow] = {}
        self._sizes: dict[str, int] = {}
        # What the probe said of itself when the line was opened.
        self.begun: Begun | None = None
        # Why its hooks are not heard.
        self.complaint = ""
        self.known: Known | None = None

    async def look(self, captures: list[str], anew: list[str]) -> Sighting:
        """Raises AgtmuxError(E_TARGET_UNREACHABLE) if it cannot be looked at."""
        try:
            link = await self._connected()
            asked_at = time.time()
            looked = await self._asked(link, captures, anew)
            # The answer's clock was read between the two.
            return await self._see(looked, captures, (asked_at + time.time()) / 2 - looked.now)
        except AgtmuxError as error:
            name = self._target.target_id
            message = error.message if error.message.startswith(name) else f"{name}: {error.message}"
            raise AgtmuxError(error.code, message, {**error.details, "target": name}) from None

    async def run(self, errand: dict[str, Any], kind: type[T], limit: float | None = None) -> T:
        """Have something done there beside the looking, which is what opens the line. Raises AgtmuxError. `limit`, in
        seconds, is for what may take longer than a command usually does."""
        name, limit = self._target.target_id, limit or self._limits.command / SECOND
        link = self._link
        try:
            if link is None:
                raise unreachable("it is not connected; try again")
            return await link.run({**errand, "limit": limit * _OF_THE_LIMIT}, kind, limit)
        except TimeoutError:
            raise AgtmuxError(
                ErrorCode.TIMEOUT,
                f"{name}: no answer within {limit:g} seconds, so what came of it is not known; look at its status",
            ) from None
        except AgtmuxError as error:
            raise AgtmuxError(error.code, f"{name}: {error.message}", error.details) from None

    def follow(self, paths: list[str]) -> None:
        """Have it told when one of these files grows, also after the line was opened anew."""
        if paths != self._followed:
            self._followed = paths
            if self._link is not None and self._link.is_open:
                self._link.follow(paths)

    @property
    def is_reachable(self) -> bool:
        """Whether the line is open and the target was looked at on it."""
        return self._link is not None and self._link.is_open and self._has_looked

    def pane(self, pane_id: str) -> PaneRow | None:
        """As it was last seen."""
        return self._panes.get(pane_id)

    async def close(self) -> None:
        self._server = ""
        link, self._link = self._link, None
        self._has_looked = False
        self._panes.clear()
        self._sizes.clear()
        if link is not None:
            await link.close()

    async def _connected(self) -> Link:
        if self._link is not None and self._link.is_open:
            return self._link
        await self.close()
        try:
            line = await self._open_line()
        except (OSError, RuntimeError) as error:
            # No descriptor or no thread left, mostly.
            raise unreachable(f"it cannot be connected to: {error}") from None
        self.begun = None
        self.complaint = ""
        self._link = Link(
            line,
            on_notice=self._hear,
            on_refusal=self._on_refusal,
            on_end=self._on_end,
            on_bridge=self._on_bridge,
            admit=self._admit,
        )
        self._link.begin(self._begin)
        if self._followed:
            self._link.follow(self._followed)
        return self._link

    async def _asked(self, link: Link, captures: list[str], anew: list[str]) -> Looked:
        limit = self._limits.command / SECOND
        try:
            async with asyncio.timeout(limit):
                return await link.look(captures, anew, limit * _OF_THE_LIMIT)
        except TimeoutError:
            # What it would still say is about a look that nobody waits for.
            await self.close()
            raise unreachable(f"no answer within {limit:g} seconds; it is tried again") from None
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _hear(self, notice: Notice) -> None:
        if isinstance(notice, Begun):
            self.begun = self.begun or notice
        elif isinstance(notice, Door):
            self.complaint = notice.complaint
        else:
            await self._on_notice(notice)

    async def _see(self, looked: Looked, captures: list[str], ahead: float) -> Sighting:
        for pane_id in looked.gone:
            self._panes.pop(pane_id, None)
            self._sizes.pop(pane_id, None)
        for row in looked.panes:
            self._panes[row.pane_id] = row
            self._sizes[row.pane_id] = _size(row)
        is_too_much = sum(self._sizes.values()) + sum(len(each.text) for each in looked.screens) > _MOST_TEXT
        if is_too_much or len(self._panes) > MOST_PANES or (self._panes and not looked.server):
            error = refused("it tells of more panes than can be, or of panes without a server")
            self._on_refusal(error)
            await self.close()
            raise unreachable(error.message)
        self._has_looked = True
        self.known = Known(looked.tmux, bool(looked.server), ahead)
        is_new = bool(looked.server) and looked.server != self._server
        self._server = looked.server
        if is_new:
            self._on_server()
        asked = self._panes.keys() & set(captures)
        screens = [screen for screen in looked.screens if screen.pane_id in asked]
        return Sighting(looked.server, ahead, dict(self._panes), screens, looked.is_metered)


def _size(row: PaneRow) -> int:
    about = (row.session_name, row.window_name, row.title, row.cwd, row.branch, row.command, row.mark)
    return sum(map(len, about)) + sum(sum(map(len, each.argv)) for each in row.foreground)
