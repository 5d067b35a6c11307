"""Who looks at a target: a target of passage goes with its server, and a look can be asked for or ended at any time."""

import asyncio
from pathlib import Path

from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.observe.submissions import AddTarget
from agtmux.targets.executor import Sighting
from unit.builders import Core, a_core, an_observer_of, end

DEMO = Target(TargetId("demo"), TargetKind.LOCAL, tmux_socket="demo", is_ephemeral=True)


class NoServer:
    """A target whose tmux server is not there."""

    async def look(self, captures, anew):
        return Sighting("", 0.0, {}, [], is_metered=False)

    async def close(self):
        pass


async def looked_at(core: Core, target: Target, *, is_known: bool) -> None:
    """One look at the target, or its end."""
    await core.ingest.submit(AddTarget(target))
    observer = an_observer_of(core, target, NoServer(), is_known=is_known)
    task = asyncio.create_task(observer.run())
    look = asyncio.create_task(observer.has_looked.wait())
    try:
        await asyncio.wait([task, look], timeout=20, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(task)
        await end(look)


async def test_a_target_of_passage_whose_server_went_while_no_daemon_was_there_goes_too(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await looked_at(core, DEMO, is_known=True)
        assert set(core.world.targets) == {HOST}


async def test_a_target_of_passage_may_be_added_before_its_server_is_up(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await looked_at(core, DEMO, is_known=False)
        assert set(core.world.targets) == {HOST, DEMO.target_id}


async def test_a_target_that_is_there_to_stay_waits_for_its_server(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await looked_at(core, Target(HOST, TargetKind.LOCAL, is_default=True), is_known=True)
        assert set(core.world.targets) == {HOST}
