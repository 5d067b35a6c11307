"""Brings messages to their receivers: one round for each receiver that has mail, in order, until it has none.

A round tries at once, and again whenever something about its receiver changes. A draft that goes away is no change of
a state, so it is looked for as well, ever more seldom.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from agtmux.actions.desk import Desk
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.mail import Message, Party, Priority, Reason, Stage, Status, Via
from agtmux.domain.runtimes import RuntimeId
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.bag import Bag
from agtmux.messages.gate import Gate
from agtmux.messages.mailbox import Mailbox
from agtmux.observe.supervisor import Supervisor
from agtmux.observe.world import PaneKey, World

_log = logging.getLogger(__name__)

# Seconds between looks at a receiver about which nothing changes.
_PAUSES: Final = (0.3, 0.6, 1.2, 2.5, 5.0)
# Also if it changes all the time.
_SHORTEST_PAUSE: Final = 0.2
_LEVELS: Final = {
    Status.DELIVERED: logging.INFO,
    Status.REFUSED: logging.INFO,
    Status.EXPIRED: logging.WARNING,
    Status.UNCERTAIN: logging.WARNING,
}
# What was begun is followed for so long after its time is over.
_GRACE: Final = 60 * SECOND


class Postman:
    def __init__(self, mailbox: Mailbox, gate: Gate, world: World, clock: Clock, supervisor: Supervisor) -> None:
        self._mailbox = mailbox
        self._gate = gate
        self._world = world
        self._clock = clock
        self._supervisor = supervisor
        self._desk: Desk | None = None
        self._bags: dict[RuntimeId, Bag] = defaultdict(Bag)
        self._wakes: dict[RuntimeId, asyncio.Event] = {}
        # Those who have come to fetch their mail themselves.
        self._fetching: Counter[RuntimeId] = Counter()
        # Those that are tried, and out of their bag meanwhile; and of these, those that ended by somebody else's doing.
        self._trying: set[str] = set()
        self._dropped: set[str] = set()
        # Told of every message that ended or moved.
        self.on_step: list[Callable[[Message], None]] = []

    async def start(self, desk: Desk) -> None:
        """Goes on where an earlier daemon ended."""
        self._desk = desk
        for message in await self._mailbox.open():
            self.hand(message)

    def hand(self, message: Message) -> None:
        """A message that was accepted."""
        receiver = message.receiver.runtime_id
        if receiver is None:
            return
        bag = self._bags[receiver]
        bag.push(message)
        if receiver in self._wakes:
            # What keeps the first of them waiting keeps those behind it too.
            if bag.first is message:
                self._wakes[receiver].set()
        else:
            self._wakes[receiver] = asyncio.Event()
            self._supervisor.spawn(lambda: self._round(receiver), f"messages for {receiver[:12]}")

    def drop(self, message: Message) -> None:
        """It was fetched or taken back."""
        if message.receiver.runtime_id not in self._bags:
            return
        if message.message_id in self._trying:
            self._dropped.add(message.message_id)
        self._bags[message.receiver.runtime_id].drop(lambda each: each.message_id == message.message_id)

    def why_wait(self, receiver: Party, priority: Priority) -> Reason:
        """What keeps those waiting that such a message would come behind."""
        bag = self._bags.get(receiver.runtime_id) if receiver.runtime_id is not None else None
        first = None if bag is None else bag.first
        if first is None or (first.stage is Stage.NONE and first.priority.rank < priority.rank):
            return receiver.waits_for
        return first.reason

    def waiting(self, receiver: RuntimeId) -> int:
        bag = self._bags.get(receiver)
        return 0 if bag is None else len(bag)

    def waiting_bytes(self, receiver: RuntimeId) -> int:
        bag = self._bags.get(receiver)
        return 0 if bag is None else bag.size

    def changed(self, keys: set[PaneKey], _: Timestamp) -> None:
        """Something about these panes is not what it was."""
        if not self._wakes:
            return
        for receiver, wake in self._wakes.items():
            if self._world.by_runtime.get(receiver) in keys or receiver not in self._world.by_runtime:
                wake.set()

    def hold(self, receiver: RuntimeId | None) -> None:
        """Nothing is typed for it until it is released as often."""
        if receiver is not None:
            self._fetching[receiver] += 1

    def release(self, receiver: RuntimeId | None) -> None:
        if receiver is None:
            return
        self._fetching[receiver] -= 1
        if not self._fetching[receiver]:
            del self._fetching[receiver]
            if receiver in self._wakes:
                self._wakes[receiver].set()

    async def _round(self, receiver: RuntimeId) -> None:
        bag, wake = self._bags[receiver], self._wakes[receiver]
        pauses = 0
        while bag:
            wake.clear()
            if receiver in self._fetching:
                await wake.wait()
                continue
            has_moved = await self._step(receiver, bag)
            if has_moved:
                pauses = 0
                continue
            is_woken = await woken(wake, min(_PAUSES[min(pauses, len(_PAUSES) - 1)], self._until_expiry(bag)))
            pauses = 0 if is_woken else pauses + 1
            if is_woken:
                await asyncio.sleep(_SHORTEST_PAUSE)
        del self._bags[receiver], self._wakes[receiver]

    async def _step(self, receiver: RuntimeId, bag: Bag) -> bool:
        """One try with the first of them; whether there is a reason to go on at once."""
        key = self._world.by_runtime.get(receiver)
        now = self._clock.now()
        if key is not None and await self._expire(bag, now):
            return True
        # Out of the bag while it is tried: another may come meanwhile that is more urgent.
        left: Message | None = (message := bag.pop())
        self._trying.add(message.message_id)
        try:
            if key is None:
                await self._lost(message, now)
                left = None
            else:
                left = await self._tried(key, bag, message)
        finally:
            if left is not None and left.message_id not in self._dropped:
                bag.push(left)
            self._dropped.discard(message.message_id)
            self._trying.discard(message.message_id)
        return left is None

    async def _tried(self, key: PaneKey, bag: Bag, message: Message) -> Message | None:
        """What is left of it to be delivered: nothing, if it is over."""
        assert self._desk is not None
        if message.is_redacted:
            # Its text is gone, and the redacted form is not what was sent. What was begun may have been taken.
            status = Status.REFUSED if message.stage is Stage.NONE else Status.UNCERTAIN
            self._tell(await self._mailbox.settle(message, self._clock.now(), status, Reason.CONTENT_LOST))
            return None
        outcome = await self._gate.attempt(self._desk, key, message)
        at = outcome.message
        if at is None:
            # Somebody has had it; or it is further than was known here, as when that could not be written down.
            found = await self._mailbox.find(message.message_id)
            return None if found.status.is_over else self._mailbox.whole(found)
        if outcome.is_delivered:
            done, way = Status.DELIVERED, Via.TYPED
            self._tell(await self._mailbox.settle(at, self._clock.now(), done, via=way, action_id=outcome.action_id))
            return None
        if outcome.is_uncertain:
            self._tell(await self._mailbox.settle(at, self._clock.now(), Status.UNCERTAIN, outcome.reason))
            return None
        if all(each.reason is outcome.reason for each in (at, *bag)):
            return at
        # None if it was fetched or taken back meanwhile.
        noted = await self._mailbox.note(at, outcome.reason)
        self._tell(noted)
        if noted is not None:
            # They are told with it, and have to be told again when that is not so any more.
            bag.note(outcome.reason)
        return noted

    async def _expire(self, bag: Bag, now: Timestamp) -> bool:
        """Whether any was over; wherever it stands in the bag."""
        over = [message for message in bag if now >= message.expires_at]
        gone = set()
        for message in over:
            if message.stage is Stage.NONE:
                self._tell(await self._mailbox.settle(message, now, Status.EXPIRED, Reason.TTL_ENDED))
            elif now < message.expires_at + _GRACE:
                continue
            else:
                self._tell(await self._mailbox.settle(message, now, Status.UNCERTAIN, message.reason))
            gone.add(message.message_id)
        if gone:
            bag.drop(lambda each: each.message_id in gone)
        return bool(gone)

    async def _lost(self, message: Message, now: Timestamp) -> None:
        """Its receiver is not there any more."""
        if message.stage is Stage.NONE:
            self._tell(await self._mailbox.settle(message, now, Status.REFUSED, Reason.RECEIVER_ENDED))
        else:
            self._tell(await self._mailbox.settle(message, now, Status.UNCERTAIN, Reason.RECEIVER_ENDED))

    def _until_expiry(self, bag: Bag) -> float:
        now = self._clock.now()
        ends = (message.expires_at - now for message in bag if message.stage is Stage.NONE)
        return max(min(ends, default=SECOND * 60) / SECOND, 0.01)

    def _tell(self, message: Message | None) -> None:
        if message is None:
            return
        _log.log(
            _LEVELS.get(message.status, logging.DEBUG),
            "message %s, %s of %d bytes from %s to %s: %s%s",
            message.message_id,
            message.type,
            message.size,
            message.sender.name,
            message.receiver.name,
            message.status,
            f" ({message.reason})" if message.reason else "",
        )
        for listener in self.on_step:
            listener(message)


async def woken(event: asyncio.Event, limit: float) -> bool:
    """Whether it was set within so many seconds."""
    try:
        async with asyncio.timeout(max(limit, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
