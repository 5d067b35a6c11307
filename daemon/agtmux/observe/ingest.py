"""The one path in: everything that changes what is known passes here, in order, and is durable before it shows.

Submissions queue up while a transaction is on its way to the disk and then go together in the next one: that is
the group commit. A submission is acknowledged only when its transaction is; one that fails leaves the world as it
was.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.panes import Target, Topology
from agtmux.domain.runtimes import Runtime, RuntimeId, TargetId
from agtmux.domain.states import Reason
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import KEPT, Outcome, Record, apply
from agtmux.engine.binding import Bound, Pending, bind
from agtmux.engine.transitions import Policy
from agtmux.observe.topology import apply_topology, forget_target
from agtmux.observe.world import Draft, PaneKey, World
from agtmux.store import tables
from agtmux.store.database import Database
from agtmux.store.tables import InboxEntry
from agtmux.store.writer import Transaction

_log = logging.getLogger(__name__)

# Beyond this many events in one transaction latency grows and throughput does not.
_EVENTS_PER_COMMIT: Final = 2_000
_QUEUE_LIMIT: Final = 50_000


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one event."""

    event_id: str
    status: str
    runtime_id: RuntimeId | None = None
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class AddTarget:
    target: Target


@dataclass(frozen=True, slots=True)
class RemoveTarget:
    target_id: TargetId


@dataclass(frozen=True, slots=True)
class ExpirePending:
    """Time has passed: events that waited too long for their runtime are let go."""


