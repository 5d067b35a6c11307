"""What a look at a tmux server changes: panes come, move and go, and their inhabitants with them."""

from __future__ import annotations

from agtmux.domain.panes import SeenPane, Topology
from agtmux.domain.runtimes import PaneInstance, TargetId, start_runtime
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import begin
from agtmux.engine.transitions import Policy
from agtmux.observe.world import Draft, PaneKey
from agtmux.store import tables
from agtmux.store.writer import Transaction


def apply_topology(tx: Transaction, draft: Draft, topology: Topology, now: Timestamp, policy: Policy) -> None:
    target_id = topology.target_id
    target = draft.target(target_id)
    if target is None:
        # Removed while the look was under way.
        return
    draft.observed_at[target_id] = topology.taken_at
    seen_keys: set[PaneKey] = set()
    for seen in topology.panes:
        seen_keys.add((target_id, seen.pane.pane_id))
        _see(tx, draft, topology, seen, now, policy)
    for key in draft.pane_keys(target_id) - seen_keys:
        _end(draft, key)
        draft.panes[key] = None


def _see(tx: Transaction, draft: Draft, topology: Topology, seen: SeenPane, now: Timestamp, policy: Policy) -> None:
    if topology.tmux_server_boot_id is None:
        raise LookupError("a topology with panes must name its server")
    key = (topology.target_id, seen.pane.pane_id)
    if draft.pane(key) != seen.pane:
        draft.panes[key] = seen.pane
    instance = PaneInstance(topology.target_id, topology.tmux_server_boot_id, seen.pane.pane_id)
    record = draft.record(key)
    if record is not None and record.runtime.is_inhabited_by(instance, seen.inhabitant):
        return
    after_version = record.row.state_version if record is not None else tables.last_state_version(tx, *key)
    epoch = tables.last_epoch(tx, instance) + 1
    if record is not None and record.runtime.instance == instance:
        epoch = max(epoch, record.runtime.pane_epoch + 1)
    _end(draft, key)
    target = draft.target(topology.target_id)
    if target is None:
        raise LookupError(f"no target {topology.target_id}")
    runtime = start_runtime(instance, epoch, seen.inhabitant, topology.taken_at)
    draft.started.append(runtime)
    draft.records[key] = begin(runtime, after_version=after_version, health=target.health, now=now, policy=policy)


def forget_target(draft: Draft, target_id: TargetId) -> None:
    for key in draft.pane_keys(target_id):
        _end(draft, key)
        draft.panes[key] = None
    draft.targets[target_id] = None


def _end(draft: Draft, key: PaneKey) -> None:
    record = draft.record(key)
    if record is None:
        return
    if record.runtime in draft.started:
        # Came and went within one transaction: it was never anyone's to refer to.
        draft.started.remove(record.runtime)
    else:
        draft.ended.append(record)
    draft.records[key] = None
