"""Who is at the other end of a bridge: from the process that the kernel names, up to the pane it runs in.

Nothing that the caller says of itself counts. Where the way up is not sure, nobody is meant rather than a neighbour.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from agtmux.agents.registry import Registry
from agtmux.agents.sheet import ProcessRule
from agtmux.domain.panes import Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.observe.world import PaneKey, World
from agtmux.probe.processes import read_one, way_up
from agtmux.targets.bridges import Way

NO_PEER: Final = "the system does not tell which process asks"
NO_PANE: Final = "the process that asks does not run in a pane that agtmux watches"
SHARED: Final = (
    "the process that asks was started by a background service that works for several panes, so which is not known"
)

# Who was started by whom does not change; an end of one above counts after this many seconds.
HOLDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """The pane of whoever asks, or why it is not known."""

    key: PaneKey | None
    why_not: str = ""
    # Whether each process from it up to the pane's own has a terminal, as what somebody types has.
    is_at_terminal: bool = False
    # The account on another machine that it asks from, also if its pane is not known; empty for this machine.
    machine: str = ""
    # Whether it is some agent, of a service that works for several panes.
    is_shared: bool = False


class Peer:
    """The other end of one connection: the process that made it, and the way up from there. Made with the connection:
    one that has ended before that is nobody."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        process = None if pid is None else read_one(pid)
        self._started_at = None if process is None else process.started
        self._way: Way | None = None
        self._found_at = float("-inf")

    def way(self) -> Way | None:
        """None if it is not known, or has ended. Whoever asks again at once is not looked for again."""
        now = time.monotonic()
        if self.pid is not None and now - self._found_at >= HOLDS:
            self._found_at, self._way = now, self._look(self.pid)
        return self._way

    def _look(self, pid: int) -> Way | None:
        process = read_one(pid)
        if process is None or process.started != self._started_at:
            # Another has its number by now, which has not made this connection: what it left open speaks for nobody.
            return None
        found = way_up(pid)
        return None if found is None else Way(tuple(found.lineage), tuple(found.on_terminal), found.service_name)


def find_caller(world: World, registry: Registry, peer: Peer) -> Caller:
    """On this machine."""
    if peer.pid is None:
        return Caller(None, NO_PEER)
    way = peer.way()
    if way is None:
        return Caller(None, NO_PANE)
    return _resolved(world, registry, way, lambda target: target.kind is not TargetKind.SSH)


def find_far_caller(world: World, registry: Registry, target: Target, way: Way | None) -> Caller:
    """On another machine, by what its probe says: one of the panes of that account there, or nobody."""
    if way is None:
        return Caller(None, NO_PEER, machine=target.connection_ref)

    def is_there(other: Target) -> bool:
        return (other.kind, other.connection_ref) == (TargetKind.SSH, target.connection_ref)

    return replace(_resolved(world, registry, way, is_there), machine=target.connection_ref)


def _resolved(world: World, registry: Registry, way: Way, is_there: Callable[[Target], bool]) -> Caller:
    panes = _panes_by_process(world, {name for name, target in world.targets.items() if is_there(target)}, way.lineage)
    key = next((panes[each] for each in way.lineage if each in panes), None)
    if key is None:
        rules = (registry.sheet(name).process for name in registry.agent_types)
        shared = next((rule for rule in rules if rule.is_shared and way.service in rule.commands), None)
        return Caller(None, NO_PANE if shared is None else _shared(shared), is_shared=shared is not None)
    runtime = world.records[key].runtime
    rule = registry.sheet(runtime.agent_type).process if registry.knows(runtime.agent_type) else None
    if rule is not None and rule.is_shared and runtime.pid not in way.on_terminal:
        return Caller(None, _shared(rule), is_shared=True)
    return Caller(key, is_at_terminal=runtime.pid in way.on_terminal)


def _shared(rule: ProcessRule) -> str:
    return f"{SHARED}; {rule.unshared_by}" if rule.unshared_by else SHARED


def _panes_by_process(world: World, targets: Collection[TargetId], pids: Collection[int]) -> dict[int, PaneKey]:
    """Of one machine alone: another's process numbers mean nothing there. What two panes claim is nobody's."""
    claims = [
        (pid, key)
        for key, record in world.records.items()
        if (pid := record.runtime.pid) is not None and pid in pids and key[0] in targets
    ]
    claimed = Counter(pid for pid, _ in claims)
    return {pid: key for pid, key in claims if claimed[pid] == 1}
