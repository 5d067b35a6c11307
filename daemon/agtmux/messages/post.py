"""The post office: takes messages in, hands them out to those who fetch them, and tells what became of them.

A message is accepted when it is on the disk, and from then on it has an end that is told, whatever happens. Who sends
it is never among the things that are asked for: whoever takes it in says who that is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, MessageType, Party, Reason, Stage, Status, Via
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.messages.directory import AGTMUX, USER, Directory, Role
from agtmux.messages.letters import Letter, as_reply, checked, message_of
from agtmux.messages.mailbox import Mailbox
from agtmux.messages.policy import WINDOW, Policy
from agtmux.messages.postman import Postman, woken
from agtmux.observe.world import PaneKey, World

_log = logging.getLogger(__name__)

# How long whoever sends may wait to hear what became of it, and whoever fetches for something to come.
LONGEST_SEND: Final = 10.0
LONGEST_FETCH: Final = 60.0
_MOST_FETCHED: Final = 100
# Types that nobody is typed.
_ANSWERED_BY_US: Final = frozenset({MessageType.PING, MessageType.SHUTDOWN})
# What waits is held in memory too.
_MOST_WAITING_BYTES: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class Sender:
    """Who it is, as whoever asked the system knows. `role` binds it to its team's rules."""

    party: Party
    key: PaneKey | None = None
    role: Role | None = None


