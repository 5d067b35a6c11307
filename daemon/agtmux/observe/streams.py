"""Watch streams: a snapshot, then what changes, then `reset` when the daemon goes.

A reader that cannot keep up is not buffered for: its backlog is dropped and it gets a fresh snapshot instead.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from agtmux.clock import Clock
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.observe import views
from agtmux.observe.world import PaneKey, World

_BACKLOG: Final = 256
_ENCODER: Final = msgspec.json.Encoder()


class _Reader:
    """One stream: its own id, its own gapless sequence."""

    def __init__(self) -> None:
        self.stream_id = uuid.uuid4().hex
        self.sequence = 0
        self.shown: dict[PaneKey, views.PaneItem] = {}
        self.changed: dict[PaneKey, None] = {}
        self.overrun = False
        self.wake = asyncio.Event()


class Hub:
    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._readers: set[_Reader] = set()
        self._closing = False

    @property
    def stream_count(self) -> int:
        return len(self._readers)

    def publish(self, keys: set[PaneKey], _: Timestamp) -> None:
        for reader in self._readers:
            reader.changed.update(dict.fromkeys(keys))
            if len(reader.changed) > _BACKLOG:
                reader.overrun = True
                reader.changed.clear()
            reader.wake.set()

    def close(self) -> None:
        self._closing = True
        for reader in self._readers:
            reader.wake.set()

    async def watch(self, *, begin_with_reset: bool = False) -> AsyncIterator[bytes]:
        """JSON lines of the scope `panes`, until the daemon stops or the reader goes."""
        reader = _Reader()
        self._readers.add(reader)
        try:
            if begin_with_reset:
                yield self._line(reader, "reset")
            yield self._snapshot(reader)
            while await self._woken(reader):
                if reader.overrun:
                    reader.overrun = False
                    yield self._line(reader, "reset")
                    yield self._snapshot(reader)
                    continue
                keys, reader.changed = list(reader.changed), {}
                changes = [change for key in keys for change in self._changes(reader, key)]
                if changes:
                    yield self._line(reader, "delta", changes=changes)
            yield self._line(reader, "reset")
        finally:
            self._readers.discard(reader)

    async def _woken(self, reader: _Reader) -> bool:
        """True when there is something to say, False when the daemon goes."""
        if not self._closing:
            await reader.wake.wait()
            reader.wake.clear()
        return not self._closing

    def _snapshot(self, reader: _Reader) -> bytes:
        reader.shown.clear()
        for key, record in self._world.records.items():
            if views.is_shown(record) and (item := views.pane_item(self._world, key)) is not None:
                reader.shown[key] = item
        return self._line(reader, "snapshot", items=list(reader.shown.values()))

    def _changes(self, reader: _Reader, key: PaneKey) -> list[dict[str, Any]]:
        visible = views.is_shown(self._world.records.get(key))
        item = views.pane_item(self._world, key) if visible else None
        before = reader.shown.pop(key, None)
        changes: list[dict[str, Any]] = []
        if before is not None and (item is None or item.identity != before.identity):
            changes.append({"op": "delete", "identity": before.identity})
        if item is not None:
            reader.shown[key] = item
            if item != before:
                changes.append({"op": "upsert", "identity": item.identity, "item": item})
        return changes

    def _line(self, reader: _Reader, kind: str, **content: Any) -> bytes:
        reader.sequence += 1
        now = format_timestamp(self._clock.now())
        line = {
            "schema_version": views.SCHEMA_VERSION,
            "generated_at": now,
            "emitted_at": now,
            "stream_id": reader.stream_id,
            "cursor": f"{reader.stream_id}:{reader.sequence}",
            "scope": "panes",
            "type": kind,
            "sequence": reader.sequence,
            "filters": {},
            "summary": views.summarise(reader.shown.values()),
        }
        return _ENCODER.encode(line | content) + b"\n"
