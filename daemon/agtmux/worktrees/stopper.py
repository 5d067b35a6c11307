"""Who may stop whom: the user everybody, an agent those that it has launched, `outside` those that `outside` has."""

from __future__ import annotations

import uuid

from agtmux.actions.desk import Answer, Asked, Desk
from agtmux.actions.guards import Conditions
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.observe import views
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.worktrees.launches import Launches
from agtmux.worktrees.order import By

ACTION = "stop"


class Stopper:
    def __init__(self, world: World, fleet: Fleet, desk: Desk, launches: Launches) -> None:
        self._world = world
        self._fleet = fleet
        self._desk = desk
        self._launches = launches

    async def stop(self, asked: Asked, by: By) -> Answer:
        if not by.is_user:
            self._check_launched(asked.key, by)
            if asked.parameters.get("remove_worktree"):
                raise AgtmuxError(ErrorCode.FORBIDDEN, by.refusal("only the user removes work trees"))
        return await self._desk.act(asked)

    async def stop_agent(self, key: PaneKey, by: By) -> str:
        """Who is in that pane now; returns what ended it."""
        record, item = self._world.records.get(key), views.pane_item(self._world, key)
        if record is None or item is None:
            raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "that agent has ended; list them again")
        conditions = Conditions(if_runtime=record.runtime.runtime_id)
        asked = Asked(ACTION, uuid.uuid4().hex, key, conditions, actor=by.actor, ref=item.ref)
        answer = await self.stop(asked, by)
        return str((answer.action.metadata or {}).get("ended_by"))

    def _check_launched(self, key: PaneKey, by: By) -> None:
        """Raises unless that agent was launched by who asks."""
        record, pane = self._world.records.get(key), self._fleet.pane(*key)
        if record is None:
            raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "that agent has ended; list them again")
        launch = self._launches.launcher_of(record.runtime.instance, None if pane is None else pane.pid)
        if launch is None or launch.launcher_id != by.runtime_id:
            raise AgtmuxError(
                ErrorCode.FORBIDDEN,
                by.refusal(
                    "you did not launch that agent, so it is not yours to stop; ask the user, or ask the agent itself"
                ),
            )
