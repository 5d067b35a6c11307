"""Who asks through the daemon's socket: an agent, the user, or `outside`, which has an agent's rights and no more.

The process that the kernel names leads to a pane or to none (`caller.py`). An agent's pane is that agent. Everything
else is the user only where something shows that a person is there; what nothing shows is `outside`:

- in a pane without an agent, a terminal is attached to the tmux server, shows that pane as its current one, and had a
  key pressed after the pane was opened and not long before the command began. A pane that an agent opens, with or
  without a command, has no such key;
- in no pane, the command is at a terminal that a login or a terminal program has opened (`probe/terminals.py`), and no
  agent is among what started it.

tmux says nothing of which process had a pane opened or keys sent, so a pane is not traced back to the agent behind it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final
from weakref import WeakKeyDictionary

import msgspec

from agtmux.agents.registry import Registry
from agtmux.bridge.caller import HOLDS, Caller, Peer, find_caller
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import ForegroundProcess, Target, TargetKind
from agtmux.domain.runtimes import NO_AGENT
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.probe.processes import Process, describe, read_one, way_up
from agtmux.probe.terminals import at_terminal

# Seconds between the last key and the start of the command: what is typed ahead, or follows another command.
_LATEST_KEY: Final = 30.0
# tmux tells whole seconds, and Linux when it was booted in whole seconds.
_UNSHARP: Final = 1.0
# A tmux within a tmux, and one more.
_DEEPEST: Final = 3


class AskerKind(StrEnum):
    AGENT = "agent"
    USER = "user"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Asker:
    kind: AskerKind
    # The agent's pane.
    key: PaneKey | None = None
    # Why it is not the user.
    why_not: str = ""


class Client(msgspec.Struct, frozen=True):
    """A terminal that is attached to a tmux server."""

    pid: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    # What it shows.
    pane_id: Annotated[str, msgspec.Meta(max_length=32)]
    # When a key was last pressed in it, in seconds since the epoch.
    activity: Annotated[int, msgspec.Meta(ge=0)]


class Clients(msgspec.Struct, frozen=True):
    clients: Annotated[list[Client], msgspec.Meta(max_length=1_000)]


class Askers:
    def __init__(self, world: World, registry: Registry, fleet: Fleet) -> None:
        self._world = world
        self._registry = registry
        self._fleet = fleet
        # By connection, for as long as a way up is believed: one that asks again at once is not looked into again.
        self._recent: WeakKeyDictionary[Peer, tuple[float, str]] = WeakKeyDictionary()

    async def find(self, peer: Peer) -> Asker:
        """Raises where it is some agent, and nobody knows which: it has no rights at all."""
        caller = find_caller(self._world, self._registry, peer)
        if caller.is_shared:
            raise AgtmuxError(ErrorCode.FORBIDDEN, f"who you are is not known: {caller.why_not}")
        if caller.key is not None and self._has_agent(caller.key):
            return Asker(AskerKind.AGENT, caller.key)
        found_at, why_not = self._recent.get(peer, (float("-inf"), ""))
        now = time.monotonic()
        if now - found_at >= HOLDS:
            why_not = await self._why_not(caller, peer)
            self._recent[peer] = now, why_not
        return Asker(AskerKind.OUTSIDE, why_not=why_not) if why_not else Asker(AskerKind.USER)

    async def _why_not(self, caller: Caller, peer: Peer) -> str:
        """Empty if it is the user."""
        if peer.pid is None:
            return caller.why_not
        if caller.key is None:
            return await asyncio.to_thread(self._not_at_terminal, peer.pid)
        if not caller.is_at_terminal:
            return "the process that asks was let go of by what runs in its pane"
        way = peer.way()
        return await self._not_typed(caller.key, () if way is None else way.lineage)

    def _not_at_terminal(self, pid: int) -> str:
        found = at_terminal(pid)
        if found.why_not:
            return f"the process that asks runs in no pane that agtmux watches, and {found.why_not}"
        if any(self._is_agent(process) for process in found.lineage):
            return "an agent that runs in no pane has started the process that asks"
        return ""

    def _is_agent(self, process: Process) -> bool:
        facts: Any = describe(process)
        seen = ForegroundProcess(**{**facts, "argv": tuple(facts["argv"])})
        return self._registry.identify("", "", [seen]).agent_type != NO_AGENT

    async def _not_typed(self, key: PaneKey, lineage: tuple[int, ...], depth: int = 1) -> str:
        """Why nothing shows that a person has typed what runs in that pane; empty if something does."""
        record = self._world.records.get(key)
        pane = None if record is None or record.runtime.pid is None else read_one(record.runtime.pid)
        if pane is None or pane.pid not in lineage:
            return "its pane is gone"
        # What the pane's own process has started for it, or that process itself.
        job = read_one(lineage[max(lineage.index(pane.pid) - 1, 0)])
        if job is None:
            return "its process has ended"
        try:
            clients = (await self._fleet.run(key[0], {"do": "clients"}, Clients)).clients
        except AgtmuxError as error:
            return f"which terminals show its pane cannot be told: {error.message}"
        showing = [client for client in clients if client.pane_id == key[1]]
        if not showing:
            return "no attached terminal shows the pane it runs in"
        since = max(pane.started + _UNSHARP, job.started - _LATEST_KEY)
        for client in showing:
            if client.activity >= since and await self._is_persons(client, depth):
                return ""
        return "nobody has pressed a key in the pane it runs in, not lately or not since it was opened"

    async def _is_persons(self, client: Client, depth: int) -> bool:
        """Not one that an agent has attached."""
        way = way_up(client.pid)
        if way is None or client.pid not in way.on_terminal:
            return False
        here = {name for name, target in self._world.targets.items() if _is_here(target)}
        key = next(
            (
                key
                for pid in way.lineage
                for key, record in self._world.records.items()
                if record.runtime.pid == pid and key[0] in here
            ),
            None,
        )
        if key is None:
            return True
        if self._has_agent(key) or depth >= _DEEPEST:
            return False
        return not await self._not_typed(key, tuple(way.lineage), depth + 1)

    def _has_agent(self, key: PaneKey) -> bool:
        return self._world.records[key].runtime.has_agent


def _is_here(target: Target) -> bool:
    return target.kind is not TargetKind.SSH