Submission = tuple[Event, ...] | Topology | AddTarget | RemoveTarget | ExpirePending


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
        self.on_change: list[Callable[[set[PaneKey]], None]] = []
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
        try:
            receipts = await self._database.writer.write(lambda tx: self._process(tx, draft, group))
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
        for (_, future), result in zip(group, receipts, strict=True):
            self.counts.update(receipt.status for receipt in result)
            if not future.done():
                future.set_result(result)
        for target_id in awaited:
            for look in self.on_pending:
                look(target_id)
        if changed:
            for publish in self.on_change:
                publish(changed)

    def _process(
        self,
        tx: Transaction,
        draft: Draft,
        group: Sequence[tuple[Submission, asyncio.Future[list[Receipt]]]],
    ) -> list[list[Receipt]]:
        now = self._clock.now()
        results: list[list[Receipt]] = [[] for _ in group]
        run: list[tuple[int, Event]] = []
        for index, (submission, _) in enumerate(group):
            if isinstance(submission, tuple):
                run.extend((index, event) for event in submission)
                continue
            self._take_events(tx, draft, run, results, now)
            run = []
            self._take_fact(tx, draft, submission, now)
        self._take_events(tx, draft, run, results, now)
        _write(tx, draft, now)
        return results

    def _take_fact(
        self, tx: Transaction, draft: Draft, fact: Topology | AddTarget | RemoveTarget | ExpirePending, now: Timestamp
    ) -> None:
        match fact:
            case Topology():
                apply_topology(tx, draft, fact, now, self._policy)
            case AddTarget(target):
                draft.targets[target.target_id] = target
                tables.save_target(tx, target, now)
            case RemoveTarget(target_id):
                forget_target(draft, target_id)
                tables.delete_target(tx, target_id)
            case ExpirePending():
                pass
        self._retry_pending(tx, draft, now)

    def _retry_pending(self, tx: Transaction, draft: Draft, now: Timestamp) -> None:
        waiting = sorted(draft.pending.values(), key=lambda event: event.ingested_at)
        bound: list[Event] = []
        for event in waiting:
            runtime, receipt = self._bind(draft, event, now)
            if runtime is not None:
                bound.append(replace(event, runtime_id=runtime.runtime_id))
            if receipt.status != "pending_bind":
                self.counts[receipt.status] += 1
        known = tables.known(tx, [], [], [tables.event_key(event) for event in bound])
        for event in bound:
            self._apply(draft, event, known, now)

    def _take_events(
        self,
        tx: Transaction,
        draft: Draft,
        run: list[tuple[int, Event]],
        results: list[list[Receipt]],
        now: Timestamp,
    ) -> None:
        for start in range(0, len(run), tables.MAX_EVENTS_AT_ONCE):
            part = run[start : start + tables.MAX_EVENTS_AT_ONCE]
            placed = [(index, self._placed(draft, event)) for index, event in part]
            known = tables.known(
                tx,
                [event.event_id for _, event in part],
                [tables.inbox_key(event) for _, event in part if event.runtime_id is None],
                [tables.event_key(event) for _, event in placed if event.runtime_id is not None],
            )
            for (index, event), (_, likely) in zip(part, placed, strict=True):
                results[index].append(self._take_event(draft, event, likely, known, now))

    def _placed(self, draft: Draft, event: Event) -> Event:
        """The event as it would be if it is bound to who is in its pane now."""
        if event.runtime_id is not None or event.target_id is None or event.pane_id is None:
            return event
        record = draft.record((event.target_id, event.pane_id))
        return event if record is None else replace(event, runtime_id=record.runtime.runtime_id)

    def _take_event(self, draft: Draft, event: Event, likely: Event, known: tables.Known, now: Timestamp) -> Receipt:
        if event.event_id in known.event_ids:
            return Receipt(event.event_id, Outcome.DUPLICATE)
        known.event_ids.add(event.event_id)
        if event.runtime_id is not None:
            return self._apply(draft, event, known, now)
        inbox_key = tables.inbox_key(event)
        if inbox_key in known.inbox_keys:
            return Receipt(event.event_id, Outcome.DUPLICATE)
        known.inbox_keys.add(inbox_key)
        runtime, receipt = self._bind(draft, event, now)
        return receipt if runtime is None else self._apply(draft, likely, known, now)

    def _bind(self, draft: Draft, event: Event, now: Timestamp) -> tuple[Runtime | None, Receipt]:
        """The runtime the event belongs to, with its inbox entry written down; or None and why."""
        if event.target_id is None or event.pane_id is None:
            raise LookupError("an event without a runtime must name its target and pane")
        record = draft.record((event.target_id, event.pane_id))
        binding = bind(
            event,
            [record.runtime] if record is not None else [],
            observed_at=draft.last_observed(event.target_id),
            now=now,
            policy=self._policy,
        )
        if isinstance(binding, Bound):
            draft.pending.pop(event.event_id, None)
            runtime_id = binding.runtime.runtime_id
            draft.inbox[event.event_id] = InboxEntry(event, "bound", runtime_id)
            return binding.runtime, Receipt(event.event_id, "bound", runtime_id)
        if isinstance(binding, Pending) and draft.target(event.target_id) is not None:
            if event.event_id not in draft.pending:
                draft.pending[event.event_id] = event
                draft.inbox[event.event_id] = InboxEntry(event, "pending_bind")
            return None, Receipt(event.event_id, "pending_bind")
        draft.pending.pop(event.event_id, None)
        reason = Reason.BIND_NO_CANDIDATE if isinstance(binding, Pending) else binding.reason
        draft.inbox[event.event_id] = InboxEntry(event, "dropped_unbound", reason_code=reason)
        return None, Receipt(event.event_id, "dropped_unbound", reason_code=reason)

    def _apply(self, draft: Draft, event: Event, known: tables.Known, now: Timestamp) -> Receipt:
        record = draft.record_of(event.runtime_id) if event.runtime_id is not None else None
        if record is None:
            return Receipt(event.event_id, Outcome.STALE_RUNTIME, event.runtime_id)
        target = draft.target(record.runtime.target_id)
        if target is None:
            return Receipt(event.event_id, Outcome.STALE_RUNTIME, event.runtime_id)
        key = tables.event_key(event)
        duplicate = key in known.event_keys
        known.event_keys.add(key)
        after, outcome = apply(record, event, duplicate=duplicate, health=target.health, now=now, policy=self._policy)
        if outcome in KEPT:
            draft.events.append(event)
        if after is not record:
            draft.records[after.runtime.target_id, after.runtime.pane_id] = after
        return Receipt(event.event_id, outcome, event.runtime_id)


def _write(tx: Transaction, draft: Draft, now: Timestamp) -> None:
    if draft.ended:
        tables.end_runtimes(tx, draft.ended, now)
    if draft.started:
        tables.insert_runtimes(tx, draft.started)
    gone = [key for key, pane in draft.panes.items() if pane is None]
    if gone:
        tables.delete_panes(tx, gone)
    if draft.panes:
        tables.save_panes(tx, [pane for pane in draft.panes.values() if pane is not None], now)
    if draft.inbox:
        tables.upsert_inbox(tx, draft.inbox.values())
    if draft.events:
        tables.insert_events(tx, draft.events)
    changed: list[Record] = [record for record in draft.records.values() if record is not None]
    if changed:
        tables.save_records(tx, changed)


def _size(entry: tuple[Submission, asyncio.Future[list[Receipt]]] | None) -> int:
    return len(entry[0]) if entry is not None and isinstance(entry[0], tuple) else 1
