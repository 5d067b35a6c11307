"""The one writer: jobs queue up, run in one transaction, and are acknowledged together once it is on the disk.

A job is a function that gets the transaction. A group of jobs is one trip to the writer's thread: a trip for every
statement costs more than the statements do. Each job has a savepoint of its own, so one that fails takes nothing of
the others with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.store.errors import store_error

_log = logging.getLogger(__name__)

T = TypeVar("T")
Parameters = Sequence[str | int | None]

_JOBS_PER_COMMIT: Final = 256
_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # What is deleted, secrets that slipped through included, is gone from the file as well.
    "PRAGMA secure_delete = ON",
    "PRAGMA busy_timeout = 2000",
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 16777216",
)


class Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Parameters = ()) -> None:
        self._connection.execute(sql, parameters)

    def insert(self, sql: str, parameters: Parameters) -> int:
        """The number of the new row."""
        return self._connection.execute(sql, parameters).lastrowid or 0

    def execute_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, rows)

    def fetch(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, parameters).fetchall()


Job = Callable[[Transaction], T]


class Writer:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "store-writer")
        self._connection: sqlite3.Connection | None = None
        self._queue: asyncio.Queue[tuple[Job[Any], asyncio.Future[Any]] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.commits = 0
        self.failures = 0
        self.last_failed = False

    async def open(self) -> None:
        """Raises sqlite3.Error when the file cannot be used."""
        try:
            await self._in_thread(self._connect)
        except sqlite3.Error:
            self._thread.shutdown()
            raise
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def write(self, job: Job[T]) -> T:
        """Run `job`; returns what it returned once it is durable, or raises with nothing of it kept."""
        return await self.begin(job)

    def begin(self, job: Job[T]) -> asyncio.Future[T]:
        """The same without waiting for it. Whoever cancels the future does not hear of it, but it is done."""
        if self._task is None or self._task.done():
            raise AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "the daemon is stopping; try again in a moment")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((job, future))
        return future

    async def checkpoint(self) -> None:
        """Bring what is in the log into the file, and the file to the size that it has by then."""
        await self._in_thread(self._checkpoint)

    async def close(self) -> None:
        """Finish what was queued, then end."""
        try:
            if self._task is not None:
                self._queue.put_nowait(None)
                await self._task
        finally:
            if self._connection is not None:
                await self._in_thread(self._connection.close)
            self._thread.shutdown()

    async def _run(self) -> None:
        stopping = False
        while not stopping:
            group = [await self._queue.get()]
            while len(group) < _JOBS_PER_COMMIT and not self._queue.empty():
                group.append(self._queue.get_nowait())
            stopping = None in group
            entries = [entry for entry in group if entry is not None]
            outcomes = await self._in_thread(self._commit, [job for job, _ in entries])
            for (_, future), outcome in zip(entries, outcomes, strict=True):
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        for pragma in _PRAGMAS:
            self._connection.execute(pragma)

    def _checkpoint(self) -> None:
        if self._connection is not None:
            # Whoever reads meanwhile keeps some of it for the next time.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _commit(self, jobs: list[Job[Any]]) -> list[Any]:
        """In the writer's thread. One outcome a job: what it returned, or the error that undid it."""
        connection = self._connection
        if connection is None:
            raise LookupError("the writer is not open")
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._attempt(connection, job) for job in jobs]
            connection.execute("COMMIT")
        except Exception as error:
            # Whatever went wrong, the next jobs still need their writer.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            self.last_failed = isinstance(error, sqlite3.Error)
            self.failures += self.last_failed
            return [self._reported(error)] * len(jobs)
        self.commits += 1
        self.last_failed = False
        return outcomes

    def _attempt(self, connection: sqlite3.Connection, job: Job[T]) -> T | Exception:
        connection.execute("SAVEPOINT job")
        try:
            result = job(Transaction(connection))
        except Exception as error:
            if not connection.in_transaction:
                # SQLite has given the whole transaction up, as it does when the disk is full: all jobs hear of it.
                raise
            connection.execute("ROLLBACK TO job")
            return self._reported(error)
        connection.execute("RELEASE job")
        return result

    def _reported(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            return store_error(error, self._path)
        if not isinstance(error, AgtmuxError):
            _log.error("a write failed", exc_info=error)
        return error