class Post:
    def __init__(
        self,
        world: World,
        clock: Clock,
        directory: Directory,
        mailbox: Mailbox,
        postman: Postman,
        policy: Policy,
        ttl: int,
    ) -> None:
        self._world = world
        self._clock = clock
        self.directory = directory
        self.mailbox = mailbox
        self._postman = postman
        self._policy = policy
        self._ttl = ttl
        self._watchers: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._fetchers: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._is_ending = False
        # What goes on though whoever asked for it has gone.
        self._left_over: set[asyncio.Future[None]] = set()
        postman.on_step.append(self._stepped)
        # Told of every message that is taken in.
        self.on_accept: list[Callable[[Message], None]] = []
        # What ends an agent that is asked to end; raises if that sender may not.
        self.on_shutdown: Callable[[Sender, PaneKey], Awaitable[None]] | None = None

    async def load(self) -> None:
        """What was sent before a restart counts against the limits."""
        since = Timestamp(self._clock.now() - WINDOW)
        for sender, receiver, sent_at in await self.mailbox.sent_since(since):
            self._policy.recall(sender, receiver, sent_at)

    def end_waits(self) -> None:
        """The daemon goes: whoever waits for something is told what there is."""
        self._is_ending = True
        for waiting in (*self._watchers.values(), *self._fetchers.values()):
            for event in waiting:
                event.set()

    def agent(self, key: PaneKey) -> Sender:
        """The agent in that pane, as a sender or receiver."""
        runtime = self._world.records[key].runtime
        role = self.directory.role(runtime.runtime_id)
        return Sender(Party(self.directory.name(runtime), runtime.runtime_id), key, role)

    # Sending

    async def send(self, sender: Sender, to: str, letter: Letter, wait: float = 0.0) -> Message:
        """Accept it, and tell what became of it within that time."""
        try:
            return await self._sent(sender, to, letter, wait)
        except AgtmuxError as error:
            # What is accepted is in the mailbox; this is nowhere else.
            _log.info("no message from %s to %r: %s: %s", sender.party.name, to[:128], error.code, error.message)
            raise

    async def _sent(self, sender: Sender, to: str, letter: Letter, wait: float) -> Message:
        receiver = self._receiver(sender, to)
        letter = await self._about(sender, checked(letter), receiver)
        self._policy.check_may(sender.party.name, sender.role, receiver.name)
        await self._check_room([receiver])
        self._policy.count(sender.party.name, [receiver.name], self._clock.now())
        if letter.type is MessageType.PING:
            return await self._ponged(sender, receiver, letter)
        if letter.type is MessageType.SHUTDOWN:
            return await self._shut_down(sender, receiver, letter)
        return (await self._accept(sender, [receiver], letter, wait))[0]

    async def broadcast(self, sender: Sender, letter: Letter, team: str = "", wait: float = 0.0) -> list[Message]:
        """To all other agents that it may write to."""
        if letter.type in _ANSWERED_BY_US:
            raise AgtmuxError(ErrorCode.USAGE, f"a {letter.type} is for one agent; name it")
        letter = await self._about(sender, checked(letter))
        receivers, is_full = [], None
        for receiver in self._others(sender, team):
            try:
                self._policy.check_may(sender.party.name, sender.role, receiver.name)
            except AgtmuxError:
                continue
            try:
                await self._check_room([receiver])
            except AgtmuxError as error:
                # One who takes nothing keeps nobody else from hearing it.
                is_full = error
                continue
            receivers.append(receiver)
        if not receivers:
            raise is_full or AgtmuxError(ErrorCode.NOT_FOUND, "there is no other agent that it may write to")
        self._policy.count(sender.party.name, [receiver.name for receiver in receivers], self._clock.now())
        return await self._accept(sender, receivers, letter, wait, is_for_all=True)

    async def notify(self, receiver: Party, letter: Letter) -> None:
        """In agtmux's own name, once for each `request_ref`. Whoever is not there any more need not know."""
        if receiver.runtime_id is not None and receiver.runtime_id not in self._world.by_runtime:
            return
        party = receiver if receiver.runtime_id is not None else Party(USER)
        try:
            await self._accept(Sender(Party(AGTMUX)), [party], letter, 0.0)
        except AgtmuxError as error:
            # Said before, in words that were right then.
            if error.code is not ErrorCode.IDEMPOTENCY_CONFLICT:
                raise

    async def take_back(self, sender: Sender, message_id: str, *, is_any: bool) -> Message:
        """A message that has not been begun with. `is_any`: also another's."""
        message = await self.mailbox.find(message_id)
        if not is_any and message.sender.runtime_id != sender.party.runtime_id:
            raise AgtmuxError(ErrorCode.FORBIDDEN, "only who has sent a message can take it back")
        done = await self.mailbox.settle(message, self._clock.now(), Status.REFUSED, Reason.TAKEN_BACK)
        if done is None:
            now = await self.mailbox.find(message.message_id)
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"it is {now.status} and cannot be taken back any more")
        self._ended(done)
        return done

    # Fetching

    async def fetch(
        self, receiver: Party, most: int = _MOST_FETCHED, wait: float = 0.0, reply_to: str | None = None
    ) -> list[Message]:
        """What waits for it is its own from here on; if nothing does, what comes within that time."""
        until = asyncio.get_running_loop().time() + min(wait, LONGEST_FETCH)
        if reply_to is not None:
            reply_to = (await self.mailbox.find(reply_to)).message_id
        came = asyncio.Event()
        fetchers = self._fetchers[_key(receiver)]
        fetchers.add(came)
        # Whoever waits for whatever comes has nothing typed meanwhile.
        held = receiver.runtime_id if wait > 0 and reply_to is None else None
        self._postman.hold(held)
        try:
            while True:
                came.clear()
                taken = await self._taken(receiver, min(most, _MOST_FETCHED), reply_to)
                for message in taken:
                    self._ended(message)
                if taken or self._is_ending or not await woken(came, until - asyncio.get_running_loop().time()):
                    return taken
        finally:
            self._postman.release(held)
            fetchers.discard(came)
            if not fetchers:
                self._fetchers.pop(_key(receiver), None)

    # Within

    async def _taken(self, receiver: Party, most: int, reply_to: str | None) -> list[Message]:
        """What whoever asks is still there to have; otherwise it waits again."""
        taking = asyncio.ensure_future(self.mailbox.take(receiver, self._clock.now(), most, reply_to))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            self._go_on(self._give_back(taking))
            raise

    async def _give_back(self, taking: asyncio.Future[list[Message]]) -> None:
        for message in await self.mailbox.give_back(await taking):
            self._postman.drop(message)
            self._hand(message)

    def _go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """To its end, though nobody waits for it any more."""
        task = asyncio.ensure_future(work)
        self._left_over.add(task)
        task.add_done_callback(self._left_over.discard)

    async def _accept(
        self, sender: Sender, receivers: Sequence[Party], letter: Letter, wait: float, *, is_for_all: bool = False
    ) -> list[Message]:
        now = self._clock.now()
        why_wait = self._postman.why_wait
        fresh = [
            message_of(sender.party, receiver, letter, now, self._ttl, why_wait(receiver, letter.priority))
            for receiver in receivers
        ]
        if is_for_all and letter.request_ref is not None:
            # One request, and a message for each.
            fresh = [replace(each, request_ref=f"{each.request_ref}:{each.receiver.runtime_id}") for each in fresh]
        putting = self.mailbox.putting(fresh)
        try:
            accepted = await asyncio.shield(putting)
        except asyncio.CancelledError:
            self._go_on(self._hand_all(fresh, putting))
            raise
        changed = asyncio.Event()
        for message in accepted:
            self._watchers[message.message_id].add(changed)
        try:
            await self._hand_all(fresh, putting)
            if letter.now_or_never:
                wait = LONGEST_SEND
            return await self._followed(accepted, changed, min(wait, LONGEST_SEND), letter.now_or_never)
        except asyncio.CancelledError:
            if letter.now_or_never:
                self._go_on(self._refuse_all(accepted))
            raise
        finally:
            for message in accepted:
                self._watchers[message.message_id].discard(changed)
                if not self._watchers[message.message_id]:
                    del self._watchers[message.message_id]

    async def _hand_all(self, fresh: list[Message], putting: asyncio.Future[list[Message]]) -> None:
        """Those that were not accepted before."""
        for mine, message in zip(fresh, await putting, strict=True):
            if mine.message_id == message.message_id:
                self._hand(message)
                for listener in self.on_accept:
                    listener(message)

    def _hand(self, message: Message) -> None:
        for came in self._fetchers.get(_key(message.receiver), ()):
            came.set()
        self._postman.hand(message)

    async def _followed(
        self, messages: list[Message], changed: asyncio.Event, wait: float, now_or_never: bool
    ) -> list[Message]:
        until = asyncio.get_running_loop().time() + wait
        while wait > 0 and not self._is_ending and not all(message.status.is_over for message in messages):
            if now_or_never and any(_has_to_wait(message) for message in messages):
                # Each by itself: another may just be taken.
                messages = [
                    await self._refused_now(message) if _has_to_wait(message) else message for message in messages
                ]
                continue
            try:
                async with asyncio.timeout_at(until):
                    await changed.wait()
            except TimeoutError:
                # It may have been begun with.
                messages = [await self.mailbox.find(message.message_id) for message in messages]
                break
            changed.clear()
            messages = [await self.mailbox.find(message.message_id) for message in messages]
        if now_or_never:
            messages = [await self._refused_now(message) for message in messages]
        return messages

    async def _refuse_all(self, messages: list[Message]) -> None:
        for message in messages:
            await self._refused_now(message)

    async def _refused_now(self, message: Message) -> Message:
        done = await self.mailbox.settle(message, self._clock.now(), Status.REFUSED, message.reason or Reason.NOT_NOW)
        if done is not None:
            self._ended(done)
        return await self.mailbox.find(message.message_id)

    async def _about(self, sender: Sender, letter: Letter, receiver: Party | None = None) -> Letter:
        """A reply is to a message that its sender has to do with."""
        if letter.reply_to is None:
            return letter
        about = await self.mailbox.find(letter.reply_to)
        ends = (about.sender.runtime_id, about.receiver.runtime_id)
        if sender.party.runtime_id is not None and sender.party.runtime_id not in ends:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"no message of yours has the id {letter.reply_to!r}")
        for end in (about.sender, about.receiver):
            if receiver is not None and end.name == receiver.name and end.runtime_id != receiver.runtime_id:
                raise AgtmuxError(
                    ErrorCode.RUNTIME_STALE,
                    f"the {end.name} of that message has ended, and another is called so now; if you mean that one,"
                    " write to it without reply_to",
                )
        return as_reply(letter, about)

    def _receiver(self, sender: Sender, to: str) -> Party:
        if to.strip() == USER:
            return Party(USER)
        key = self.directory.find(to)
        if key == sender.key:
            raise AgtmuxError(ErrorCode.USAGE, "that is you; name another agent")
        return self.agent(key).party

    def _others(self, sender: Sender, team: str) -> list[Party]:
        if team:
            keys = [key for _, key in self.directory.members(team)]
        else:
            keys = [key for key in self._world.panes if key in self._world.records]
        agents = [key for key in keys if self._world.records[key].runtime.has_agent and key != sender.key]
        return [self.agent(key).party for key in agents]

    async def _check_room(self, receivers: Sequence[Party]) -> None:
        for receiver in receivers:
            if receiver.runtime_id is None:
                waiting, size = await self.mailbox.waiting_for(receiver.name)
            else:
                waiting = self._postman.waiting(receiver.runtime_id)
                size = self._postman.waiting_bytes(receiver.runtime_id)
            if waiting >= self._policy.limits.waiting or size >= _MOST_WAITING_BYTES:
                raise AgtmuxError(
                    ErrorCode.LIMIT_RATE, f"{waiting} messages wait for {receiver.name} already; wait until it has them"
                )

    async def _ponged(self, sender: Sender, receiver: Party, letter: Letter) -> Message:
        """Nobody is disturbed to hear that it is there: agtmux looks, and answers for it."""
        now = self._clock.now()
        ping = message_of(sender.party, receiver, letter, now, self._ttl)
        told = replace(ping, status=Status.DELIVERED, via=Via.AGTMUX, settled_at=now)
        record = None if receiver.runtime_id is None else self._record(receiver)
        state = "there" if record is None else str(record.row.state)
        answer = replace(letter, type=MessageType.PONG, content=f"{receiver.name} is {state}", thinking=None)
        pong = replace(
            message_of(receiver, sender.party, answer, now, self._ttl),
            reply_to=ping.message_id,
            correlation_id=ping.correlation_id,
            request_ref=None,
            status=Status.DELIVERED,
            via=Via.AGTMUX,
            settled_at=now,
        )
        return (await self.mailbox.put([told, pong]))[1]

    async def _shut_down(self, sender: Sender, receiver: Party, letter: Letter) -> Message:
        key = None if receiver.runtime_id is None else self._world.by_runtime.get(receiver.runtime_id)
        if self.on_shutdown is None or key is None:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"{receiver.name} cannot be asked to end")
        await self.on_shutdown(sender, key)
        now = self._clock.now()
        told = message_of(sender.party, receiver, letter, now, self._ttl)
        return (await self.mailbox.put([replace(told, status=Status.DELIVERED, via=Via.AGTMUX, settled_at=now)]))[0]

    def _record(self, party: Party) -> Record | None:
        key = None if party.runtime_id is None else self._world.by_runtime.get(party.runtime_id)
        return None if key is None else self._world.records.get(key)

    def _ended(self, message: Message) -> None:
        """By our own doing, of which the postman has not heard."""
        self._postman.drop(message)
        self._stepped(message)

    def _stepped(self, message: Message) -> None:
        for changed in self._watchers.get(message.message_id, ()):
            changed.set()


def _has_to_wait(message: Message) -> bool:
    """Whether it was tried, and could not be delivered at once."""
    return message.stage is Stage.NONE and message.status is Status.QUEUED and message.reason is not Reason.NONE


def _key(party: Party) -> str:
    return party.runtime_id or party.name
