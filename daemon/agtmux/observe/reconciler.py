"""Sees to it that time alone changes what it must: what was told grows stale, what was completed becomes idle.

It never writes a state. It says what is due, as an event like any other, and the engine decides. It sleeps until
the next thing is due instead of looking around.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from typing import Final

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.events import DEMOTION_DUE, STALE_DETECTED, TARGET_HEALTH_CHANGED, Event, derive_dedupe_key
from agtmux.domain.runtimes import TargetId
from agtmux.domain.states import Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record, settle
from agtmux.engine.resolve import next_change
from agtmux.engine.transitions import Policy
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import new_event_id
from agtmux.observe.submissions import ExpirePending
from agtmux.observe.world import PaneKey, World

_log = logging.getLogger(__name__)

# When the store refuses, a full disk mostly, it is not asked again at once.
_AGAIN: Final = 5 * SECOND
# A machine that slept may wake with a long list; it need not wake for less than this.
_LONGEST_SLEEP: Final = 60.0


class Reconciler:
    def __init__(self, world: World, ingest: Ingest, clock: Clock, policy: Policy) -> None:
        self._world = world
        self._ingest = ingest
        self._clock = clock
        self._policy = policy
        self._queue: list[tuple[Timestamp, PaneKey]] = []
        # The moment each pane is queued for. A pane is queued again only for an earlier one.
        self._planned: dict[PaneKey, Timestamp] = {}
        self._changed = asyncio.Event()
        ingest.on_change.append(self._plan)
        ingest.on_pending.append(lambda _: self._changed.set())

    async def catch_up(self) -> None:
        """What fell due while no daemon was there is due now, before anyone is told of it."""
        for key in self._world.records:
            self._put(key, self._clock.now())
        now = self._clock.now()
        await self._settle(self._take_due(now), now)

    async def run(self) -> None:
        self._plan(set(self._world.records), self._clock.now())
        while True:
            self._changed.clear()
            now = self._clock.now()
            keys = self._take_due(now)
            try:
                await self._settle(keys, now)
            except AgtmuxError as error:
                _log.warning("what is due could not be written, it is tried again: %s", error.message)
                for key in keys:
                    self._put(key, Timestamp(now + _AGAIN))
                await asyncio.sleep(_AGAIN / SECOND)
            # Not wait_for: on Python 3.11 it loses a cancellation that comes in the moment it is woken.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._changed.wait()

    async def health_changed(self, target_id: TargetId) -> None:
        """Every pane of the target hears of it, by an event like any other."""
        now = self._clock.now()
        records = [record for key, record in self._world.records.items() if key[0] == target_id]
        if records:
            await self._ingest.submit(tuple(_due_event(record, TARGET_HEALTH_CHANGED, now) for record in records))

    async def _settle(self, keys: set[PaneKey], now: Timestamp) -> None:
        events = tuple(event for key in keys if (event := self._event(key, now)) is not None)
        if events:
            await self._ingest.submit(events)
        if self._oldest_pending_expired(now):
            await self._ingest.submit(ExpirePending())
        self._plan(keys, now)

    def _plan(self, keys: set[PaneKey], settled_at: Timestamp) -> None:
        """From when they were settled, and not from now: what fell due since then is still to be said."""
        for key in keys:
            record = self._world.records.get(key)
            moment = next_change(record.signals.values(), settled_at, self._policy) if record is not None else None
            if moment is not None:
                self._put(key, moment)

    def _put(self, key: PaneKey, moment: Timestamp) -> None:
        if key in self._planned and self._planned[key] <= moment:
            return
        if not self._queue or moment < self._queue[0][0]:
            self._changed.set()
        self._planned[key] = moment
        heapq.heappush(self._queue, (moment, key))

    def _take_due(self, now: Timestamp) -> set[PaneKey]:
        keys = set()
        while self._queue and self._queue[0][0] <= now:
            moment, key = heapq.heappop(self._queue)
            if self._planned.get(key) == moment:
                del self._planned[key]
                keys.add(key)
        return keys

    def _event(self, key: PaneKey, now: Timestamp) -> Event | None:
        """What to say about the pane, or None if what it was queued for has been overtaken."""
        record, target = self._world.records.get(key), self._world.targets.get(key[0])
        if record is None or target is None:
            return None
        settled = settle(record, health=target.health, now=now, policy=self._policy)
        if settled is record:
            return None
        is_demotion = (record.row.state, settled.row.state) == (State.COMPLETED, State.IDLE)
        return _due_event(record, DEMOTION_DUE if is_demotion else STALE_DETECTED, now)

    def _oldest_pending_expired(self, now: Timestamp) -> bool:
        deadline = self._pending_deadline()
        return deadline is not None and deadline < now

    def _pending_deadline(self) -> int | None:
        oldest = min((event.ingested_at for event in self._world.pending.values()), default=None)
        return None if oldest is None else oldest + self._policy.pending_bind_ttl

    def _pause(self) -> float:
        moments = [float(self._queue[0][0])] if self._queue else []
        if (deadline := self._pending_deadline()) is not None:
            moments.append(float(deadline + 1))
        if not moments:
            return _LONGEST_SLEEP
        return min(max(0.001, (min(moments) - self._clock.now()) / SECOND), _LONGEST_SLEEP)


def _due_event(record: Record, event_type: str, now: Timestamp) -> Event:
    version = record.row.state_version
    identity = f"{record.runtime.runtime_id}:{version}:{now}"
    return Event(
        event_id=new_event_id(),
        event_type=event_type,
        source=Source.RECONCILER,
        dedupe_key=derive_dedupe_key(Source.RECONCILER, identity, event_type, b""),
        event_time=now,
        ingested_at=now,
        runtime_id=record.runtime.runtime_id,
        # A target's health is about whatever state its panes have by then.
        if_state_version=None if event_type == TARGET_HEALTH_CHANGED else version,
    )
