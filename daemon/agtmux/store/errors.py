"""What SQLite's errors mean to a person, in one place."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from agtmux.domain.errors import AgtmuxError, ErrorCode

_SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk that holds {path} is full; free some space and send it again",
    sqlite3.SQLITE_READONLY: "{path} cannot be written; check its permissions and those of its directory",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened; check that its directory exists and is writable",
    sqlite3.SQLITE_IOERR: "the disk that holds {path} reported an error; check it, then restart the daemon",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged; restart the daemon and it will be set aside",
    sqlite3.SQLITE_NOTADB: "{path} is not a database; restart the daemon and it will be set aside",
    sqlite3.SQLITE_BUSY: "another program holds {path} locked; end it and send it again",
}


def primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def is_damage(error: sqlite3.Error) -> bool:
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def store_error(error: sqlite3.Error, path: Path) -> AgtmuxError:
    code = primary_code(error)
    sentence = _SENTENCES.get(code) if code is not None else None
    message = sentence.format(path=path) if sentence else f"the database {path} refused: {error}"
    return AgtmuxError(ErrorCode.STORE, message, {"sqlite": str(error)})
