"""All that is known right now, in memory: targets, panes, their runtimes and states.

The database is the truth and this is its mirror: it changes only after a commit, and only through a `Draft`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from agtmux.domain.events import Event
from agtmux.domain.panes import HOST, Pane, Target
from agtmux.domain.runtimes import PaneId, Runtime, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.store.tables import InboxEntry

K = TypeVar("K")
V = TypeVar("V")
PaneKey = tuple[TargetId, PaneId]


@dataclass(slots=True)
class World:
    targets: dict[TargetId, Target] = field(default_factory=dict)
    panes: dict[PaneKey, Pane] = field(default_factory=dict)
    records: dict[PaneKey, Record] = field(default_factory=dict)
    by_runtime: dict[RuntimeId, PaneKey] = field(default_factory=dict)
    # When each target was last looked at, by the moment the look began.
    observed_at: dict[TargetId, Timestamp] = field(default_factory=dict)
    pending: dict[str, Event] = field(default_factory=dict)
    # What agents were given to be called.
    roles: dict[RuntimeId, str] = field(default_factory=dict)

    def name_of(self, runtime: Runtime) -> str:
        """Its role if it has one, and what and where it is otherwise."""
        return self.roles.get(runtime.runtime_id) or plain_name(runtime)


def plain_name(runtime: Runtime) -> str:
    """`AGENT-3` for the one in pane %3 of this machine, and `AGENT-3@vm1` elsewhere."""
    place = "" if runtime.target_id == HOST else f"@{runtime.target_id}"
    return f"{runtime.agent_type}-{runtime.pane_id.removeprefix('%')}{place}"


class Draft:
    """What one transaction would change. Reads fall through to the world; `publish` makes it true."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.targets: dict[TargetId, Target | None] = {}
        self.panes: dict[PaneKey, Pane | None] = {}
        self.records: dict[PaneKey, Record | None] = {}
        self.observed_at: dict[TargetId, Timestamp] = {}
        self.started: list[Runtime] = []
        self.ended: list[Record] = []
        self.events: list[tuple[RuntimeId, Event]] = []
        self.inbox: dict[str, InboxEntry] = {}
        self.pending: dict[str, Event] = dict(world.pending)

    def target(self, target_id: TargetId) -> Target | None:
        return self.targets[target_id] if target_id in self.targets else self._world.targets.get(target_id)

    def pane(self, key: PaneKey) -> Pane | None:
        return self.panes[key] if key in self.panes else self._world.panes.get(key)

    def record(self, key: PaneKey) -> Record | None:
        return self.records[key] if key in self.records else self._world.records.get(key)

    def record_of(self, runtime_id: RuntimeId) -> Record | None:
        key = self._world.by_runtime.get(runtime_id)
        if key is None:
            key = next(((run.target_id, run.pane_id) for run in self.started if run.runtime_id == runtime_id), None)
        record = self.record(key) if key is not None else None
        return record if record is not None and record.runtime.runtime_id == runtime_id else None

    def last_observed(self, target_id: TargetId) -> Timestamp | None:
        return self.observed_at.get(target_id) or self._world.observed_at.get(target_id)

    def pane_keys(self, target_id: TargetId) -> set[PaneKey]:
        keys = {key for key in self._world.records if key[0] == target_id}
        keys |= {key for key in self._world.panes if key[0] == target_id}
        return keys | {key for key in self.records if key[0] == target_id}

    def publish(self) -> set[PaneKey]:
        """Make it true; returns the panes whose looks changed."""
        world = self._world
        changed = set(self.panes) | set(self.records)
        _merge(world.targets, self.targets)
        _merge(world.panes, self.panes)
        _merge(world.records, self.records)
        for runtime in self.started:
            world.by_runtime[runtime.runtime_id] = (runtime.target_id, runtime.pane_id)
        for record in self.ended:
            world.by_runtime.pop(record.runtime.runtime_id, None)
        world.observed_at |= self.observed_at
        world.pending = self.pending
        return changed


def _merge(into: dict[K, V], changes: dict[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            into.pop(key, None)
        else:
            into[key] = value
