"""Brings a database file to the current schema, or sets it aside when that cannot be done safely.

Migrations are numbered SQL files and only go forward. A file that is damaged, foreign or from a newer agtmux is
renamed, never overwritten, and the caller gets the sentence to show.
"""

from __future__ import annotations

import contextlib
import sqlite3
from importlib import resources
from pathlib import Path
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.store.errors import is_damage

# "agtm" in ASCII: tells our file from any other SQLite database.
APPLICATION_ID: Final = 0x6167746D
# A full check of a file this large would be felt at every start.
_CHECKED_UP_TO: Final = 256 * 1024 * 1024


def migrations() -> list[tuple[int, str]]:
    folder = resources.files("agtmux.store") / "migrations"
    scripts = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name[:4]), (folder / name).read_text("utf-8")) for name in scripts]


def prepare(path: Path, now: Timestamp) -> str | None:
    """Make `path` a database of the current schema. Returns what to tell the user if one was set aside."""
    notice = None
    if path.is_dir():
        raise AgtmuxError(ErrorCode.STORE, f"{path} cannot be opened: it is a directory; move it away")
    if path.exists() and (trouble := _trouble(path)) is not None:
        kind, sentence = trouble
        kept_as = _set_aside(path, kind, now)
        notice = f"{sentence} It is kept as {kept_as}, and a new database was begun."
    _migrate(path)
    return notice


def _trouble(path: Path) -> tuple[str, str] | None:
    newest = migrations()[-1][0]
    try:
        # Read-only: closing the last connection that could write would fold the log into a file we may not touch.
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            application_id = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
            if empty and version == 0:
                return None
            if application_id != APPLICATION_ID:
                return "foreign", f"{path} is a database of another program."
            if version > newest:
                return "newer", f"{path} was written by a newer agtmux (schema {version}, this one knows {newest})."
            if path.stat().st_size <= _CHECKED_UP_TO:
                verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if verdict != "ok":
                    return "corrupt", f"{path} is damaged ({verdict})."
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return "corrupt", f"{path} is damaged ({error})."
    return None


def _set_aside(path: Path, kind: str, now: Timestamp) -> Path:
    stamp = format_timestamp(now).replace(":", "").replace("-", "")[:15]
    base = f"{path.name}.{kind}-{stamp}"
    number = 0
    while (kept := path.with_name(base if number == 0 else f"{base}-{number}")).exists():
        number += 1
    # The log belongs to the database: whoever opens the kept file finds its last changes there.
    for suffix in ("-wal", "-shm", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(kept.with_name(kept.name + suffix))
    return kept


def _migrate(path: Path) -> None:
    path.touch(mode=0o600)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        for number, script in migrations():
            if number > version:
                connection.executescript(
                    f"BEGIN EXCLUSIVE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};\n"
                    f"PRAGMA user_version = {number};\nCOMMIT;"
                )
