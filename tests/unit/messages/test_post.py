"""What becomes of a message if whoever sends or fetches it is cut off while it is written down."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from agtmux.actions.chats import Sessions
from agtmux.actions.typing import Typist
from agtmux.agents.registry import Registry
from agtmux.bridge.caller import Caller
from agtmux.bridge.tools.mail import MailDesk, ReadMessages
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import MailLimits
from agtmux.domain.mail import MessageType, Party, Reason, Status
from agtmux.domain.panes import HOST
from agtmux.messages.directory import Directory
from agtmux.messages.gate import Gate
from agtmux.messages.letters import Letter
from agtmux.messages.mailbox import Mailbox, Wanted
from agtmux.messages.policy import Policy
from agtmux.messages.post import Post, Sender
from agtmux.messages.postman import Postman
from agtmux.observe.supervisor import Supervisor
from unit.builders import PANE, Core, a_core, a_pane, seen

PATIENCE = 10.0


@dataclass
class Office:
    core: Core
    post: Post
    postman: Postman

    def party(self, pane_id: str) -> Sender:
        return self.post.agent((HOST, pane_id))  # type: ignore[arg-type]

    async def cut_off(self, work: Any) -> None:
        """It is cancelled when what it writes is under way, and cannot be stopped any more."""
        begun, may_end = threading.Event(), threading.Event()

        def job(_: object) -> None:
            begun.set()
            may_end.wait(PATIENCE)

        before = asyncio.ensure_future(self.core.database.writer.write(job))
        await asyncio.to_thread(begun.wait, PATIENCE)
        task = asyncio.ensure_future(work)
        # Its own job is behind that one.
        await until(lambda: not self.core.database.writer._queue.empty())
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        may_end.set()
        await before


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        # Nobody tells: it is what is left when all is done.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def an_office(directory: Path) -> AsyncIterator[Office]:
    async with a_core(directory) as core:
        await core.look(seen(), seen(pid=200, pane=a_pane("%2")))
        mailbox, supervisor = Mailbox(core.database), Supervisor()
        # Nothing is typed here: everybody has come to fetch their mail.
        gate = Gate(mailbox, core.world, Registry.load(), cast(Typist, None), cast(Sessions, None))
        postman = Postman(mailbox, gate, core.world, core.clock, supervisor)
        for runtime_id in core.world.by_runtime:
            postman.hold(runtime_id)
        directory_of = Directory(core.world, core.database)
        yield Office(
            core,
            Post(core.world, core.clock, directory_of, mailbox, postman, Policy(MailLimits()), 3_600 * SECOND),
            postman,
        )
        await supervisor.close()
        # Who would have typed fails.
        assert not supervisor.failures


async def test_what_was_accepted_is_looked_after_though_its_sender_has_gone(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        one, two = office.party(PANE), office.party("%2")
        await office.cut_off(office.post.send(one, two.party.name, Letter("hello")))
        assert two.party.runtime_id is not None
        runtime_id = two.party.runtime_id
        await until(lambda: office.postman.waiting(runtime_id) == 1)
        assert [message.content for message in await office.post.fetch(two.party)] == ["hello"]


async def test_what_was_fetched_by_one_that_has_gone_still_waits(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        one, two = office.party(PANE), office.party("%2")
        for text in ("first", "second"):
            await office.post.send(one, two.party.name, Letter(text))
        await office.cut_off(office.post.fetch(two.party))
        got: list[str | None] = []
        async with asyncio.timeout(PATIENCE):
            while len(got) < 2:
                got += [message.content for message in await office.post.fetch(two.party, wait=1.0)]
        assert got == ["first", "second"]


async def test_the_users_mail_too(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        sent = await office.post.send(office.party(PANE), "user", Letter("may I?"))
        await office.cut_off(office.post.fetch(Party("user")))
        async with asyncio.timeout(PATIENCE):
            while not (got := await office.post.fetch(Party("user"), wait=1.0)):
                pass
        assert [message.message_id for message in got] == [sent.message_id]
        assert (await office.post.mailbox.find(sent.message_id)).status is Status.DELIVERED


async def test_what_is_now_or_never_is_never_if_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        one, two = office.party(PANE), office.party("%2")
        assert two.party.runtime_id is not None
        runtime_id = two.party.runtime_id
        letter = Letter("now", now_or_never=True)
        sending = asyncio.ensure_future(office.post.send(one, two.party.name, letter))
        await until(lambda: office.postman.waiting(runtime_id) == 1)
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        await until(lambda: office.postman.waiting(runtime_id) == 0)
        assert await office.post.fetch(two.party) == []
        [message] = await office.post.mailbox.listing(Wanted(), 10)
        assert (message.status, message.reason) == (Status.REFUSED, Reason.NOT_NOW)
        # A daemon that dies over it has told the next one by its time.
        assert message.ttl_seconds <= 30


async def test_of_a_broadcast_now_or_never_only_those_are_refused_that_would_wait(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        await office.core.look(seen(), *(seen(pid=100 + n, pane=a_pane(f"%{n}")) for n in (2, 3)))
        for pane_id in ("%2", "%3"):
            office.postman.hold(office.party(pane_id).party.runtime_id)
        sending = asyncio.ensure_future(office.post.broadcast(office.party(PANE), Letter("now", now_or_never=True)))
        await until(lambda: len(office.post._watchers) == 2)
        waiting = {each.receiver.name: each for each in await office.post.mailbox.listing(Wanted(), 10)}
        noted = await office.post.mailbox.note(waiting["claude-2"], Reason.DIALOG_OPEN)
        assert noted is not None
        office.post._stepped(noted)
        assert noted.receiver.runtime_id is not None
        runtime_id = noted.receiver.runtime_id
        await until(lambda: office.postman.waiting(runtime_id) == 0)
        assert [each.content for each in await office.post.fetch(office.party("%3").party)] == ["now"]
        told = {each.receiver.name: each.status for each in await sending}
        assert told == {"claude-2": Status.REFUSED, "claude-3": Status.DELIVERED}


async def test_a_broadcast_comes_to_all_but_those_whose_mailbox_is_full(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        await office.core.look(seen(), *(seen(pid=100 + n, pane=a_pane(f"%{n}")) for n in (2, 3)))
        for pane_id in ("%2", "%3"):
            office.postman.hold(office.party(pane_id).party.runtime_id)
        office.post._policy = Policy(MailLimits(waiting=1))
        one = office.party(PANE)
        await office.post.send(one, "claude-2", Letter("first"))
        sent = await office.post.broadcast(one, Letter("to all"))
        assert [each.receiver.name for each in sent] == ["claude-3"]
        assert [each.content for each in await office.post.fetch(office.party("%2").party)] == ["first"]
        assert [each.content for each in await office.post.fetch(office.party("%3").party)] == ["to all"]
        # Where nobody has room, that is why.
        for name in ("claude-2", "claude-3"):
            await office.post.send(one, name, Letter("again"))
        with pytest.raises(AgtmuxError) as caught:
            await office.post.broadcast(one, Letter("to all"))
        assert caught.value.code is ErrorCode.LIMIT_RATE


async def test_a_call_that_is_cut_off_while_it_lists_what_was_before_has_taken_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_office(tmp_path) as office:
        one, two = office.party(PANE), office.party("%2")
        sent = await office.post.send(one, two.party.name, Letter("hello"))
        desk, caller = MailDesk(office.core.world, office.post), Caller(two.key)
        lists = asyncio.Event()

        async def hanging(*_: object) -> Any:
            lists.set()
            await asyncio.Event().wait()

        with monkeypatch.context() as patch:
            patch.setattr(office.post.mailbox, "listing", hanging)
            call = asyncio.ensure_future(desk.read_messages(caller, ReadMessages(include_delivered=True)))
            async with asyncio.timeout(PATIENCE):
                await lists.wait()
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
        assert (await office.post.mailbox.find(sent.message_id)).status is Status.QUEUED
        for _ in range(2):
            # What is new, and then what was given before.
            given = await desk.read_messages(caller, ReadMessages(include_delivered=True))
            assert [each.content for each in given.messages] == ["hello"]


async def test_after_a_restart_limits_count_what_each_has_sent(tmp_path: Path) -> None:
    async with an_office(tmp_path) as office:
        one, two = office.party(PANE), office.party("%2")
        for _ in range(MailLimits().per_pair):
            await office.post.send(one, two.party.name, Letter("", MessageType.PING))
        office.post._policy = Policy(MailLimits())
        await office.post.load()
        # That it was asked for is not its doing.
        assert (await office.post.send(two, one.party.name, Letter("hello"))).status is Status.QUEUED
        with pytest.raises(AgtmuxError, match="limit"):
            await office.post.send(one, two.party.name, Letter("once more"))
