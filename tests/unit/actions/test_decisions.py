"""An answer reaches the hook that asked for it, once, while its question is open; and nobody else, ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agtmux.actions import decisions as decisions_module
from agtmux.actions.decisions import Answer, Decisions, Handed, Over
from agtmux.domain.events import Event, Incomplete, Verdict
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import Runtime, RuntimeId
from agtmux.domain.states import Source, State
from agtmux.engine.resolve import Signal
from agtmux.engine.transitions import Policy
from agtmux.observe.submissions import RemoveTarget
from unit.builders import (
    PANE,
    POLICY,
    Core,
    FakeTime,
    a_core,
    a_runtime,
    a_verdict,
    an_attention,
    an_event,
    seen,
    unbound,
)

WHO = a_runtime().runtime_id


class Form:
    def written(self, *, allow: bool, message: str) -> str:
        return f"{allow} {message}"


def form_of(runtime: Runtime, report: Signal) -> Form | None:
    return Form() if report.verdict.reason_code == "permission" else None


@dataclass
class Desk:
    core: Core
    decisions: Decisions
    tasks: list[asyncio.Task[Answer]]

    def hook(self, event_id: str, left: asyncio.Event | None = None) -> asyncio.Task[Answer]:
        """A hook that waits; `left` ends it."""
        self.tasks.append(asyncio.create_task(self.decisions.wait(event_id, (left or asyncio.Event()).wait())))
        return self.tasks[-1]

    async def asked(self, event_id: str = "ask", left: asyncio.Event | None = None) -> asyncio.Task[Answer]:
        """The agent asks, and its hook waits."""
        assert await self.core.take(asks(event_id)) == ["applied"]
        task = self.hook(event_id, left)
        await until(lambda: task.done() or self.decisions.waiting(WHO) is not None)
        return task


def asks(event_id: str = "ask", *, at: float = 2.0, command: str = "rm -rf build") -> Event:
    verdict = a_verdict("waiting_approval", "permission", attention=an_attention(command))
    return an_event(event_id, at=at, verdict=verdict)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        # The loop's own turns are all that has to pass.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def over(task: asyncio.Task[Answer]) -> Over | None:
    async with asyncio.timeout(10):
        return (await task).over


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(tmp_path) as made:
        await made.core.look(seen())
        yield made


@contextlib.asynccontextmanager
async def a_desk(folder: Path, policy: Policy = POLICY) -> AsyncIterator[Desk]:
    time = FakeTime()
    time.pass_by(3)
    async with a_core(folder, time, policy) as core:
        made = Desk(core, Decisions(core.world, core.clock, policy, form_of), [])
        core.ingest.on_change.append(made.decisions.changed)
        try:
            yield made
        finally:
            for task in made.tasks:
                task.cancel()
            await asyncio.gather(*made.tasks, return_exceptions=True)


@pytest.mark.parametrize("allow", [True, False])
async def test_a_decision_reaches_the_hook_that_asked(desk: Desk, allow: bool):
    hook = await desk.asked()
    question = desk.decisions.waiting(WHO)
    assert question is not None
    assert (question.event_id, question.attention) == ("ask", an_attention())
    assert await desk.decisions.decide(WHO, "ask", allow=allow, message="not now") is Handed.HANDED_OVER
    assert await hook == Answer(allow, f"{allow} not now")
    assert desk.decisions.waiter_count == 0


async def test_what_a_hook_waits_for_is_what_it_reported_and_not_what_the_screen_shows(desk: Desk):
    """It came late, and said less than the screen: what is shown by then is the screen's, perhaps of another dialog."""
    said_nothing = replace(an_attention("ExitPlanMode", "plan"), incomplete=Incomplete.NOT_REPORTED)
    verdict = a_verdict("waiting_approval", "permission", attention=said_nothing)
    assert await desk.core.take(an_event("ask", at=2.0, verdict=verdict)) == ["applied"]
    on_screen = a_verdict("waiting_approval", "dialog", attention=an_attention("ls"), dialog="f00d")
    assert await desk.core.take(an_event("look", at=8.0, source=Source.POLLER, verdict=on_screen)) == ["applied"]
    record = desk.core.world.records[HOST, PANE]
    assert record.row.attention == an_attention("ls")
    desk.hook("ask")
    await until(lambda: desk.decisions.waiting(WHO) is not None)
    question = desk.decisions.waiting(WHO)
    assert question is not None and question.attention == said_nothing
    assert not record.asks(question.attention)


