"""What runs for ever ends when it is told to, at whatever moment that is: the daemon waits for it before it goes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agtmux.domain.panes import HOST
from agtmux.observe.reconciler import Reconciler
from agtmux.targets.executor import Sighting
from unit.builders import POLICY, Core, a_core, an_observer_of, end

LIMIT = 3.0


class NoServer:
    async def look(self, captures, anew):
        return Sighting("", 0.0, {}, [], is_metered=False)

    async def close(self):
        pass


def an_observer(core: Core) -> tuple[asyncio.Task[None], Callable[[], None]]:
    observer = an_observer_of(core, core.world.targets[HOST], NoServer())
    return asyncio.create_task(observer.run()), observer.look_now


def a_reconciler(core: Core) -> tuple[asyncio.Task[None], Callable[[], None]]:
    reconciler = Reconciler(core.world, core.ingest, core.clock, POLICY)
    (hear,) = core.ingest.on_pending
    core.ingest.on_pending.clear()
    return asyncio.create_task(reconciler.run()), lambda: hear(HOST)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("start", [an_observer, a_reconciler])
async def test_it_ends_even_if_something_happens_in_that_moment(tmp_path: Path, start) -> None:
    async with a_core(tmp_path) as core:
        for moment in range(6):
            task, happen = start(core)
            # Nothing is left to be done, and it waits.
            await turns(200)
            happen()
            await turns(moment)
            task.cancel()
            try:
                done, _ = await asyncio.wait([task], timeout=LIMIT)
                assert done, f"it went on, told to end {moment} turns of the loop after something happened"
            finally:
                await end(task)
