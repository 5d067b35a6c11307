"""The daemon's end of a probe's line, wherever the other end is: questions and their answers, and what comes unasked.

Nothing here acts on what a probe says. Whatever does not fit the language ends the line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import printable
from agtmux.probe.frames import FrameError, Frames, encode
from agtmux.targets.bridges import Bridges, Channel
from agtmux.targets.messages import BridgeNotice, Hook, Looked, Notice, Reply, answer, read, refused

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CHUNK: Final = 65_536
_MOST_NOTICES: Final = 256
_MOST_A_SECOND: Final = 500
# Questions whose answers nobody waits for any more.
_MOST_GIVEN_UP: Final = 16


@dataclass(frozen=True, slots=True)
class Line:
    """Bytes to and from a probe. `close` may be called at any time, more than once, and does not wait."""

    read: Callable[[int], Awaitable[bytes]]
    write: Callable[[bytes], None]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Asked:
    # What an answer must be.
    kind: type[Any]
    answer: asyncio.Future[Any]


class Link:
    def __init__(
        self,
        line: Line,
        *,
        on_notice: Callable[[Notice], Awaitable[None]],
        on_refusal: Callable[[AgtmuxError], None],
        on_end: Callable[[], None],
        on_bridge: Callable[[Channel], Awaitable[None]] | None = None,
        admit: Callable[[Hook], Hook | None] = lambda hook: hook,
    ) -> None:
        """`admit` gives what is taken in of a hook's report: all, less, or nothing."""
        self._line = line
        self._admit = admit
        self._on_notice = on_notice
        self._on_refusal = on_refusal
        self._on_end = on_end
        self._bridges = Bridges(self._write, on_bridge)
        self._waiting: dict[int, _Asked] = {}
        self._given_up: set[int] = set()
        self._asked = 0
        self._ended: AgtmuxError | None = None
        # An answer does not wait until the store has taken what came before it.
        self._notices: asyncio.Queue[Notice] = asyncio.Queue(_MOST_NOTICES)
        self._second = 0
        self._in_second = 0
        self._tasks = [
            asyncio.create_task(self._listen(), name="probe-link"),
            asyncio.create_task(self._hand_on(), name="probe-notices"),
        ]

    @property
    def is_open(self) -> bool:
        return self._ended is None

    def begin(self, settings: dict[str, Any]) -> None:
        self._write({"do": "begin", **settings})

    async def look(self, captures: list[str], anew: list[str], limit: float) -> Looked:
        """Raises AgtmuxError when there is no answer, or the answer is that it cannot look."""
        return await self._ask({"do": "look", "captures": captures, "anew": anew, "limit": limit}, Looked)

    def follow(self, paths: list[str]) -> None:
        """Be told when one of these files grows, and of no others."""
        self._write({"do": "follow", "paths": paths})

    async def run(self, errand: dict[str, Any], kind: type[T], limit: float) -> T:
        """Have something done that is no look, and may take its time beside them. Raises AgtmuxError as the probe does,
        and TimeoutError after `limit` seconds: what comes of it is then not known."""
        number = self._asked + 1
        try:
            async with asyncio.timeout(limit):
                return await self._ask(errand, kind)
        except (TimeoutError, asyncio.CancelledError):
            self._given_up.add(number)
            if len(self._given_up) > _MOST_GIVEN_UP:
                self._end(unreachable("too much was asked of it without an answer; it is started again"))
            raise

    async def _ask(self, question: dict[str, Any], kind: type[T]) -> T:
        if self._ended is not None:
            raise self._ended
        number = self._asked = self._asked + 1
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[number] = _Asked(kind, waiting)
        try:
            self._write({**question, "id": number})
            return await waiting
        finally:
            del self._waiting[number]

    def _write(self, message: dict[str, Any]) -> None:
        try:
            self._line.write(encode(message))
        except (OSError, RuntimeError) as error:
            raise unreachable(f"the line is cut ({error}); it is opened again") from None

    async def close(self) -> None:
        self._end(unreachable("the line was closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        frames = Frames()
        try:
            while chunk := await self._line.read(_CHUNK):
                for frame in frames.feed(chunk):
                    await self._hear(frame)
            self._end(unreachable("the line was cut; it is opened again"))
        except OSError as error:
            self._end(unreachable(f"the line was cut: {error}"))
        except FrameError as error:
            self._violated(refused(f"it sends {error}"))
        except AgtmuxError as error:
            self._violated(error)
        except Exception as error:
            _log.exception("a probe's line failed")
            self._end(unreachable(f"the line failed: {type(error).__name__}"))
            raise
        finally:
            self._end(unreachable("the line was closed"))

    async def _hear(self, frame: bytes) -> None:
        said = read(frame)
        if isinstance(said, BridgeNotice):
            # They have a measure of their own, and wait for nobody.
            self._bridges.hear(said)
            return
        if not isinstance(said, Reply):
            self._count_notice()
            # Before it waits for its turn: answers are not to wait behind it.
            admitted = self._admit(said) if isinstance(said, Hook) else said
            if admitted is not None:
                await self._notices.put(admitted)
            return
        asked = self._waiting.get(said.id)
        if asked is None:
            if said.id not in self._given_up:
                raise refused("it answers what nobody asked")
            self._given_up.remove(said.id)
            return
        if not asked.answer.done():
            # Else given up in this very moment.
            _settle(said, asked)

    def _count_notice(self) -> None:
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._in_second > _MOST_A_SECOND:
            raise refused(f"it reports more than {_MOST_A_SECOND} times a second")

    async def _hand_on(self) -> None:
        while True:
            notice = await self._notices.get()
            try:
                await self._on_notice(notice)
            except Exception:
                _log.exception("what a probe reported could not be handled")

    def _violated(self, error: AgtmuxError) -> None:
        self._on_refusal(error)
        self._end(unreachable(error.message))

    def _end(self, error: AgtmuxError) -> None:
        if self._ended is not None:
            return
        self._ended = error
        self._line.close()
        self._bridges.end()
        for asked in self._waiting.values():
            if not asked.answer.done():
                asked.answer.set_exception(error)
        self._on_end()


def _settle(said: Reply, asked: _Asked) -> None:
    is_look = asked.kind is Looked
    if said.declined is not None and not is_look:
        asked.answer.set_exception(AgtmuxError(ErrorCode(said.declined.code), printable(said.declined.message)))
    elif said.done and not is_look:
        asked.answer.set_result(answer(said.done, asked.kind))
    elif said.looked is not None and is_look:
        asked.answer.set_result(said.looked)
    elif said.failed is not None and is_look:
        asked.answer.set_exception(unreachable(said.failed[:500] or "it cannot look, and does not say why"))
    else:
        raise refused("it answers another question than it was asked")


def unreachable(message: str, mend: str = "") -> AgtmuxError:
    """What a machine says of itself may be part of the message. `mend` is the command that mends it, if one does."""
    return AgtmuxError(ErrorCode.TARGET_UNREACHABLE, printable(message), {"mend": mend} if mend else None)
