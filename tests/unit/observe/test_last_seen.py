"""When a target was last looked at: known at once, written with what is written anyway, and kept across restarts."""

from pathlib import Path

from agtmux.domain.panes import HOST
from agtmux.domain.states import Health
from agtmux.domain.timestamps import Timestamp
from agtmux.observe import views
from agtmux.observe.submissions import HealthChanged, TargetsSeen
from agtmux.store import tables
from unit.builders import Core, FakeTime, a_core, an_event, seen


async def kept(core: Core) -> Timestamp | None:
    return next(each.last_seen_at for each in await tables.load_targets(core.database) if each.target_id == HOST)


def look(core: Core) -> Timestamp:
    """As the observer does after each look with success."""
    at = core.world.seen_at[HOST] = core.clock.now()
    return at


async def test_a_look_alone_writes_nothing(tmp_path: Path) -> None:
    """Never in the way: idling costs nothing."""
    time = FakeTime()
    async with a_core(tmp_path, time) as core:
        await core.look(seen())
        before = core.database.writer.commits
        for _ in range(100):
            time.pass_by(10)
            at = look(core)
        assert core.database.writer.commits == before
        # And it is told all the same.
        item = views.target_item(core.world, core.world.targets[HOST], None, None)
        assert item.last_seen_at is not None and core.world.seen_at[HOST] == at


async def test_it_is_written_with_something_else_and_once_a_minute_at_most(tmp_path: Path) -> None:
    time = FakeTime()
    async with a_core(tmp_path, time) as core:
        first = look(core)
        await core.look(seen())
        assert await kept(core) == first
        time.pass_by(30)
        look(core)
        await core.take(an_event("e1", "running"))
        assert await kept(core) == first
        time.pass_by(31)
        second = look(core)
        await core.take(an_event("e2", "idle"))
        assert await kept(core) == second


async def test_it_is_written_when_a_target_fails_and_at_the_end(tmp_path: Path) -> None:
    time = FakeTime()
    async with a_core(tmp_path, time) as core:
        look(core)
        await core.look(seen())
        time.pass_by(1)
        last = look(core)
        await core.ingest.submit(HealthChanged(HOST, Health.DEGRADED))
        assert await kept(core) == last
        time.pass_by(1)
        last = look(core)
        await core.ingest.submit(TargetsSeen())
    async with a_core(tmp_path, time) as core:
        assert await kept(core) == last
