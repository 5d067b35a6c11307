"""Who looks at a target: a target of passage goes with its server, and a look can be asked for or ended at any time."""

import asyncio
from pathlib import Path

from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.domain.states import Health
from agtmux.observe.allowances import Allowance, AllowanceLimits, Rate
from agtmux.observe.observer import MOST_AGENTS, Observer
from agtmux.observe.submissions import AddTarget
from agtmux.targets.executor import Sighting
from agtmux.targets.messages import PaneRow
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


VM = Target(TargetId("vm1"), TargetKind.SSH, connection_ref="vm1")


class Crowd:
    """A target with so many agents, all of them others at each look if `is_restless`."""

    def __init__(self, agents: int, *, is_restless: bool = False) -> None:
        self.agents = agents
        self.is_restless = is_restless
        self.looks = 0

    async def look(self, captures, anew):
        self.looks += self.is_restless
        return Sighting("1-1", 0.0, {f"%{n}": self.row(n) for n in range(self.agents)}, [], is_metered=False)

    def row(self, number: int) -> PaneRow:
        pid = 1_000 + number + self.looks * 10_000
        return PaneRow(f"%{number}", pid, "work", f"@{number}", "w", "t", "/", "", "claude", "claude", ())

    async def close(self):
        pass


async def after_looks(observer: Observer, count: int = 1) -> None:
    task = asyncio.create_task(observer.run())
    try:
        async with asyncio.timeout(20):
            for _ in range(count):
                await observer.looked()
    finally:
        await end(task)


async def test_a_target_with_too_many_agents_is_shown_in_part_and_says_so(tmp_path: Path) -> None:
    async with a_core(tmp_path) as core:
        await core.ingest.submit(AddTarget(VM))
        crowd = Crowd(MOST_AGENTS + 90)
        observer = an_observer_of(core, VM, crowd, allowance=Allowance())
        await after_looks(observer, 2)
        shown = {pane_id for target_id, pane_id in core.world.records if target_id == VM.target_id}
        assert shown == {f"%{number}" for number in range(MOST_AGENTS)}
        assert core.world.targets[VM.target_id].health is Health.DEGRADED
        assert f"it has {MOST_AGENTS + 90} agents" in str(observer.excess())
        crowd.agents = 3
        await after_looks(observer, 2)
        assert core.world.targets[VM.target_id].health is Health.OK
        assert observer.excess() is None
        assert len(core.world.records) == 3


async def test_agents_that_are_others_at_every_look_are_not_written_without_end(tmp_path: Path) -> None:
    limits = AllowanceLimits(starts=Rate(100, 0.001))
    async with a_core(tmp_path) as core:
        await core.ingest.submit(AddTarget(VM))
        observer = an_observer_of(core, VM, Crowd(30, is_restless=True), allowance=Allowance(limits))
        await after_looks(observer, 8)
        assert observer.error is not None and "come and go" in observer.error.message
        assert core.world.targets[VM.target_id].health is Health.DOWN
        assert len(await core.database.read("SELECT 1 FROM runtimes")) <= 100
