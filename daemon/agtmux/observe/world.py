"""All that is known right now, in memory: targets, panes, their runtimes and states.

The database is the truth and this is its mirror: it changes only after a commit, and only through a `Draft`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from agtmux.domain.events import Event
from agtmux.domain.panes import HOST, Pane, Target
from agtmux.domain.runtimes import PaneId, Runtime, RuntimeId, TargetId
from agtmux.domain.states import Confidence, Reason, State
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
    # When each target was last looked at with success. It is written down with something else, or when that ends.
    seen_at: dict[TargetId, Timestamp] = field(default_factory=dict)
    pending: dict[str, Event] = field(default_factory=dict)
    # What agents were given to be called.
    roles: dict[RuntimeId, str] = field(default_factory=dict)
    # Since when this daemon knows them, and the targets that it has not looked at since.
    opened_at: Timestamp = Timestamp(0)
    unobserved: set[TargetId] = field(default_factory=set)
    # What the adapter of each type of agent can tell.
    flags: dict[str, dict[str, bool]] = field(default_factory=dict)
    # What agents call their sessions, where a file or a chat that is surely theirs says so.
    sessions: dict[RuntimeId, str] = field(default_factory=dict)
    # A cache of `views.pane_item`: for each pane what its item was made from, and the item.
    items: dict[PaneKey, tuple[object, object]] = field(default_factory=dict)

    def remembers(self, record: Record) -> bool:
        """Whether its state is only remembered: decided by an earlier daemon, and nothing was heard or seen since."""
        row = record.row
        return (
            record.runtime.target_id in self.unobserved
            and row.state is not State.UNKNOWN
            and (row.last_seen_at or 0) < self.opened_at
        )

    def shown(self, key: PaneKey) -> Record | None:
        """The record as it is shown: what is only remembered is no state."""
        record = self.records.get(key)
        if record is None or not self.remembers(record):
            return record
        row = replace(
            record.row,
            state=State.UNKNOWN,
            reason_code=Reason.NOT_OBSERVED_YET,
            confidence=Confidence.LOW,
            source=None,
            attention=None,
        )
        return replace(record, row=row)

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
        self.first_observed: set[TargetId] = set()
        self.started: list[Runtime] = []
        self.ended: list[Record] = []
        self.events: list[tuple[RuntimeId, Event]] = []
        self.inbox: dict[str, InboxEntry] = {}
        self.pending: dict[str, Event] = dict(world.pending)

    def target(self, target_id: TargetId) -> Target | None:
        return self.targets[target_id] if target_id in self.targets else self._world.targets.get(target_id)

    def seen_targets(self) -> list[Target]:
        """Those whose last look is not written down as it is, with it."""
        found = ((self.target(target_id), at) for target_id, at in self._world.seen_at.items())
        return [
            replace(target, last_seen_at=at)
            for target, at in found
            if target is not None and (target.last_seen_at is None or target.last_seen_at < at)
        ]

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
        for key in changed:
            world.items.pop(key, None)
        _merge(world.targets, self.targets)
        for target_id, target in self.targets.items():
            if target is None:
                # Another of that name has not been looked at.
                world.seen_at.pop(target_id, None)
        _merge(world.panes, self.panes)
        _merge(world.records, self.records)
        for runtime in self.started:
            world.by_runtime[runtime.runtime_id] = (runtime.target_id, runtime.pane_id)
        for record in self.ended:
            world.by_runtime.pop(record.runtime.runtime_id, None)
            world.sessions.pop(record.runtime.runtime_id, None)
        world.observed_at |= self.observed_at
        world.pending = self.pending
        if world.unobserved & self.first_observed:
            # Nothing of theirs has changed but that it is so by now.
            changed |= {key for key in world.records if key[0] in self.first_observed}
            world.unobserved -= self.first_observed
        return changed


def _merge(into: dict[K, V], changes: dict[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            into.pop(key, None)
        else:
            into[key] = value
