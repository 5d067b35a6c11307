"""What agents' own session files say, by process, as a probe tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from agtmux.agents import contract
from agtmux.agents.registry import Registry
from agtmux.agents.sessions import Status
from agtmux.clock import Clock
from agtmux.domain.timestamps import Timestamp
from agtmux.targets.messages import SessionFile

_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Told:
    """What a session file says, and since when."""

    status: Status
    heard_at: Timestamp


class Files:
    """Those of one target. What they say of processes that are not in its panes is nobody's."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        # By path, the one that was heard of last at the end.
        self._known: dict[str, tuple[str, frozenset[int], Told]] = {}
        self._by_process: dict[tuple[str, int], Told] = {}

    def hear(self, file: SessionFile) -> bool:
        """Whether that is news."""
        owners, status = self._read(file)
        _, owned, before = self._known.get(file.path, ("", frozenset(), None))
        if before is not None and (owned, before.status) == (owners, status):
            return False
        self._known.pop(file.path, None)
        is_said = status is not None and bool(owners)
        if status is not None and owners:
            self._known[file.path] = file.name, owners, Told(status, self._clock.now())
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        self._by_process = {(agent, pid): told for agent, pids, told in self._known.values() for pid in pids}
        return before is not None or is_said

    def forget(self) -> None:
        """Nobody tells of them any more: what has gone meanwhile would not be noticed."""
        self._known.clear()
        self._by_process.clear()

    def of(self, agent_type: str, pids: Iterable[int]) -> Told | None:
        """The latest that is said of any of these processes, by files of that agent: an old one of another may name a
        process number that is used again."""
        asked = ((agent_type, pid) for pid in pids)
        found = [self._by_process[each] for each in asked if each in self._by_process]
        return max(found, key=lambda told: told.heard_at, default=None)

    def _read(self, file: SessionFile) -> tuple[frozenset[int], Status | None]:
        if file.gone or not self._registry.knows(file.name):
            return frozenset(), None
        return self._registry.read_file(file.name, contract.SessionFile(file.path, file.beside, file.text))
