"""What was done is found by its id, together with what the agent reported then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agtmux.actions.desk import Asked, Desk, Done, Kind
from agtmux.actions.history import FOLLOWS_WITHIN, History, Wanted
from agtmux.actions.ledger import Action, Ledger
from agtmux.domain.durations import SECOND, parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.states import Source
from agtmux.domain.timestamps import Timestamp
from agtmux.store.retention import Retention, forget
from unit.builders import PANE, Core, a_core, a_pane, an_event, rows, seen

KEY = (HOST, PANE)
OTHER = "%2"
RETENTION = Retention(payload=parse_duration("7d"), metadata=parse_duration("14d"))


class Desked:
    def __init__(self, core: Core) -> None:
        self.core = core
        self.refusal: AgtmuxError | None = None
        self.ledger, self.history = Ledger(core.database), History(core.database)
        kinds = {"ring": Kind(self._ring, False), "view-output": Kind(self._ring, False)}
        self.desk = Desk(core.world, self.ledger, core.clock, kinds)
        self._count = 0

    async def _ring(self, record, asked, still_there) -> Done:
        if self.refusal is not None:
            raise self.refusal
        return Done("done")

    async def act(self, action_type: str = "ring", pane: str = PANE) -> Action:
        self._count += 1
        asked = Asked(action_type, f"r{self._count}", (HOST, pane), actor="test", ref=f"pane:host/work/@1/{pane}")
        return (await self.desk.act(asked)).action

    async def report(self, event_id: str, **how) -> None:
        now = self.core.clock.now()
        await self.core.take(replace(an_event(event_id, **how), event_time=now, ingested_at=now))

    async def told(self, action: Action) -> list[tuple[str, str]]:
        return [(event.relation, event.event_type) for event in await self.history.events(action)]


async def test_an_action_has_an_event_of_its_own_that_decides_nothing(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        desked = Desked(core)
        before = core.world.records[KEY]
        action = await desked.act()
        assert core.world.records[KEY] is before
        own = rows(tmp_path, "SELECT runtime_id, event_type, source, action_id, raw_payload FROM events")
        assert own == [(before.runtime.runtime_id, "action.ring", "wrapper", action.action_id, None)]
        # Its source goes on as if it had said nothing.
        await desked.report("wrapped", source=Source.WRAPPER)
        assert core.world.records[KEY].row.source is Source.WRAPPER


async def test_a_refused_action_and_one_that_a_daemon_died_over_have_theirs_too(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        desked = Desked(core)
        desked.refusal = AgtmuxError(ErrorCode.PRECONDITION_FAILED, "no")
        with pytest.raises(AgtmuxError) as refused:
            await desked.act()
        first = refused.value.details["action_id"]
        await core.database.writer.write(
            lambda tx: tx.execute(
                "INSERT INTO actions SELECT 'left-behind', action_type, 'r0', target_id, pane_id, runtime_id,"
                " requested_at + 1, NULL, 'pending', NULL, '{}' FROM actions"
            )
        )
        assert await desked.ledger.settle(core.clock.now()) == 1
        assert await desked.ledger.settle(core.clock.now()) == 0
    assert rows(tmp_path, "SELECT action_id FROM events ORDER BY ingested_at") == [(first,), ("left-behind",)]


async def test_what_follows_is_told_until_somebody_else_acts(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane(OTHER)))
        other = core.world.records[HOST, OTHER].runtime.runtime_id
        desked = Desked(core)
        await desked.report("before")
        first = await desked.act()
        await desked.report("after")
        await desked.report("elsewhere", runtime_id=other)
        looked = await desked.act("view-output")
        await desked.report("after a look")
        second = await desked.act()
        await desked.report("after the second")
        rung, looking = ("own", "action.ring"), ("own", "action.view-output")
        seen_after, seen_then = ("followed", "claude.after"), ("followed", "claude.after a look")
        assert await desked.told(first) == [rung, seen_after, seen_then]
        assert await desked.told(second) == [rung, ("followed", "claude.after the second")]
        assert await desked.told(looked) == [looking, seen_then]
        late = Timestamp((second.completed_at or 0) + FOLLOWS_WITHIN + 1)
        await core.take(replace(an_event("late"), event_time=late, ingested_at=late))
        assert len(await desked.history.events(second)) == 2


async def test_actions_are_found_by_who_what_and_when(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane(OTHER)))
        desked = Desked(core)
        rung, looked = await desked.act(), await desked.act("view-output")
        elsewhere = await desked.act(pane=OTHER)

        async def found(**wanted) -> list[str]:
            return [each.action_id for each in await desked.history.actions(Wanted(**wanted), 50)]

        assert await found() == [elsewhere.action_id, looked.action_id, rung.action_id]
        assert await found(action_type="ring") == [elsewhere.action_id, rung.action_id]
        assert await found(pane=KEY) == [looked.action_id, rung.action_id]
        assert await found(runtime_id=elsewhere.runtime_id) == [elsewhere.action_id]
        assert await found(since=looked.requested_at) == [elsewhere.action_id, looked.action_id]
        assert [each.action_id for each in await desked.history.actions(Wanted(), 1)] == [elsewhere.action_id]
        assert (await desked.history.action(rung.action_id[:8])).action_id == rung.action_id
        assert (rung.metadata or {})["agent_type"] == core.world.records[KEY].runtime.agent_type


@pytest.mark.parametrize(
    ("action_id", "code"), [("short", ErrorCode.USAGE), ("x" * 65, ErrorCode.USAGE), ("%" * 32, ErrorCode.NOT_FOUND)]
)
async def test_an_id_that_none_has_is_said(tmp_path: Path, action_id: str, code: ErrorCode):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        desked = Desked(core)
        await desked.act()
        with pytest.raises(AgtmuxError) as found:
            await desked.history.action(action_id)
        assert found.value.code is code


async def test_actions_are_forgotten_with_their_events(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        desked = Desked(core)
        await desked.act()
        now = core.clock.now()
        for days, kept in ((13, 1), (15, 0)):
            await forget(core.database, RETENTION, Timestamp(now + days * 86_400 * SECOND))
            for table in ("actions", "action_snapshots", "events"):
                assert len(rows(tmp_path, f"SELECT * FROM {table}")) == kept, table


async def test_an_action_stays_as_long_as_its_event_does(tmp_path: Path):
    async with a_core(tmp_path) as core:
        await core.look(seen())
        action = await Desked(core).act()
        # It took its time.
        await core.database.writer.write(
            lambda tx: tx.execute("UPDATE events SET ingested_at = ingested_at + ?", (60 * SECOND,))
        )
        end = action.requested_at + RETENTION.metadata + SECOND
        await forget(core.database, RETENTION, Timestamp(end))
        assert len(rows(tmp_path, "SELECT * FROM actions")) == 1
        await forget(core.database, RETENTION, Timestamp(end + 120 * SECOND))
        assert rows(tmp_path, "SELECT * FROM actions") == []
