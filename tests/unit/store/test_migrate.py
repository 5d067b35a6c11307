"""A database is brought to the current schema, or set aside with a notice and never overwritten."""

import hashlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.store.database import Database
from agtmux.store.migrate import APPLICATION_ID, migrations, prepare
from unit.builders import T0, FakeTime, a_core, an_event, seen

NEWEST = migrations()[-1][0]


def ask(path: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def make(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def schema(path: Path) -> list[tuple]:
    return ask(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY name")


def set_aside(directory: Path, kind: str) -> Path:
    """The one file that was set aside, without its log."""
    (kept,) = [file for file in directory.iterdir() if re.fullmatch(rf"agtmux\.db\.{kind}-[0-9T]+", file.name)]
    return kept


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agtmux.db"


def test_a_new_file_gets_the_current_schema_and_is_for_its_owner_alone(path: Path) -> None:
    assert prepare(path, T0) is None
    assert ask(path, "PRAGMA user_version") == [(NEWEST,)]
    assert ask(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_file_is_begun_and_not_set_aside(path: Path) -> None:
    path.touch()
    assert prepare(path, T0) is None
    assert ask(path, "PRAGMA user_version") == [(NEWEST,)]
    assert [file.name for file in path.parent.iterdir()] == ["agtmux.db"]


def test_preparing_again_changes_nothing(path: Path) -> None:
    prepare(path, T0)
    before = schema(path)
    make(path, "INSERT INTO adapters VALUES ('a', 'b', 'c', 'd', 1, 1)")
    content = path.read_bytes()
    for _ in range(2):
        assert prepare(path, T0) is None
    assert schema(path) == before
    assert path.read_bytes() == content


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, NEWEST + 1))


TABLES = {
    *("targets", "panes", "runtimes", "events", "event_inbox", "runtime_source_cursors", "states"),
    *("action_snapshots", "actions", "adapters"),
}
# Seed 003 §7.3.1: index → unique, and what it must cover.
INDEXES = [
    (r"UNIQUE INDEX \w+ ON runtimes \(target_id, pane_id\) WHERE ended_at IS NULL"),
    (r"UNIQUE INDEX \w+ ON actions \(action_type, request_ref\)"),
    (r"INDEX \w+ ON events \(runtime_id, source, ingested_at DESC\)"),
    (r"INDEX \w+ ON events \(ingested_at DESC\)"),
    (r"INDEX \w+ ON event_inbox \(status, ingested_at\)"),
    (r"INDEX \w+ ON states \(updated_at DESC\)"),
    (r"INDEX \w+ ON states \(state, updated_at DESC\)"),
    (r"UNIQUE INDEX \w+ ON events \(runtime_id, source, dedupe_key\)"),
    (r"UNIQUE INDEX \w+ ON event_inbox \(target_id, pane_id, source, dedupe_key\)"),
]


def test_the_specs_tables_and_indexes_are_there(path: Path) -> None:
    prepare(path, T0)
    found = schema(path)
    assert {name for kind, name, _ in found if kind == "table"} >= TABLES
    statements = [sql for kind, _, sql in found if kind == "index" and sql]
    for pattern in INDEXES:
        assert any(re.search(pattern, sql) for sql in statements), pattern


def corrupt_page(path: Path) -> None:
    prepare(path, T0)
    make(path, "PRAGMA journal_mode = DELETE")
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 3] = b"\xaa" * 4096
    path.write_bytes(content)


UNUSABLE = {
    "text": ("corrupt", lambda path: path.write_bytes(b"my precious notes\n" * 100)),
    "a few bytes": ("corrupt", lambda path: path.write_bytes(b"\x00\x01")),
    "half a header": ("corrupt", lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)),
    "a damaged page": ("corrupt", corrupt_page),
    "another program's": ("foreign", lambda path: make(path, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")),
    "another program's, marked": ("foreign", lambda path: make(path, "PRAGMA application_id = 7; CREATE TABLE t (a)")),
    "a version without a schema": ("foreign", lambda path: make(path, "PRAGMA user_version = 3")),
    "tomorrow's": (
        "newer",
        lambda path: (
            prepare(path, T0),
            make(path, f"PRAGMA journal_mode = DELETE; PRAGMA user_version = {NEWEST + 1}"),
        ),
    ),
}


@pytest.mark.parametrize(("kind", "spoil"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_file_is_set_aside_byte_for_byte_and_a_new_one_begun(path: Path, kind: str, spoil) -> None:
    spoil(path)
    content = path.read_bytes()
    database = await Database.open(path, FakeTime().clock())
    await database.close()
    (kept,) = [file for file in path.parent.iterdir() if file.name.startswith(f"agtmux.db.{kind}-")]
    assert kept.read_bytes() == content
    assert database.notice is not None
    assert str(path) in database.notice
    assert str(kept) in database.notice
    assert ask(path, "PRAGMA user_version") == [(NEWEST,)]


def test_what_was_set_aside_before_is_never_overwritten(path: Path) -> None:
    for number in range(3):
        path.write_bytes(b"notes %d " % number * 99)
        assert prepare(path, T0) is not None
        path.unlink()
    kept = sorted(file.read_bytes()[:7] for file in path.parent.iterdir())
    assert kept == [b"notes 0", b"notes 1", b"notes 2"]


async def test_the_log_of_a_killed_daemon_goes_along_with_its_database(path: Path) -> None:
    """The newest of its changes are only there."""
    async with a_core(path.parent) as core:
        await core.look(seen())
        await core.take(an_event("precious"))
        copies = {name: (path.parent / name).read_bytes() for name in ("agtmux.db", "agtmux.db-wal")}
    for name, content in copies.items():
        (path.parent / name).write_bytes(content)
    make(path, f"PRAGMA user_version = {NEWEST + 1}")
    notice = prepare(path, T0)
    assert notice is not None
    kept = set_aside(path.parent, "newer")
    assert ask(kept, "SELECT event_id FROM events") == [("precious",)]
    assert ask(path, "SELECT event_id FROM events") == []


def test_the_log_of_a_file_that_is_no_database_is_kept_beside_it(path: Path) -> None:
    path.write_bytes(b"not a database " * 99)
    path.with_name("agtmux.db-wal").write_bytes(b"its log")
    assert prepare(path, T0) is not None
    kept = set_aside(path.parent, "corrupt")
    assert kept.with_name(f"{kept.name}-wal").read_bytes() == b"its log"


def test_a_newer_database_is_kept_byte_for_byte_with_its_log(path: Path, tmp_path: Path) -> None:
    """Merely to look at it must not fold the log into the file: only the newer agtmux knows how."""
    live = tmp_path / "live" / "agtmux.db"
    live.parent.mkdir()
    prepare(live, T0)
    contents = {}
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
        connection.execute("INSERT INTO adapters VALUES ('a', 'b', 'c', 'd', 1, 1)")
        # As a daemon leaves it that is killed now.
        for suffix in ("", "-wal"):
            contents[suffix] = live.with_name(f"agtmux.db{suffix}").read_bytes()
            path.with_name(f"agtmux.db{suffix}").write_bytes(contents[suffix])
    assert contents["-wal"]
    assert prepare(path, T0) is not None
    kept = set_aside(path.parent, "newer")
    assert {suffix: kept.with_name(kept.name + suffix).read_bytes() for suffix in contents} == contents


async def test_a_directory_that_is_not_there_has_its_sentence(tmp_path: Path) -> None:
    with pytest.raises((AgtmuxError, FileNotFoundError)) as refused:
        await Database.open(tmp_path / "none" / "agtmux.db", FakeTime().clock())
    assert not isinstance(refused.value, AgtmuxError) or refused.value.code is ErrorCode.STORE


async def test_a_path_that_is_a_directory_has_its_sentence(path: Path) -> None:
    path.mkdir()
    with pytest.raises(AgtmuxError, match="cannot be opened") as refused:
        await Database.open(path, FakeTime().clock())
    assert refused.value.code is ErrorCode.STORE


async def test_what_an_earlier_daemon_wrote_moves_the_clock_on(tmp_path: Path) -> None:
    machine = FakeTime()
    async with a_core(tmp_path, machine) as core:
        await core.look(seen())
        await core.take(an_event("e1", at=500))
    machine.wall -= 3_600_000_000
    async with a_core(tmp_path, machine) as core:
        assert core.clock.now() > an_event(at=500).ingested_at
        assert core.clock.jumps == 1


FROZEN = {
    1: "b9d466cbae7ea44d82fae313da2cb3485de429ff028d2def70798dd49450b948",
    2: "1cd0a4c0f8a371e205300f26e0fd7d42299b4ad1e4f3b394cb91760e75693407",
    3: "ce107d454deac74a4bfa02d8922d44e6cefbca8c528c4c5fff5a54a3ba2ceaac",
    4: "caedba515f86a8f3791b11208351209747e8d73ef4bb7a44b34d9f7e90838d5e",
    5: "89a4a28b0012845aa612bbab1b44a7e65bffe66ffc9c57388467570f9a21ca5a",
    6: "70eb858a1c4ab4493eff552e5cbf9aebeeeb24a4bef023729716a8d037b93679",
    7: "41cbb791afa93c0ba54ac7fb5f5155ef3ea63ec41137bbbcc62675ef1487da9c",
    8: "0bafb53e016717be59c2304bd365fb0da911a5f7d24cdf56a32254979d5c9c6b",
}


def test_a_migration_that_users_have_run_never_changes() -> None:
    """Forward only: what a schema lacks is a new file, and a line more here."""
    assert {number: hashlib.sha256(script.encode()).hexdigest() for number, script in migrations()} == FROZEN
