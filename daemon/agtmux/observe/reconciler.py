"""Sees to it that time alone changes what it must: what was told grows stale, what was completed becomes idle.

It never writes a state. It says what is due, as an event like any other, and the engine decides. It sleeps until
the next thing is due instead of looking around.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from typing import Final

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.events import DEMOTION_DUE, STALE_DETECTED, Event, derive_dedupe_key
from agtmux.domain.states import Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.engine.resolve import next_change
from agtmux.engine.transitions import Policy
from agtmux.observe.ingest import ExpirePending, Ingest
from agtmux.observe.intake import new_event_id
from agtmux.observe.world import PaneKey, World

# A machine that slept may wake with a long list; it need not wake for less than this.
_LONGEST_SLEEP: Final = 60.0


class Reconciler:
    def __init__(self, world: World, ingest: Ingest, clock: Clock, policy: Policy) -> None:
        self._world = world
        self._ingest = ingest
        self._clock = clock
        self._policy = policy
        self._due: list[tuple[Timestamp, PaneKey]] = []
        self._changed = asyncio.Event()
        ingest.on_change.append(self._plan)
        ingest.on_pending.append(lambda _: self._changed.set())

    async def run(self) -> None:
        self._plan(set(self._world.records))
        while True:
            self._changed.clear()
            now = self._clock.now()
            events = [event for key in self._take_due(now) if (event := self._event(key, now)) is not None]
            if events:
                await self._ingest.submit(tuple(events))
            if self._oldest_pending_expired(now):
                await self._ingest.submit(ExpirePending())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._pause())

    def _plan(self, keys: set[PaneKey]) -> None:
        now = self._clock.now()
        sooner = False
        for key in keys:
            record = self._world.records.get(key)
            moment = next_change(record.signals.values(), now, self._policy) if record is not None else None
            if moment is not None:
                sooner |= not self._due or moment < self._due[0][0]
                heapq.heappush(self._due, (moment, key))
        if sooner:
            self._changed.set()

    def _take_due(self, now: Timestamp) -> set[PaneKey]:
        keys = set()
        while self._due and self._due[0][0] <= now:
            keys.add(heapq.heappop(self._due)[1])
        return keys

    def _event(self, key: PaneKey, now: Timestamp) -> Event | None:
        record = self._world.records.get(key)
        if record is None or record.row.state is State.UNKNOWN:
            return None
        event_type = DEMOTION_DUE if record.row.state is State.COMPLETED else STALE_DETECTED
        return _due_event(record, event_type, now)

    def _oldest_pending_expired(self, now: Timestamp) -> bool:
        deadline = self._pending_deadline()
        return deadline is not None and deadline < now

    def _pending_deadline(self) -> int | None:
        oldest = min((event.ingested_at for event in self._world.pending.values()), default=None)
        return None if oldest is None else oldest + self._policy.pending_bind_ttl

    def _pause(self) -> float:
        moments = [float(self._due[0][0])] if self._due else []
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
        if_state_version=version,
    )
