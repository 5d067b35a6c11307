"""The daemon's end of a probe's line, wherever the other end is: questions and their answers, and what comes unasked.

Nothing here acts on what a probe says. Whatever does not fit the language ends the line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.frames import FrameError, Frames, encode
from agtmux.targets.messages import Looked, Notice, Reply, read, refused

_log = logging.getLogger(__name__)

_CHUNK: Final = 65_536
_MOST_NOTICES: Final = 256
_MOST_A_SECOND: Final = 500


@dataclass(frozen=True, slots=True)
class Line:
    """Bytes to and from a probe. `close` may be called at any time, more than once, and does not wait."""

    read: Callable[[int], Awaitable[bytes]]
    write: Callable[[bytes], None]
    close: Callable[[], None]


class Link:
    def __init__(
        self,
        line: Line,
        *,
        on_notice: Callable[[Notice], Awaitable[None]],
        on_refusal: Callable[[AgtmuxError], None],
        on_end: Callable[[], None],
    ) -> None:
        self._line = line
        self._on_notice = on_notice
        self._on_refusal = on_refusal
        self._on_end = on_end
        self._waiting: dict[int, asyncio.Future[Looked]] = {}
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
        if self._ended is not None:
            raise self._ended
        number = self._asked = self._asked + 1
        answer: asyncio.Future[Looked] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._write({"do": "look", "id": number, "captures": captures, "anew": anew, "limit": limit})
            return await answer
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
        if not isinstance(said, Reply):
            self._count_notice()
            await self._notices.put(said)
            return
        answer = self._waiting.get(said.id)
        if answer is None:
            raise refused("it answers what nobody asked")
        if answer.done():
            # Given up in this very moment.
            return
        if said.looked is not None:
            answer.set_result(said.looked)
        else:
            answer.set_exception(unreachable((said.failed or "")[:500] or "it cannot look, and does not say why"))

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
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(error)
        self._on_end()


def unreachable(message: str) -> AgtmuxError:
    """What a machine says of itself may be part of the message, and must not steer anybody's terminal."""
    legible = "".join(char if char.isprintable() else " " for char in message)
    return AgtmuxError(ErrorCode.TARGET_UNREACHABLE, legible)
