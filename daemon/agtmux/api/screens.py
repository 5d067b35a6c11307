"""Live screens: a pane is captured while somebody looks at it, once for all who do, and told of when it has changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from agtmux.actions.chats import recent
from agtmux.actions.reach import front_process, inhabited
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.observe.world import PaneKey
from agtmux.service import Service
from agtmux.targets.messages import Glanced

# Seconds between two looks: at what moves, and at what has not moved for a while.
_SOONEST: Final = 0.33
_LATEST: Final = 1.0
_SLOWER: Final = 1.25
_AFTER_FAILURE: Final = 3.0
# Of a chat session, which has no screen but what was said last.
_CHAT_LINES: Final = 40

# What a capture may hold beside text: colours, which stay; letters that stand for lines, which become lines; links
# and whatever else steers a terminal, which go.
_STEERING: Final = re.compile(
    r"(\x1b\[[0-9;:]{0,120}m)|\x0e([^\x0f\x1b]*)\x0f?|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;:?]*[A-Za-z]|\x1b."
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_LINES: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


class Screen(NamedTuple):
    runtime_id: str
    output: str
    at: Timestamp


def legible(text: str) -> str:
    """The same with its colours, and with nothing else that is no text."""
    return _STEERING.sub(lambda found: found[1] or (found[2] or "").translate(_LINES), text).rstrip("\n ")


class Screens:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._looks: dict[PaneKey, _Look] = {}

    async def follow(self, key: PaneKey, record: Record) -> AsyncIterator[Screen | AgtmuxError]:
        """What that runtime shows, and again whenever it has changed. Ends with an error once another is there."""
        look = self._looks.get(key)
        if look is None or look.runtime_id != record.runtime.runtime_id or look.task.done():
            look = self._looks[key] = _Look(self._service, key, record)
        look.readers += 1
        seen = 0
        try:
            while True:
                if look.count != seen:
                    seen = look.count
                    assert look.last is not None
                    yield look.last
                if look.is_over:
                    return
                if look.count == seen:
                    await look.changed()
        finally:
            look.readers -= 1
            if not look.readers:
                look.task.cancel()
                if self._looks.get(key) is look:
                    del self._looks[key]


class _Look:
    def __init__(self, service: Service, key: PaneKey, record: Record) -> None:
        self._service = service
        self._key = key
        self._record = record
        self.runtime_id = record.runtime.runtime_id
        self.readers = 0
        self.count = 0
        self.last: Screen | AgtmuxError | None = None
        self.is_over = False
        self._waiting: list[asyncio.Future[None]] = []
        self.task = asyncio.create_task(self._run(), name=f"screen {key[1]}")

    async def changed(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    async def _run(self) -> None:
        pause, shown = _SOONEST, None
        while not self.is_over:
            try:
                text = await self._captured()
                if text != shown:
                    shown, pause = text, _SOONEST
                    self._tell(Screen(self.runtime_id, text, self._service.clock.now()))
                else:
                    pause = min(pause * _SLOWER, _LATEST)
            except AgtmuxError as error:
                shown, pause = None, _AFTER_FAILURE
                self.is_over = error.code in (ErrorCode.RUNTIME_STALE, ErrorCode.REF_NOT_FOUND)
                if self.is_over or not _is_same(self.last, error):
                    self._tell(error)
            await asyncio.sleep(pause)

    async def _captured(self) -> str:
        now = self._service.world.records.get(self._key)
        if now is None or now.runtime.runtime_id != self.runtime_id or now.runtime.ended_at is not None:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "what was in that pane has ended")
        if (session := self._service.chats.of(now)) is not None:
            return legible(await recent(session, _CHAT_LINES))
        fleet = self._service.fleet
        errand: dict[str, Any] = {"do": "glance", **inhabited(fleet, now), "agent": front_process(fleet, now)}
        return legible((await fleet.run(self._key[0], errand, Glanced)).text)

    def _tell(self, what: Screen | AgtmuxError) -> None:
        self.last = what
        self.count += 1
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


def _is_same(before: object, error: AgtmuxError) -> bool:
    return isinstance(before, AgtmuxError) and (before.code, before.message) == (error.code, error.message)