async def test_a_second_decision_about_the_same_question_finds_nobody(desk: Desk):
    hook = await desk.asked()
    both = await asyncio.gather(*(desk.decisions.decide(WHO, "ask", allow=allow) for allow in (True, False)))
    assert both == [Handed.HANDED_OVER, Handed.NOBODY_WAITS]
    assert (await hook).allow is True
    assert await desk.decisions.decide(WHO, "ask", allow=False) is Handed.NOBODY_WAITS


async def test_a_decision_for_another_runtime_or_event_finds_nobody(desk: Desk):
    hook = await desk.asked()
    other = a_runtime(epoch=2).runtime_id
    assert await desk.decisions.decide(other, "ask", allow=True) is Handed.NOBODY_WAITS
    assert await desk.decisions.decide(WHO, "earlier", allow=True) is Handed.NOBODY_WAITS
    assert await desk.decisions.decide(RuntimeId(""), "", allow=True) is Handed.NOBODY_WAITS
    assert not hook.done()


async def test_a_decision_about_one_question_never_answers_the_next(desk: Desk):
    first = await desk.asked("first")
    await desk.core.take(asks("second", at=2.5, command="rm -rf /"))
    second = desk.hook("second")
    assert await over(first) is Over.MOVED_ON
    await until(lambda: desk.decisions.waiting(WHO) is not None)
    assert await desk.decisions.decide(WHO, "first", allow=True) is Handed.NOBODY_WAITS
    assert not second.done()
    assert await desk.decisions.decide(WHO, "second", allow=False) is Handed.HANDED_OVER


@pytest.mark.parametrize(
    "next_event",
    [
        an_event("tool", "running", at=2.5),
        an_event("stop", "completed", at=2.5),
        an_event("asks-user", "waiting_input", at=2.5),
    ],
    ids=lambda event: event.event_id,
)
async def test_the_hook_is_told_when_the_agent_has_gone_on(desk: Desk, next_event: Event):
    hook = await desk.asked()
    await desk.core.take(next_event)
    assert await over(hook) is Over.MOVED_ON
    assert desk.decisions.waiting(WHO) is None


def sighting(event_id: str, state: str, *, at: float) -> Event:
    verdict = Verdict(State(state), "prompt", held_since=an_event(at=at).ingested_at, repeats=3)
    return an_event(event_id, at=at, source=Source.POLLER, verdict=verdict)


async def test_the_hook_is_told_when_the_dialog_has_gone_from_the_screen(desk: Desk):
    hook = await desk.asked()
    await desk.core.take(sighting("see", "waiting_approval", at=2.2))
    assert not hook.done()
    await desk.core.take(sighting("gone", "idle", at=2.6))
    assert await over(hook) is Over.MOVED_ON


async def test_the_hook_is_told_when_its_agent_has_ended(desk: Desk):
    hook = await desk.asked()
    await desk.core.look(seen("none", 99), at=4.0)
    assert await over(hook) is Over.MOVED_ON


async def test_a_new_agent_in_the_same_pane_does_not_inherit_the_question(desk: Desk):
    hook = await desk.asked()
    await desk.core.look(seen("claude", 200, started=4.0), at=4.0)
    assert await over(hook) is Over.MOVED_ON
    assert await desk.decisions.decide(desk.core.record.runtime.runtime_id, "ask", allow=True) is Handed.NOBODY_WAITS


async def test_who_is_in_the_pane_now_is_compared_with_who_asked(desk: Desk):
    hook = await desk.asked()
    before = desk.core.record
    desk.core.world.records[HOST, PANE] = replace(before, runtime=a_runtime(epoch=2))
    assert await desk.decisions.decide(WHO, "ask", allow=True) is Handed.NOBODY_WAITS
    assert not hook.done()


async def test_the_hook_is_told_when_its_target_is_removed(desk: Desk):
    hook = await desk.asked()
    await desk.core.ingest.submit(RemoveTarget(HOST))
    assert await over(hook) is Over.MOVED_ON


