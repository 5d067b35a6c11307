"""What the postman has in its bags, whatever comes to it in which order; only the typing itself is played."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from agtmux.actions.desk import Desk
from agtmux.domain.durations import SECOND
from agtmux.domain.mail import Message, Party, Priority, Reason, Status
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import RuntimeId
from agtmux.messages import postman as postman_module
from agtmux.messages.gate import Gate, Outcome
from agtmux.messages.letters import Letter, message_of
from agtmux.messages.mailbox import Mailbox
from agtmux.messages.postman import Postman
from agtmux.observe.supervisor import Supervisor
from unit.builders import PANE, Core, FakeTime, a_core, a_pane, an_event, seen

PATIENCE = 10.0


@dataclass
class Tries:
    """In place of the gate: each try waits here until the test says what comes of it."""

    under_way: asyncio.Queue[tuple[Message, asyncio.Future[Outcome]]] = field(default_factory=asyncio.Queue)

    async def attempt(self, desk: object, key: object, message: Message) -> Outcome:
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.under_way.put_nowait((message, outcome))
        return await outcome

    async def next(self) -> tuple[Message, asyncio.Future[Outcome]]:
        async with asyncio.timeout(PATIENCE):
            return await self.under_way.get()


@dataclass
class Round:
    core: Core
    mailbox: Mailbox
    postman: Postman
    tries: Tries
    receiver: Party

    async def accept(self, text: str, priority: Priority = Priority.NORMAL) -> Message:
        letter = Letter(text, priority=priority)
        message = message_of(Party("user"), self.receiver, letter, self.core.clock.now(), 3_600 * SECOND)
        [accepted] = await self.mailbox.put([message])
        self.postman.hand(accepted)
        return accepted

    async def ends(self, text: str, **outcome: Any) -> None:
        """The next try is with that one, and comes to that."""
        message, future = await self.tries.next()
        assert message.content == text
        future.set_result(Outcome(message, **outcome))


@contextlib.asynccontextmanager
async def a_round(directory: Path, time: FakeTime | None = None) -> AsyncIterator[Round]:
    async with a_core(directory, time) as core:
        await core.look(seen())
        mailbox, supervisor, tries = Mailbox(core.database), Supervisor(), Tries()
        postman = Postman(mailbox, cast(Gate, tries), core.world, core.clock, supervisor)
        core.ingest.on_change.append(postman.changed)
        await postman.start(cast(Desk, object()))
        runtime_id: RuntimeId = core.world.records[HOST, PANE].runtime.runtime_id
        yield Round(core, mailbox, postman, tries, Party("claude-1", runtime_id))
        await supervisor.close()
        assert not supervisor.failures


async def test_what_is_given_back_after_its_try_is_tried_for_as_long_as_it_takes(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:
        urgent = await work.accept("urgent", Priority.URGENT)
        _, first = await work.tries.next()
        await work.accept("later")
        # It is fetched while it is tried, so that the try finds it gone; and whoever fetched it has left.
        [taken] = await work.mailbox.take(work.receiver, work.core.clock.now(), 1)
        assert taken.message_id == urgent.message_id
        first.set_result(Outcome(None))
        _, second = await work.tries.next()
        for message in await work.mailbox.give_back([taken]):
            work.postman.drop(message)
            work.postman.hand(message)
        second.set_result(Outcome(None))
        for _ in range(3):
            await work.ends("urgent", reason=Reason.DIALOG_OPEN)


async def test_what_waits_is_told_why_also_after_another_reason_held_for_all(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:

        async def reason() -> Reason:
            return (await work.mailbox.find(second.message_id)).reason

        await work.accept("first")
        await work.ends("first", reason=Reason.BUSY)
        message, trying = await work.tries.next()
        second = await work.accept("second")
        trying.set_result(Outcome(message, reason=Reason.BUSY))
        message, trying = await work.tries.next()
        assert await reason() is Reason.BUSY
        trying.set_result(Outcome(message, reason=Reason.DIALOG_OPEN))
        message, trying = await work.tries.next()
        assert await reason() is Reason.DIALOG_OPEN
        trying.set_result(Outcome(message, is_delivered=True))
        await work.ends("second", reason=Reason.BUSY)
        await work.tries.next()
        assert await reason() is Reason.BUSY


async def test_a_change_of_its_receiver_wakes_it_and_no_pause_has_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """orchestrator: sending. An hour between looks: whatever is tried sooner is tried because something changed."""
    monkeypatch.setattr(postman_module, "_PAUSES", (3_600.0,))
    async with a_round(tmp_path) as work:
        await work.core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        await work.core.take(an_event("asks", "waiting_approval"))
        await work.accept("first")
        await work.ends("first", reason=Reason.DIALOG_OPEN)
        # What happens to others is nothing to it.
        other = work.core.world.records[HOST, a_pane("%2").pane_id].runtime.runtime_id
        await work.core.take(an_event("works", "running", runtime_id=other))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await work.tries.under_way.get()
        await work.core.take(an_event("answered", "running", at=1))
        await work.ends("first", is_delivered=True)


async def test_a_draft_that_goes_is_no_change_and_is_looked_for_all_the_same(tmp_path: Path) -> None:
    async with a_round(tmp_path) as work:
        await work.accept("first")
        await work.ends("first", reason=Reason.DRAFT_PRESENT)
        await work.ends("first", is_delivered=True)


async def test_what_is_begun_is_followed_for_a_minute_after_its_time_and_then_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postman_module, "_PAUSES", (0.01,))
    time = FakeTime()
    async with a_round(tmp_path, time) as work:
        ends: asyncio.Queue[Message] = asyncio.Queue()
        work.postman.on_step.append(lambda step: ends.put_nowait(step) if step.status.is_over else None)
        await work.accept("begun")
        message, trying = await work.tries.next()
        begun = await work.mailbox.begin(message)
        assert begun is not None and begun.status is Status.DELIVERING
        trying.set_result(Outcome(begun, reason=Reason.BUSY))
        message, trying = await work.tries.next()
        # Its time is over, and it is tried again all the same, up to a minute.
        time.pass_by(3_600)
        for _ in range(3):
            trying.set_result(Outcome(message, reason=Reason.BUSY))
            message, trying = await work.tries.next()
            time.pass_by(19)
        assert ends.empty()
        time.pass_by(4)
        trying.set_result(Outcome(message, reason=Reason.BUSY))
        async with asyncio.timeout(PATIENCE):
            over = await ends.get()
        assert (over.content, over.status, over.reason) == ("begun", Status.UNCERTAIN, Reason.BUSY)


async def test_what_became_of_a_message_is_in_the_log_by_how_much_it_matters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """orchestrator: log levels. What a message says is not in it."""
    caplog.set_level(logging.DEBUG, postman_module.__name__)
    time = FakeTime()
    async with a_round(tmp_path, time) as work:
        await work.accept("a secret")
        await work.ends("a secret", reason=Reason.DIALOG_OPEN)
        await work.ends("a secret", is_delivered=True)
        await work.accept("another")
        await work.ends("another", reason=Reason.DIALOG_OPEN)
        over = asyncio.Event()
        work.postman.on_step.append(lambda step: over.set() if step.status.is_over else None)
        message, trying = await work.tries.next()
        time.pass_by(3_601)
        trying.set_result(Outcome(message, reason=Reason.DIALOG_OPEN))
        async with asyncio.timeout(PATIENCE):
            await over.wait()
    # asyncio's debug mode writes to the log too, when the machine was slow.
    records = [record for record in caplog.records if record.name == postman_module.__name__]
    told = [(record.levelname, record.getMessage()) for record in records]
    ends = [(level, text.rpartition(": ")[2]) for level, text in told]
    waiting = ("DEBUG", "queued (dialog_open)")
    assert ends == [waiting, ("INFO", "delivered"), waiting, ("WARNING", "expired (ttl_ended)")]
    assert all("info of " in text and "from user to claude-1" in text and "secret" not in text for _, text in told)
