"""Who was launched by whom, and whether there may be one more. On the disk before anything is started, so that limits
hold also for a daemon that was started again."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import LaunchLimits
from agtmux.domain.runtimes import BootId, PaneId, PaneInstance, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp
from agtmux.observe.world import World
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

_MINUTE: Final = 60 * SECOND
_COLUMNS: Final = "action_id, launcher_id, target_id, agent_type, requested_at, server, pane_id, pane_pid, settled_at"


@dataclass(frozen=True, slots=True)
class Launch:
    action_id: str
    # None is the user.
    launcher_id: RuntimeId | None
    target_id: TargetId
    agent_type: str
    requested_at: Timestamp
    instance: PaneInstance | None = None
    pane_pid: int | None = None
    settled_at: Timestamp | None = None


class Launches:
    def __init__(self, world: World, database: Database, limits: LaunchLimits) -> None:
        self._world = world
        self._database = database
        self._limits = limits
        self._launches: dict[str, Launch] = {}

    async def load(self, now: Timestamp) -> None:
        """Once, at the start. What an earlier daemon was at is over, whatever came of it."""
        await self._database.writer.write(
            lambda tx: tx.execute("UPDATE launches SET settled_at = ? WHERE settled_at IS NULL", (now,))
        )
        rows = await self._database.read(f"SELECT {_COLUMNS} FROM launches ORDER BY requested_at")
        self._launches = {each.action_id: each for each in map(_read, rows)}

    def check(self, launcher_id: RuntimeId | None, now: Timestamp) -> None:
        """Raises if that would be one too many."""
        self._forget(now)
        living = [each for each in self._launches.values() if self._counts(each)]
        theirs = [each for each in living if each.launcher_id == launcher_id]
        limits = self._limits
        if len(living) >= limits.most_agents:
            raise AgtmuxError(
                ErrorCode.LIMIT_PANES,
                f"{len(living)} launched agents are there, and {limits.most_agents} is the limit (most_agents in"
                " [launch] of config.toml); stop one that is done",
            )
        # Whoever is at the keyboard has all of them.
        if launcher_id is not None and len(theirs) >= limits.most_per_agent:
            raise AgtmuxError(
                ErrorCode.LIMIT_PANES,
                f"you have launched {len(theirs)} agents that are still there, and {limits.most_per_agent} is the"
                " limit; stop one that is done",
            )
        recent = [
            each for each in self._launches.values() if each.requested_at > now - _MINUTE and not _came_to_nothing(each)
        ]
        _check_rate([each for each in recent if each.launcher_id == launcher_id], limits.per_minute, now)
        _check_rate(recent, limits.per_minute_overall, now)

    async def begin(self, launch: Launch) -> None:
        await self._write(launch)

    def abandon(self, action_id: str) -> None:
        """Nothing was started for it, and nothing will be."""
        self._launches.pop(action_id, None)

    async def placed(self, action_id: str, instance: PaneInstance, pane_pid: int) -> None:
        """Its pane is there. Whoever launched it may stop it from now on, whatever comes of the rest."""
        await self._write(replace(self._launches[action_id], instance=instance, pane_pid=pane_pid))

    async def settle(self, action_id: str, now: Timestamp) -> None:
        await self._write(replace(self._launches[action_id], settled_at=now))

    def launcher_of(self, instance: PaneInstance, pane_pid: int | None) -> Launch | None:
        """The launch that has led to what is in that pane; None if nobody but the user has."""
        found = (each for each in self._launches.values() if each.instance == instance and each.pane_pid == pane_pid)
        return next(found, None)

    def _counts(self, launch: Launch) -> bool:
        """Whether it is under way, or what came of it is still there."""
        if launch.settled_at is None:
            return True
        if launch.instance is None:
            return False
        record = self._world.records.get((launch.target_id, launch.instance.pane_id))
        return record is not None and record.runtime.instance == launch.instance

    def _forget(self, now: Timestamp) -> None:
        """Those of which nothing is left and no limit asks. Their rows go with the log of actions."""
        self._launches = {
            action_id: each
            for action_id, each in self._launches.items()
            if each.requested_at > now - _MINUTE or self._counts(each)
        }

    async def _write(self, launch: Launch) -> None:
        self._launches[launch.action_id] = launch
        instance = launch.instance
        values = (
            launch.action_id,
            launch.launcher_id,
            launch.target_id,
            launch.agent_type,
            launch.requested_at,
            None if instance is None else instance.tmux_server_boot_id,
            None if instance is None else instance.pane_id,
            launch.pane_pid,
            launch.settled_at,
        )

        def job(tx: Transaction) -> None:
            tx.execute(f"INSERT OR REPLACE INTO launches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

        await self._database.writer.write(job)


def _came_to_nothing(launch: Launch) -> bool:
    """The user may mend what kept it and try again at once. Agents that try in a loop are to be slowed down."""
    return launch.launcher_id is None and launch.settled_at is not None and launch.instance is None


def _check_rate(launches: list[Launch], most: int, now: Timestamp) -> None:
    if len(launches) < most:
        return
    # When the oldest of the last so many is a minute old.
    oldest = sorted(each.requested_at for each in launches)[-most]
    wait = max(math.ceil((oldest + _MINUTE - now) / SECOND), 1)
    raise AgtmuxError(
        ErrorCode.LIMIT_RATE,
        f"{most} launches in a minute is the limit; try again in {wait} s",
        {"retry_after_seconds": wait},
    )


def _read(row: Any) -> Launch:
    target_id = TargetId(row[2])
    return Launch(
        action_id=row[0],
        launcher_id=None if row[1] is None else RuntimeId(row[1]),
        target_id=target_id,
        agent_type=row[3],
        requested_at=Timestamp(row[4]),
        instance=None if row[6] is None else PaneInstance(target_id, BootId(row[5]), PaneId(row[6])),
        pane_pid=row[7],
        settled_at=None if row[8] is None else Timestamp(row[8]),
    )