@pytest.mark.parametrize(
    "event",
    [
        an_event("x", "running", at=2.0),
        an_event("x", at=2.0, verdict=a_verdict("waiting_input", "permission")),
        an_event("x", at=2.0, verdict=a_verdict("waiting_approval", "trust")),
    ],
    ids=["running", "a question", "without a form"],
)
async def test_what_cannot_be_decided_is_not_waited_for(desk: Desk, event: Event):
    await desk.core.take(event)
    assert await over(desk.hook("x")) is Over.NOT_ASKED


async def test_nobody_waits_for_an_event_that_never_came(desk: Desk):
    assert await over(desk.hook("nothing")) is Over.NOT_ASKED


async def test_a_second_hook_with_the_same_event_is_sent_away(desk: Desk):
    first = await desk.asked()
    assert await over(desk.hook("ask")) is Over.NOT_ASKED
    assert not first.done()
    assert await desk.decisions.decide(WHO, "ask", allow=True) is Handed.HANDED_OVER


async def test_a_hook_that_leaves_is_forgotten(desk: Desk):
    left = asyncio.Event()
    hook = await desk.asked(left=left)
    left.set()
    assert await over(hook) is Over.HOOK_LEFT
    assert desk.decisions.waiter_count == 0
    assert await desk.decisions.decide(WHO, "ask", allow=True) is Handed.NOBODY_WAITS


async def test_a_decision_that_meets_a_leaving_hook_is_uncertain(desk: Desk):
    left = asyncio.Event()
    hook = await desk.asked(left=left)
    left.set()
    assert await desk.decisions.decide(WHO, "ask", allow=True) is Handed.UNCERTAIN
    assert (await hook).allow is None


async def test_a_decision_whose_request_is_cancelled_is_uncertain(desk: Desk):
    hook = await desk.asked()
    deciding = asyncio.create_task(desk.decisions.decide(WHO, "ask", allow=True))
    await asyncio.sleep(0)
    hook.cancel()
    assert await deciding is Handed.UNCERTAIN


async def test_whoever_decides_may_be_cancelled_without_harm(desk: Desk):
    hook = await desk.asked()
    deciding = asyncio.create_task(desk.decisions.decide(WHO, "ask", allow=True))
    await asyncio.sleep(0)
    deciding.cancel()
    assert (await hook).allow is True


async def test_the_end_of_the_daemon_ends_all_waits_at_once(desk: Desk):
    hook = await desk.asked()
    desk.decisions.close()
    assert await over(hook) is Over.STOPPING
    assert await over(desk.hook("ask")) is Over.STOPPING


async def test_there_is_a_limit_to_how_many_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decisions_module, "MOST_WAITERS", 1)
    first = await desk.asked()
    assert await over(desk.hook("another")) is Over.TOO_MANY
    assert not first.done()


async def test_there_is_a_limit_to_how_long_one_waits(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decisions_module, "LONGEST_WAIT", 0.02)
    assert await over(await desk.asked()) is Over.TOO_LONG


async def test_a_hook_waits_for_its_event_to_find_the_agent(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        # Of an agent that nobody has seen start yet.
        await desk.core.look(seen("none", 99))
        assert await desk.core.take(unbound(asks(at=4.0), agent_type="claude")) == ["pending_bind"]
        hook = desk.hook("ask")
        await asyncio.sleep(0)
        assert (hook.done(), desk.decisions.waiter_count) == (False, 1)
        await desk.core.look(seen("claude", 100, started=3.0), at=5.0)
        who = desk.core.record.runtime.runtime_id
        await until(lambda: hook.done() or desk.decisions.waiting(who))
        assert await desk.decisions.decide(who, "ask", allow=True) is Handed.HANDED_OVER
        assert (await hook).allow is True


async def test_an_event_that_finds_no_agent_is_not_waited_for_for_ever(tmp_path: Path):
    async with a_desk(tmp_path, Policy(pending_bind_ttl=-990_000)) as desk:
        await desk.core.look(seen("none", 99))
        desk.core.world.pending["ask"] = asks()
        assert await over(desk.hook("ask")) is Over.NOT_ASKED
