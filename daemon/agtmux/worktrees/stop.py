"""`stop`: an agent is asked to end as its user would ask it, then by signals, each stronger than the one before."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final

from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.reach import agent_process, inhabited
from agtmux.actions.send import press_key
from agtmux.actions.typing import Typist
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.engine.apply import Record
from agtmux.observe.fleet import Fleet
from agtmux.targets.messages import Did
from agtmux.worktrees.trees import Trees

ENDED: Final = "ended"
ASKED: Final = "asked"
# Step → the signal, and how long it may take to work. All of them together end before the action does.
_SIGNALS: Final = {"INT": (signal.SIGINT, 2.0), "TERM": (signal.SIGTERM, 4.0), "KILL": (signal.SIGKILL, 3.0)}
_PATIENCE: Final = 6.0
_LOOK_EVERY: Final = 0.1
# At a draft the key would mean something else.
_EMPTY: Final = frozenset({"empty", "suggestion"})

Process = tuple[int, float]


def stop(typist: Typist, fleet: Fleet, registry: Registry, trees: Trees) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        runtime = record.runtime
        if not runtime.has_agent:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "no agent is in that pane, so there is none to stop")
        processes = _processes(fleet, record)
        worktree = await trees.check_removable(asked.key) if asked.parameters.get("remove_worktree") else None
        ending = _Ending(fleet, record, processes)
        step = await _asked_to_end(typist, registry, record, still_there, ending) or await _signalled(ending)
        if step is None:
            raise AgtmuxError(ErrorCode.TIMEOUT, "it still runs after SIGKILL; look at it (agtmux explain)")
        about: dict[str, Any] = {"ended_by": step}
        if worktree is not None:
            about |= await _removed(trees, record, worktree.top)
        fleet.look_at(runtime.target_id)
        return Done(ENDED, about)

    return Kind(carry_out, needs_state=False)


class _Ending:
    """The processes of an agent, which may be several: one that starts itself anew with other settings goes on when the
    first has gone."""

    def __init__(self, fleet: Fleet, record: Record, processes: list[Process]) -> None:
        self._fleet = fleet
        self._target_id = record.runtime.target_id
        self._who = inhabited(fleet, record)
        self._left = processes

    async def send(self, number: int) -> bool:
        """To those that are left; False if none is."""
        left = []
        for process in self._left:
            errand = {"do": "signal", **self._who, "agent": process, "number": number}
            try:
                await self._fleet.run(self._target_id, errand, Did)
            except AgtmuxError as error:
                if error.code is ErrorCode.RUNTIME_STALE:
                    continue
                raise
            left.append(process)
        self._left = left
        return bool(left)

    async def within(self, seconds: float) -> bool:
        """Whether they all go in that time. The signal 0 only asks."""
        deadline = asyncio.get_running_loop().time() + seconds
        while await self.send(0):
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(_LOOK_EVERY)
        return True


async def _asked_to_end(
    typist: Typist, registry: Registry, record: Record, still_there: StillThere, ending: _Ending
) -> str | None:
    if not registry.knows(record.runtime.agent_type):
        return None
    sheet = registry.sheet(record.runtime.agent_type).launch
    if not sheet.end and not sheet.end_key:
        return None
    async with typist.writer(record):
        try:
            if sheet.end:
                await typist.type(record, sheet.end, still_there, enter=True)
            elif (await typist.look(record)).seen.composer in _EMPTY:
                await press_key(typist, record, sheet.end_key, still_there)
            else:
                return None
        except AgtmuxError as error:
            # It may have gone before its prompt could be read back. And nothing is typed into a dialog or a draft.
            if error.code in (ErrorCode.TARGET_UNREACHABLE, ErrorCode.TARGET_NOT_FOUND):
                raise
            if error.details.get("result_code") is None and error.code is not ErrorCode.RUNTIME_STALE:
                return None
    return ASKED if await ending.within(_PATIENCE) else None


async def _signalled(ending: _Ending) -> str | None:
    for name, (number, patience) in _SIGNALS.items():
        if not await ending.send(int(number)) or await ending.within(patience):
            return name
    return None


def _processes(fleet: Fleet, record: Record) -> list[Process]:
    """The agent's, and those in front that it has started."""
    agent = agent_process(fleet, record)
    pane = fleet.pane(record.runtime.target_id, record.runtime.pane_id)
    if agent is None or pane is None:
        raise AgtmuxError(ErrorCode.RUNTIME_STALE, "its process is not in that pane any more; list the panes again")
    pids = [process.pid for process in pane.foreground]
    return [(each.pid, each.started) for each in pane.foreground[pids.index(agent[0]) :]]


async def _removed(trees: Trees, record: Record, top: str) -> dict[str, Any]:
    try:
        await trees.remove(record.runtime.target_id, top)
    except AgtmuxError as error:
        # It has stopped, which is what was asked for first.
        return {"removed_worktree": None, "kept_because": error.message}
    return {"removed_worktree": top}
