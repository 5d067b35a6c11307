"""The open database: the one writer, and a reader beside it that never waits for it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite

from agtmux.clock import Clock
from agtmux.store.errors import store_error
from agtmux.store.migrate import prepare
from agtmux.store.writer import Parameters, Writer

DATABASE_FILE = "agtmux.db"


class Database:
    """`notice` is a sentence for the user when an unusable file had to be set aside at opening."""

    def __init__(self, path: Path, writer: Writer, reading: aiosqlite.Connection, notice: str | None) -> None:
        self.path = path
        self.notice = notice
        self.writer = writer
        self._reading = reading

    @classmethod
    async def open(cls, path: Path, clock: Clock) -> Database:
        try:
            notice = prepare(path, clock.now())
            writer = Writer(path)
            await writer.open()
            try:
                reading = await aiosqlite.connect(path, isolation_level=None)
                await reading.execute("PRAGMA query_only = ON")
            except sqlite3.Error:
                await writer.close()
                raise
        except sqlite3.Error as error:
            raise store_error(error, path) from error
        return cls(path, writer, reading, notice)

    async def read(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        try:
            return list(await self._reading.execute_fetchall(sql, parameters))  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def size(self) -> int:
        """Bytes of the file and of its log, as they are on the disk."""
        total = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                total += self.path.with_name(self.path.name + suffix).stat().st_size
        return total

    async def close(self) -> None:
        try:
            await self.writer.close()
        finally:
            await self._reading.close()
