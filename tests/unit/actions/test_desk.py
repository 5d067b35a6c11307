"""An action is written down first, carried out once, and found again by its request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agtmux.actions.desk import Asked, Desk, Done, Kind
from agtmux.actions.guards import Conditions
from agtmux.actions.ledger import Ledger
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.states import State
from unit.builders import PANE, Core, a_core, an_event, rows, seen

KEY = (HOST, PANE)


class Bell:
    """An action that can be counted, and held up on its way."""

    def __init__(self) -> None:
        self.rung = 0
        self.may_ring = asyncio.Event()
        self.may_ring.set()
        self.began = asyncio.Event()
        self.error: BaseException | None = None

    async def ring(self, record, asked, still_there) -> Done:
        self.began.set()
        await self.may_ring.wait()
        still_there()
        if self.error is not None:
            raise self.error
        self.rung += 1
        return Done("done", {"times": self.rung}, {"sound": "ding"})


class Desked:
    def __init__(self, core: Core, bell: Bell, *, needs_state: bool = True) -> None:
        self.core = core
        self.bell = bell
        self.ledger = Ledger(core.database)
        self.desk = Desk(core.world, self.ledger, core.clock, {"ring": Kind(bell.ring, needs_state)})

    async def ring(self, request_ref: str = "r1", conditions: Conditions | None = None, **parameters: object):
        return await self.desk.act(Asked("ring", request_ref, KEY, conditions or Conditions(), parameters, "test"))


@contextlib.asynccontextmanager
async def a_desk(folder: Path, bell: Bell | None = None, **how: bool) -> AsyncIterator[Desked]:
    async with a_core(folder) as core:
        await core.look(seen())
        yield Desked(core, bell or Bell(), **how)


def codes(folder: Path) -> list[tuple[str, str | None]]:
    return rows(folder, "SELECT result_code, error_code FROM actions ORDER BY requested_at")


async def refused(ringing) -> AgtmuxError:
    with pytest.raises(AgtmuxError) as found:
        await ringing
    return found.value


async def test_it_is_on_the_disk_before_anything_is_done(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        its.bell.may_ring.clear()
        ringing = asyncio.create_task(its.ring())
        await its.bell.began.wait()
        assert codes(tmp_path) == [("pending", None)]
        [snapshot] = rows(tmp_path, "SELECT runtime_id, expires_at - observed_at, nonce FROM action_snapshots")
        assert snapshot[:2] == (its.core.record.runtime.runtime_id, 30_000_000) and snapshot[2]
        its.bell.may_ring.set()
        answer = await ringing
        assert (answer.action.result_code, dict(answer.content)) == ("done", {"sound": "ding"})
        assert codes(tmp_path) == [("done", None)]


async def test_the_same_request_has_one_effect_and_one_result(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        first, second = await its.ring(), await its.ring()
        assert first.action.action_id == second.action.action_id
        assert (second.is_replay, dict(second.content), its.bell.rung) == (True, {}, 1)
        assert second.action.result_code == "done"
        assert (await its.ring("r2")).action.action_id != first.action.action_id


async def test_the_same_request_for_something_else_is_a_conflict(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        await its.ring(loud=True)
        for ringing in (its.ring(loud=False), its.ring("r1", Conditions(force_stale=True), loud=True)):
            assert (await refused(ringing)).code is ErrorCode.IDEMPOTENCY_CONFLICT
        assert its.bell.rung == 1


async def test_a_request_that_comes_again_while_it_is_under_way_waits_for_the_first(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        its.bell.may_ring.clear()
        both = [asyncio.create_task(its.ring()) for _ in range(2)]
        await its.bell.began.wait()
        its.bell.may_ring.set()
        first, second = await asyncio.gather(*both)
        assert first.action == second.action and its.bell.rung == 1


async def test_a_request_finds_its_action_after_a_restart(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        first = await its.ring()
    async with a_desk(tmp_path) as its:
        assert await its.ledger.settle(its.core.clock.now()) == 0
        again = await its.ring()
        assert (again.action.action_id, again.is_replay, its.bell.rung) == (first.action.action_id, True, 0)


async def test_what_a_daemon_was_at_when_it_died_is_uncertain_and_never_done_again(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        await its.ring()
        # As if it had died before it could say how it went.
        await its.core.database.writer.write(
            lambda tx: tx.execute("UPDATE actions SET result_code = 'pending', completed_at = NULL")
        )
    async with a_desk(tmp_path) as its:
        assert await its.ledger.settle(its.core.clock.now()) == 1
        again = await its.ring()
        assert (again.action.result_code, again.action.error_code) == ("uncertain", "E_DELIVERY_UNCERTAIN")
        assert its.bell.rung == 0


async def test_one_that_is_cancelled_on_its_way_is_uncertain(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        its.bell.may_ring.clear()
        ringing = asyncio.create_task(its.ring())
        await its.bell.began.wait()
        ringing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ringing
        assert codes(tmp_path) == [("uncertain", "E_DELIVERY_UNCERTAIN")]


async def test_a_refusal_is_written_down_with_its_code(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as its:
        error = await refused(its.ring("r1", Conditions(if_state=State.IDLE)))
        assert error.code is ErrorCode.PRECONDITION_FAILED and error.details["action_id"]
        assert codes(tmp_path) == [("refused", "E_PRECONDITION_FAILED")]
        # And that is what the same request finds again.
        assert (await its.ring("r1", Conditions(if_state=State.IDLE))).action.error_code == "E_PRECONDITION_FAILED"
        assert its.bell.rung == 0


@pytest.mark.parametrize("needs_state", [True, False])
async def test_who_is_replaced_while_it_is_under_way_is_not_acted_on(tmp_path: Path, needs_state: bool) -> None:
    async with a_desk(tmp_path, needs_state=needs_state) as its:
        its.bell.may_ring.clear()
        ringing = asyncio.create_task(its.ring())
        await its.bell.began.wait()
        await its.core.look(seen("codex", pid=200), at=2)
        its.bell.may_ring.set()
        assert (await refused(ringing)).code is ErrorCode.RUNTIME_STALE
        assert its.bell.rung == 0


@pytest.mark.parametrize(("needs_state", "rung"), [(True, 0), (False, 1)])
async def test_who_moves_on_while_it_is_under_way_is_acted_on_only_if_that_does_not_matter(
    tmp_path: Path, needs_state: bool, rung: int
) -> None:
    async with a_desk(tmp_path, needs_state=needs_state) as its:
        its.bell.may_ring.clear()
        ringing = asyncio.create_task(its.ring())
        await its.bell.began.wait()
        await its.core.take(an_event("e1", "running", at=2, runtime_id=its.core.record.runtime.runtime_id))
        its.bell.may_ring.set()
        result = (await asyncio.gather(ringing, return_exceptions=True))[0]
        assert isinstance(result, AgtmuxError) is needs_state
        assert its.bell.rung == rung


@pytest.mark.parametrize("request_ref", ["", "x" * 129, "a\nb"])
async def test_a_request_needs_a_name(tmp_path: Path, request_ref: str) -> None:
    async with a_desk(tmp_path) as its:
        assert (await refused(its.ring(request_ref))).code is ErrorCode.USAGE
        assert codes(tmp_path) == []
