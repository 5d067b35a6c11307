"""Keeps the daemon's own tasks going: what fails is logged, counted and begun again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

_log = logging.getLogger(__name__)

_BEGIN_AGAIN: Final = 5.0


class Supervisor:
    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Callable[[], Awaitable[None]], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._keep_going(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_going(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """Until it is done or cancelled."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                self.failures[name] += 1
                _log.error("%s failed and is begun again", name, exc_info=error)
                await asyncio.sleep(_BEGIN_AGAIN)
