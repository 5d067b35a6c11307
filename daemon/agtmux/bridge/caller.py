"""Who is at the other end of a bridge: from the process that the kernel names, up to the pane it runs in.

Nothing that the caller says of itself counts. Where the way up is not sure, nobody is meant rather than a neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agtmux.agents.registry import Registry
from agtmux.domain.panes import TargetKind
from agtmux.observe.world import PaneKey, World
from agtmux.probe.processes import lineage

NO_PEER: Final = "the system does not tell which process asks"
NO_PANE: Final = "the process that asks does not run in a pane that agtmux watches"
SHARED: Final = (
    "the process that asks was started by a background service that works for several panes, so which is not known"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The pane of whoever asks, or why it is not known."""

    key: PaneKey | None
    why_not: str = ""


def find_caller(world: World, registry: Registry, pid: int | None) -> Caller:
    """`pid` is the process that made the connection."""
    if pid is None:
        return Caller(None, NO_PEER)
    panes = _panes_by_process(world)
    key = next((panes[each] for each in lineage(pid) or () if each in panes), None)
    if key is None:
        return Caller(None, NO_PANE)
    agent_type = world.records[key].runtime.agent_type
    is_shared = registry.knows(agent_type) and registry.sheet(agent_type).process.is_shared
    if is_shared and world.records[key].runtime.pid not in (lineage(pid, on_terminal=True) or ()):
        return Caller(None, SHARED)
    return Caller(key)


def _panes_by_process(world: World) -> dict[int, PaneKey]:
    """Of this machine alone: another's process numbers mean nothing here. What two panes claim is nobody's."""
    found: dict[int, PaneKey] = {}
    twice: set[int] = set()
    for key, record in world.records.items():
        target, pid = world.targets.get(key[0]), record.runtime.pid
        if target is None or target.kind is not TargetKind.LOCAL or pid is None:
            continue
        if pid in found:
            twice.add(pid)
        found[pid] = key
    return {pid: key for pid, key in found.items() if pid not in twice}
