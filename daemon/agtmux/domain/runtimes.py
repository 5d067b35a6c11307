"""Who lives in a pane: runtime identity, and when a pane has a new inhabitant.

tmux re-uses pane ids and people restart agents in place, so a pane id alone never identifies what an event or an
action means. A runtime does: one process in one pane of one tmux server's lifetime.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, NewType

from agtmux.domain.timestamps import Timestamp

RuntimeId = NewType("RuntimeId", str)
TargetId = NewType("TargetId", str)
PaneId = NewType("PaneId", str)
BootId = NewType("BootId", str)

NO_AGENT: Final = "none"


@dataclass(frozen=True, slots=True)
class PaneInstance:
    """A pane id within the lifetime of one tmux server."""

    target_id: TargetId
    tmux_server_boot_id: BootId
    pane_id: PaneId

    @property
    def server_pid(self) -> int | None:
        """The server's process, which its boot id begins with."""
        pid = self.tmux_server_boot_id.partition("-")[0]
        return int(pid) if pid.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Inhabitant:
    """What was seen to run in a pane just now."""

    agent_type: str
    pid: int | None
    # None where the system does not tell.
    started_at: Timestamp | None
    agent_version: str | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    runtime_id: RuntimeId
    instance: PaneInstance
    pane_epoch: int
    agent_type: str
    pid: int | None
    started_at: Timestamp
    agent_version: str | None = None
    ended_at: Timestamp | None = None

    @property
    def target_id(self) -> TargetId:
        return self.instance.target_id

    @property
    def pane_id(self) -> PaneId:
        return self.instance.pane_id

    @property
    def has_agent(self) -> bool:
        return self.agent_type != NO_AGENT

    def is_inhabited_by(self, instance: PaneInstance, seen: Inhabitant) -> bool:
        """Whether this runtime is still the one in the pane; if not, the pane needs a new epoch."""
        return (
            self.ended_at is None
            and self.instance == instance
            and self.agent_type == seen.agent_type
            and (self.pid is None or seen.pid is None or self.pid == seen.pid)
        )


def derive_runtime_id(instance: PaneInstance, pane_epoch: int, agent_type: str, started_at: Timestamp) -> RuntimeId:
    """The same runtime metadata always gives the same id, on every machine and after every restart."""
    fields = (
        instance.target_id,
        instance.tmux_server_boot_id,
        instance.pane_id,
        str(pane_epoch),
        agent_type,
        str(started_at * 1000),
    )
    # A length before each field keeps ("a", "bc") and ("ab", "c") apart.
    joined = "".join(f"{len(field)}:{field}" for field in fields)
    return RuntimeId(hashlib.sha256(joined.encode()).hexdigest())


def start_runtime(instance: PaneInstance, pane_epoch: int, seen: Inhabitant, seen_at: Timestamp) -> Runtime:
    started_at = seen_at if seen.started_at is None else seen.started_at
    return Runtime(
        runtime_id=derive_runtime_id(instance, pane_epoch, seen.agent_type, started_at),
        instance=instance,
        pane_epoch=pane_epoch,
        agent_type=seen.agent_type,
        pid=seen.pid,
        started_at=started_at,
        agent_version=seen.agent_version,
    )
