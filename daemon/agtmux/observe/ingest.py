"""The one path in: everything that changes what is known passes here, in order, and is durable before it shows.

Submissions queue up while a transaction is on its way to the disk and then go together in the next one: that is
the group commit. A submission is acknowledged only when its transaction is; one that fails leaves the world as it
was.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.runtimes import RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.transitions import Policy
from agtmux.observe.batch import Batch
from agtmux.observe.submissions import Receipt, Submission
from agtmux.observe.world import Draft, PaneKey, World
from agtmux.store import tables
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

_log = logging.getLogger(__name__)

# Beyond this many events in one transaction latency grows and throughput does not.
_EVENTS_PER_COMMIT: Final = 2_000
_QUEUE_LIMIT: Final = 50_000


class Ingest:
    def __init__(self, database: Database, world: World, clock: Clock, policy: Policy) -> None:
        self._database = database
        self._world = world
        self._clock = clock
        self._policy = policy
        self._queue: asyncio.Queue[tuple[Submission, asyncio.Future[list[Receipt]]] | None] = asyncio.Queue(
            _QUEUE_LIMIT
        )
        self._task: asyncio.Task[None] | None = None
        # Called with the panes that changed, and the moment for which their states were worked out.
        self.on_change: list[Callable[[set[PaneKey], Timestamp], None]] = []
        # Called with what was told of runtimes, once it is durable.
        self.on_events: list[Callable[[list[tuple[RuntimeId, Event]]], None]] = []
        self.on_pending: list[Callable[[TargetId], None]] = []
        self.counts: Counter[str] = Counter()

    async def load(self) -> None:
        """Take up what an earlier daemon knew."""
        self._clock.start_after(await tables.latest_moment(self._database))
        for target in await tables.load_targets(self._database):
            self._world.targets[target.target_id] = target
        for pane in await tables.load_panes(self._database):
            self._world.panes[pane.target_id, pane.pane_id] = pane
        for record in await tables.load_records(self._database):
            key = (record.runtime.target_id, record.runtime.pane_id)
            self._world.records[key] = record
            self._world.by_runtime[record.runtime.runtime_id] = key
        self._world.pending = {event.event_id: event for event in await tables.load_pending(self._database)}

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="ingest")

    async def stop(self) -> None:
        if self._task is not None:
            await self._queue.put(None)
            await self._task
            self._task = None

    async def submit(self, submission: Submission) -> list[Receipt]:
        """Returns when it is durable. Events get a receipt each, in their order."""
        if self._task is None or self._task.done():
            raise AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "the daemon is stopping; try again in a moment")
        future: asyncio.Future[list[Receipt]] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait((submission, future))
        except asyncio.QueueFull:
            raise AgtmuxError(ErrorCode.LIMIT_RATE, "too many events are waiting; slow down") from None
        return await future

    async def _run(self) -> None:
        running = True
        while running:
            group = [await self._queue.get()]
            size = _size(group[0])
            while size < _EVENTS_PER_COMMIT and not self._queue.empty():
                group.append(self._queue.get_nowait())
                size += _size(group[-1])
            running = None not in group
            await self._commit([entry for entry in group if entry is not None])

    async def _commit(self, group: list[tuple[Submission, asyncio.Future[list[Receipt]]]]) -> None:
        draft = Draft(self._world)
        now = self._clock.now()
        late: Counter[str] = Counter()

        def process(tx: Transaction) -> list[list[Receipt]]:
            batch = Batch(tx, draft, now, self._policy)
            receipts = batch.process([submission for submission, _ in group])
            late.update(batch.late)
            return receipts

        try:
            receipts = await self._database.writer.write(process)
        except Exception as error:
            # The writer has logged what it did not expect; whoever comes next still needs this task.
            self.counts["failed"] += sum(map(_size, group))
            expected = isinstance(error, AgtmuxError)
            reported = error if expected else AgtmuxError(ErrorCode.INTERNAL, "agtmuxd failed at this; see its log")
            for _, future in group:
                if not future.done():
                    future.set_exception(reported)
            return
        new = (event for event_id, event in draft.pending.items() if event_id not in self._world.pending)
        awaited = {event.target_id for event in new if event.target_id is not None}
        changed = draft.publish()
        self.counts.update(late)
        for (_, future), result in zip(group, receipts, strict=True):
            self.counts.update(receipt.status for receipt in result)
            if not future.done():
                future.set_result(result)
        try:
            for target_id in awaited:
                for look in self.on_pending:
                    look(target_id)
            for hear in self.on_events if draft.events else ():
                hear(draft.events)
            for publish in self.on_change if changed else ():
                publish(changed, now)
        except Exception:
            # It is on the disk and in the world; who listens must not be able to stop what comes next.
            _log.exception("a listener failed")


def _size(entry: tuple[Submission, asyncio.Future[list[Receipt]]] | None) -> int:
    return len(entry[0]) if entry is not None and isinstance(entry[0], tuple) else 1
