"""The way from an action to its pane: who must be there, in the words of the probe that checks it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, TargetId
from agtmux.engine.apply import Record
from agtmux.targets.messages import PaneRow

T = TypeVar("T")


class Reach(Protocol):
    """What can be done in the panes of a target."""

    async def run(self, target_id: TargetId, errand: dict[str, Any], kind: type[T]) -> T: ...

    def pane(self, target_id: TargetId, pane_id: PaneId) -> PaneRow | None: ...

    def check_reachable(self, target_id: TargetId) -> None:
        """Raises AgtmuxError(E_TARGET_UNREACHABLE) while nothing is known of what runs there now."""


def inhabited(reach: Reach, record: Record) -> dict[str, Any]:
    """Who must be in the pane, in the words of an errand."""
    runtime = record.runtime
    # A target that cannot be reached shows no panes, which does not mean that the agent has ended.
    reach.check_reachable(runtime.target_id)
    pane = reach.pane(runtime.target_id, runtime.pane_id)
    if pane is None or pane.pid is None:
        raise AgtmuxError(ErrorCode.RUNTIME_STALE, "nothing runs in that pane any more; list the panes again")
    # The last look may be newer than the runtime, and a shell that was started anew is called what the old one was.
    if not runtime.has_agent and runtime.pid not in (None, pane.pid):
        raise AgtmuxError(ErrorCode.RUNTIME_STALE, "another process has begun in that pane; list the panes again")
    return {"server": runtime.instance.tmux_server_boot_id, "pane_id": runtime.pane_id, "pid": pane.pid}


def agent_process(reach: Reach, record: Record) -> tuple[int, float] | None:
    """The process of that runtime and its start, as its target tells them; None where it is not known."""
    runtime = record.runtime
    pane = reach.pane(runtime.target_id, runtime.pane_id)
    found = () if pane is None else (process for process in pane.foreground if process.pid == runtime.pid)
    return next(((process.pid, process.started) for process in found), None)


def front_process(reach: Reach, record: Record) -> tuple[int, float] | None:
    """Whose keys they are: the agent, or where there is none whatever was last seen in front, a shell or what runs in
    it."""
    if record.runtime.has_agent:
        return agent_process(reach, record)
    pane = reach.pane(record.runtime.target_id, record.runtime.pane_id)
    if pane is None or not pane.foreground:
        return None
    return pane.foreground[-1].pid, pane.foreground[-1].started
