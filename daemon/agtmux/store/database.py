"""The open database: a writer connection behind the one writer task, and a reader beside it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite

from agtmux.clock import Clock
from agtmux.store.errors import store_error
from agtmux.store.migrate import prepare
from agtmux.store.writer import Parameters, Writer

DATABASE_FILE = "agtmux.db"

_WRITER_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # What is deleted, secrets that slipped through included, is gone from the file as well.
    "PRAGMA secure_delete = ON",
    "PRAGMA busy_timeout = 2000",
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 16777216",
)


class Database:
    """`notice` is a sentence for the user when an unusable file had to be set aside at opening."""

    def __init__(
        self, path: Path, writing: aiosqlite.Connection, reading: aiosqlite.Connection, notice: str | None
    ) -> None:
        self.path = path
        self.notice = notice
        self._writing = writing
        self._reading = reading
        self.writer = Writer(writing, path)

    @classmethod
    async def open(cls, path: Path, clock: Clock) -> Database:
        try:
            notice = prepare(path, clock.now())
            writing = await aiosqlite.connect(path, isolation_level=None)
            for pragma in _WRITER_PRAGMAS:
                await writing.execute(pragma)
            reading = await aiosqlite.connect(path, isolation_level=None)
            await reading.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise store_error(error, path) from error
        database = cls(path, writing, reading, notice)
        database.writer.start()
        return database

    async def read(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        try:
            return list(await self._reading.execute_fetchall(sql, parameters))  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    async def close(self) -> None:
        try:
            await self.writer.stop()
        finally:
            await self._reading.close()
            await self._writing.close()
