"""The one writer: jobs queue up, run in one transaction, and are acknowledged together once it is on the disk.

A job is a coroutine function that gets the transaction. Each has a savepoint of its own, so one that fails takes
nothing of the others with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.store.errors import store_error

_log = logging.getLogger(__name__)

T = TypeVar("T")
Parameters = Sequence[str | int | None]

_JOBS_PER_COMMIT: Final = 256


class Transaction:
    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, parameters: Parameters = ()) -> None:
        await self._connection.execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        await self._connection.executemany(sql, rows)

    async def fetch(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        return list(await self._connection.execute_fetchall(sql, parameters))  # type: ignore[arg-type]


Job = Callable[[Transaction], Awaitable[T]]


class Writer:
    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._queue: asyncio.Queue[tuple[Job[Any], asyncio.Future[Any]] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.commits = 0
        self.failures = 0
        self.last_failed = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def write(self, job: Job[T]) -> T:
        """Run `job`; returns what it returned once it is durable, or raises E_STORE with nothing of it kept."""
        if self._task is None or self._task.done():
            raise AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "the daemon is stopping; try again in a moment")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((job, future))
        return await future

    async def stop(self) -> None:
        """Finish what was queued, then end."""
        if self._task is not None:
            self._queue.put_nowait(None)
            await self._task

    async def _run(self) -> None:
        stopping = False
        while not stopping:
            first = await self._queue.get()
            group = [first]
            while len(group) < _JOBS_PER_COMMIT and not self._queue.empty():
                group.append(self._queue.get_nowait())
            stopping = None in group
            await self._commit([entry for entry in group if entry is not None])

    async def _commit(self, group: list[tuple[Job[Any], asyncio.Future[Any]]]) -> None:
        outcomes: list[Any]
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
            if len(group) == 1:
                # Alone in its transaction a job needs no savepoint, and each is a trip to the thread.
                outcomes = [await group[0][0](Transaction(self._connection))]
            else:
                outcomes = [await self._in_savepoint(job) for job, _ in group]
            await self._connection.execute("COMMIT")
            self.commits += 1
            self.last_failed = False
        except Exception as error:
            # Whatever a job did wrong, the next ones still need their writer.
            with contextlib.suppress(sqlite3.Error):
                await self._connection.execute("ROLLBACK")
            self.last_failed = isinstance(error, sqlite3.Error)
            self.failures += self.last_failed
            outcomes = [self._reported(error)] * len(group)
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    async def _in_savepoint(self, job: Job[T]) -> T | Exception:
        """What the job returned, or the error that undid it and nothing else."""
        await self._connection.execute("SAVEPOINT job")
        try:
            result = await job(Transaction(self._connection))
        except Exception as error:
            # Where SQLite has given the whole transaction up, this raises too and all jobs hear of it.
            await self._connection.execute("ROLLBACK TO job")
            return self._reported(error)
        await self._connection.execute("RELEASE job")
        return result

    def _reported(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            return store_error(error, self._path)
        if not isinstance(error, AgtmuxError):
            _log.error("a write failed", exc_info=error)
        return error
