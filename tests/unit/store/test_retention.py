"""Payloads are forgotten after seven days, rows after fourteen, and nothing else ever is."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.mail import Party, Status
from agtmux.domain.panes import HOST
from agtmux.domain.redact import Redacted
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.directory import USER
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox, Wanted
from agtmux.store.retention import Retention, forget, shrink
from agtmux.store.writer import Transaction
from support.chance import any_seed
from unit.builders import PANE, T0, FakeTime, a_core, a_pane, an_event, rows, seen, unbound

DAY = 86_400
RETENTION = Retention(payload=parse_duration("7d"), metadata=parse_duration("14d"))


def days(count: float) -> Timestamp:
    return Timestamp(T0 + round(count * DAY * SECOND))


def payload_of(event_id: str, at: float, **other):
    return replace(an_event(event_id, at=at, **other), raw_payload=Redacted("long ago"))


async def stored(tmp_path: Path, core) -> None:
    """An agent with events of day 0 and day 1 that is still there; one that is gone; the inbox in all its states."""
    await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
    other = core.world.records[HOST, "%2"].runtime.runtime_id
    await core.take(
        payload_of("old", 0),
        payload_of("new", DAY),
        payload_of("gone", 0, runtime_id=other),
        unbound(payload_of("bound", 0)),
        unbound(payload_of("lost", 0), target_id="vm9"),
        unbound(payload_of("waiting", 5), pane_id="%9"),
    )
    await core.look(seen())


@pytest.mark.parametrize(
    ("now", "payloads", "events", "inbox"),
    [
        (days(7), {"old", "new", "gone", "bound"}, {"old", "new", "gone", "bound"}, {"bound", "lost", "waiting"}),
        (days(7.5), {"new"}, {"old", "new", "gone", "bound"}, {"bound", "lost", "waiting"}),
        (days(14), set(), {"old", "new", "gone", "bound"}, {"bound", "lost", "waiting"}),
        (days(14.5), set(), {"new"}, {"waiting"}),
        (days(99), set(), set(), {"waiting"}),
    ],
)
async def test_each_thing_is_forgotten_in_its_time(tmp_path: Path, now, payloads, events, inbox) -> None:
    async with a_core(tmp_path) as core:
        await stored(tmp_path, core)
        before = dict(core.world.records)
        await forget(core.database, RETENTION, now)
        assert core.world.records == before
    kept = rows(tmp_path, "SELECT event_id, raw_payload FROM events")
    assert {row[0] for row in kept} == events
    assert {row[0] for row in kept if row[1]} == payloads
    assert {row[0] for row in rows(tmp_path, "SELECT inbox_id FROM event_inbox")} == inbox


async def test_an_agent_that_never_said_a_word_is_never_forgotten(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await forget(core.database, RETENTION, days(10_000))
    assert len(rows(tmp_path, "SELECT * FROM runtimes WHERE ended_at IS NULL")) == 1


async def test_what_a_living_pane_needs_is_never_forgotten(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await stored(tmp_path, core)
        record = core.record
        await forget(core.database, RETENTION, days(10_000))
    assert rows(tmp_path, "SELECT runtime_id FROM runtimes") == [(record.runtime.runtime_id,)]
    for table in ("states", "panes", "targets", "runtime_source_cursors"):
        assert len(rows(tmp_path, f"SELECT * FROM {table}")) == 1, table
    async with a_core(tmp_path, FakeTime(days(10_000))) as core:
        assert core.world.records == {(HOST, PANE): record}


async def test_a_runtime_that_ended_stays_as_long_as_rows_do(tmp_path: Path) -> None:
    count = "SELECT count(*) FROM runtimes WHERE ended_at IS NOT NULL"
    async with a_core(tmp_path) as core:
        await stored(tmp_path, core)
        for now, left in ((days(13.9), 1), (days(14.1), 0)):
            await forget(core.database, RETENTION, now)
            assert rows(tmp_path, count) == [(left,)]


async def test_nothing_due_is_nothing_done(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await stored(tmp_path, core)
        assert await forget(core.database, RETENTION, days(1)) == 0
        assert await forget(core.database, RETENTION, days(99)) > 0
        assert await forget(core.database, RETENTION, days(99)) == 0


async def test_more_than_one_bite_is_forgotten_to_the_end(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.ingest.submit(tuple(payload_of(f"e{n}", n / 1e6) for n in range(4_500)))
        await forget(core.database, RETENTION, days(8))
        assert rows(tmp_path, "SELECT count(*) FROM events WHERE raw_payload IS NOT NULL") == [(0,)]
        assert rows(tmp_path, "SELECT count(*) FROM events") == [(4_500,)]
        await forget(core.database, RETENTION, days(15))
        assert rows(tmp_path, "SELECT count(*) FROM events") == [(0,)]


async def test_what_was_forgotten_is_gone_from_the_file(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(replace(an_event("e1"), raw_payload=Redacted("a memorable phrase")))
        await forget(core.database, RETENTION, days(8))
    for file in tmp_path.iterdir():
        assert b"a memorable phrase" not in file.read_bytes(), file.name


async def test_the_room_of_what_was_forgotten_is_given_back(tmp_path: Path) -> None:
    large = Redacted("x" * 20_000)
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(*(replace(an_event(f"e{n}", at=n), raw_payload=large) for n in range(50)))
        ((full,),) = await core.database.read("PRAGMA page_count")
        await forget(core.database, RETENTION, days(8))
        assert await core.database.read("PRAGMA freelist_count") == [(0,)]
        ((left,),) = await core.database.read("PRAGMA page_count")
        assert left < full / 2


async def test_the_time_a_thing_is_kept_can_be_configured(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.take(payload_of("e1", 0))
        await forget(core.database, Retention(payload=SECOND, metadata=10 * SECOND), Timestamp(T0 + 2 * SECOND))
    assert rows(tmp_path, "SELECT event_id, raw_payload FROM events") == [("e1", None)]


async def test_a_message_that_is_over_is_forgotten_and_one_that_waits_is_not(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        mailbox = Mailbox(core.database)
        over, open_one = (
            message_of(Party("a"), Party(USER), Letter(text), days(0), parse_duration("30d"))
            for text in ("over", "open")
        )
        await mailbox.put([over, open_one])
        await mailbox.settle(over, days(0), Status.DELIVERED)
        for now, contents in ((7, {"over", "open"}), (7.5, {None, "open"}), (14.5, {"open"})):
            await forget(core.database, RETENTION, days(now))
            assert {message.content for message in await mailbox.listing(Wanted(), 10)} == contents


# By size


def filled(chance: random.Random, counts: dict[str, int]):
    """Runtimes that have ended, their reports, and what was said, of each target."""

    def job(tx: Transaction) -> None:
        for target, count in counts.items():
            for n in range(count):
                runtime, at, text = f"{target}-{n:05}", 1_000 + n, "x" * chance.randrange(200, 20_000)
                boot, pane, epoch = "1-1", f"%{n % 7}", n // 7 + 1
                tx.execute(
                    "INSERT INTO runtimes (runtime_id, target_id, pane_id, tmux_server_boot_id, pane_epoch, agent_type,"
                    " started_at, ended_at, last_state_version) VALUES (?, ?, ?, ?, ?, 'claude', ?, ?, ?)",
                    (runtime, target, pane, boot, epoch, at, at, epoch),
                )
                tx.execute(
                    "INSERT INTO events (event_id, runtime_id, event_type, source, event_time, ingested_at, dedupe_key,"
                    " raw_payload) VALUES (?, ?, 'x', 'hook', ?, ?, ?, ?)",
                    (runtime, runtime, at, at, runtime, text),
                )
                tx.execute(
                    "INSERT INTO event_inbox (inbox_id, target_id, pane_id, event_type, source, dedupe_key, event_time,"
                    " ingested_at, status, raw_payload)"
                    " VALUES (?, ?, '%1', 'x', 'hook', ?, ?, ?, 'dropped_unbound', ?)",
                    (runtime, target, runtime, at, at, text),
                )
                tx.execute(
                    "INSERT INTO runtime_source_cursors (runtime_id, source, last_readable, last_order_event_time,"
                    " last_order_ingested_at, last_order_event_id, event_type, verdict_json)"
                    " VALUES (?, 'hook', 1, ?, ?, 'x', 'x', ?)",
                    (runtime, at, at, "v" * chance.randrange(3_000)),
                )
                tx.execute(
                    "INSERT INTO conversations (conversation_id, target_id, agent_type, source, started_at, updated_at)"
                    " VALUES (?, ?, 'claude', 'screen', ?, ?)",
                    (runtime, target, at, at),
                )
                tx.execute(
                    "INSERT INTO said (message_id, conversation_id, role, content, summary, at)"
                    " VALUES (?, ?, 'user', ?, '', ?)",
                    (runtime, runtime, text[:2_000], at),
                )

    return job


OF_TARGET = {
    "payloads": "SELECT event_id FROM events WHERE event_id LIKE ? AND raw_payload IS NOT NULL ORDER BY ingested_at",
    "inbox": "SELECT inbox_id FROM event_inbox WHERE inbox_id LIKE ? AND raw_payload IS NOT NULL ORDER BY ingested_at",
    "events": "SELECT event_id FROM events WHERE event_id LIKE ? ORDER BY ingested_at",
    "runtimes": "SELECT runtime_id FROM runtimes WHERE runtime_id LIKE ? ORDER BY ended_at",
    "said": "SELECT message_id FROM said WHERE message_id LIKE ? ORDER BY at",
}


async def kept_of(core, target: str) -> dict[str, list[str]]:
    return {
        name: [row[0] for row in await core.database.read(sql, (f"{target}-%",))] for name, sql in OF_TARGET.items()
    }


async def test_a_database_that_is_too_large_loses_the_oldest_of_who_takes_most(tmp_path: Path) -> None:
    chance = random.Random(any_seed())
    async with a_core(tmp_path) as core:
        await core.database.writer.write(filled(chance, {"vm1": 600, "vm2": 40}))
        await core.database.writer.checkpoint()
        before, vm1, vm2 = core.database.size(), await kept_of(core, "vm1"), await kept_of(core, "vm2")
        assert await shrink(core.database, before) == 0
        for share in (0.8, 0.5, 0.3):
            most = int(before * share)
            assert await shrink(core.database, most) > 0
            assert core.database.size() <= most, share
            assert await kept_of(core, "vm2") == vm2, "another target's is as it was"
            for name, kept in (await kept_of(core, "vm1")).items():
                if name != "runtimes":
                    assert kept == vm1[name][len(vm1[name]) - len(kept) :], f"the newest of {name}"
        assert await shrink(core.database, most) == 0, "nothing to do at once again"


async def test_the_last_runtime_of_a_pane_outlives_a_database_that_is_too_large(tmp_path: Path) -> None:
    """The next one counts on from it; else a reference to one that is long gone could mean another."""
    async with a_core(tmp_path) as core:
        await core.look(seen())
        await core.database.writer.write(filled(random.Random(1), {"vm1": 300}))
        last = await core.database.read("SELECT pane_id, max(pane_epoch) FROM runtimes GROUP BY target_id, pane_id")
        before = core.record
        await shrink(core.database, 100_000)
        after = await core.database.read("SELECT pane_id, max(pane_epoch) FROM runtimes GROUP BY target_id, pane_id")
        assert after == last
        assert len(await core.database.read("SELECT 1 FROM runtimes")) < 20
        assert core.record == before
    async with a_core(tmp_path) as core:
        assert core.record == before
