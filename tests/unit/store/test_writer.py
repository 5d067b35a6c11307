"""The one writer: jobs go to the disk together, fail alone, and are acknowledged only when they are there."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.store.database import Database
from agtmux.store.writer import Transaction
from unit.builders import FakeTime

INSERT = "INSERT INTO adapters VALUES (?, 'type', '1', ?, 1, 1)"


@asynccontextmanager
async def a_database(tmp_path: Path):
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    try:
        yield database
    finally:
        await database.close()


def insert(name: str, text: str = "", then: Exception | None = None, returns: str = ""):
    def job(tx: Transaction) -> str:
        tx.execute(INSERT, (name, text))
        if then is not None:
            raise then
        return returns or name

    return job


def names(tmp_path: Path) -> list[str]:
    with closing(sqlite3.connect(tmp_path / "agtmux.db")) as connection:
        return [row[0] for row in connection.execute("SELECT adapter_name FROM adapters ORDER BY 1")]


async def together(database: Database, *jobs):
    return await asyncio.gather(*(database.writer.write(job) for job in jobs), return_exceptions=True)


async def test_what_is_acknowledged_is_in_the_file(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        assert await database.writer.write(insert("a")) == "a"
        assert names(tmp_path) == ["a"]


async def test_jobs_that_come_together_are_one_commit_each_with_its_own_answer(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        before = database.writer.commits
        assert await together(database, *(insert(f"{n:03}") for n in range(100))) == [f"{n:03}" for n in range(100)]
        assert database.writer.commits - before <= 2
        assert len(names(tmp_path)) == 100


FAILURES = {
    "our own": AgtmuxError(ErrorCode.RUNTIME_STALE, "no"),
    "a constraint": sqlite3.IntegrityError("no"),
    "a wrong statement": sqlite3.OperationalError("no"),
    "a bug": LookupError("no"),
    "a number too large": OverflowError("no"),
}


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES.keys())
async def test_a_failing_job_takes_nothing_of_the_others_with_it(tmp_path: Path, error: Exception) -> None:
    async with a_database(tmp_path) as database:
        first, failed, last = await together(database, insert("a"), insert("b", then=error), insert("c"))
        assert (first, last) == ("a", "c")
        expected = ErrorCode.STORE if isinstance(error, sqlite3.Error) else getattr(error, "code", None)
        assert getattr(failed, "code", None) is expected
        assert names(tmp_path) == ["a", "c"]


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES.keys())
async def test_the_writer_outlives_every_job(tmp_path: Path, error: Exception) -> None:
    async with a_database(tmp_path) as database:
        with pytest.raises(Exception, match="no"):
            await database.writer.write(insert("a", then=error))
        assert await database.writer.write(insert("b")) == "b"
        assert names(tmp_path) == ["b"]


async def test_a_constraint_really_broken_fails_only_its_own_job(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        results = await together(database, insert("a"), insert("a"), insert("b"))
        assert results[0] == "a"
        assert isinstance(results[1], AgtmuxError)
        assert results[1].code is ErrorCode.STORE
        assert results[2] == "b"
        assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("alone", [True, False])
async def test_a_full_disk_refuses_and_works_again_when_there_is_room(tmp_path: Path, alone) -> None:
    async with a_database(tmp_path) as database:
        (pages,) = (await database.read("PRAGMA page_count"))[0]
        await database.writer.write(lambda tx: tx.execute(f"PRAGMA max_page_count = {pages + 2}"))
        jobs = [insert("big", "x" * 200_000)] + ([] if alone else [insert("small")])
        results = await together(database, *jobs)
        refused = results[0]
        assert isinstance(refused, AgtmuxError)
        assert refused.code is ErrorCode.STORE
        assert refused.message.endswith("is full; free some space and send it again")
        assert "big" not in names(tmp_path)
        # Whatever was acknowledged is there, whatever was refused is not.
        assert ("small" in names(tmp_path)) == ("small" in results)
        assert database.writer.failures + database.writer.commits > 0
        await database.writer.write(lambda tx: tx.execute("PRAGMA max_page_count = 1073741823"))
        assert await together(database, insert("big", "x" * 200_000), insert("later")) == ["big", "later"]
        assert {"big", "later"} <= set(names(tmp_path))


async def test_what_was_queued_is_finished_before_the_writer_ends(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "agtmux.db", FakeTime().clock())
    waiting = [asyncio.create_task(database.writer.write(insert(str(n)))) for n in range(5)]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*waiting) == ["0", "1", "2", "3", "4"]
    assert len(names(tmp_path)) == 5


async def test_a_stopped_writer_refuses_instead_of_swallowing(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        pass
    with pytest.raises(AgtmuxError) as refused:
        await database.writer.write(insert("a"))
    assert refused.value.code is ErrorCode.DAEMON_UNAVAILABLE


async def test_a_caller_that_gave_up_harms_nobody(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        impatient = asyncio.create_task(database.writer.write(insert("a")))
        patient = asyncio.create_task(database.writer.write(insert("b")))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient == "b"
        assert await database.writer.write(insert("c")) == "c"


async def test_the_reader_sees_what_was_committed_and_cannot_write(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        await database.writer.write(insert("a"))
        assert await database.read("SELECT adapter_name FROM adapters") == [("a",)]
        with pytest.raises(AgtmuxError) as refused:
            await database.read("DELETE FROM adapters")
        assert refused.value.code is ErrorCode.STORE
        assert names(tmp_path) == ["a"]


async def test_every_commit_is_forced_to_the_disk_and_deletions_leave_nothing(tmp_path: Path) -> None:
    async with a_database(tmp_path) as database:
        for pragma, value in (("synchronous", 2), ("secure_delete", 1), ("foreign_keys", 1)):
            found = await database.writer.write(lambda tx, pragma=pragma: tx.fetch(f"PRAGMA {pragma}"))
            assert found == [(value,)], pragma
