"""Until an agent that was just started is up: seen in its pane, with a screen that takes a prompt or asks something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from agtmux.actions.typing import WAITING, Typist
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.redact import redact_text
from agtmux.domain.runtimes import BootId, PaneId, PaneInstance, TargetId
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.targets.messages import Did
from agtmux.worktrees.answers import Showing, Started

_LOOK_EVERY: Final = 0.25
# Some draw a prompt for a moment before they ask something.
_STILL_FOR: Final = 0.4
# How long the observer may take to say what the screen already shows.
_STATE_WITHIN: Final = 3.0
_AT_WORK: Final = frozenset({State.RUNNING, State.COMPLETED})
_LINES_TOLD: Final = 12
# What `env` says of a program that is not there.
_NOT_FOUND: Final = "No such file or directory"


class NothingRunsError(AgtmuxError):
    """What was started has ended, or was never started: nobody works where it was to."""

    def __init__(self, message: str, details: dict[str, object] | None = None) -> None:
        super().__init__(ErrorCode.PRECONDITION_FAILED, message, details)


class Waiting:
    def __init__(self, fleet: Fleet, world: World, registry: Registry, typist: Typist, limit: float) -> None:
        self._fleet = fleet
        self._world = world
        self._registry = registry
        self._typist = typist
        self._limit = limit
        self._stirred: dict[PaneKey, asyncio.Event] = {}

    def changed(self, keys: Iterable[PaneKey], _: Timestamp) -> None:
        """What is known of these panes is another than before."""
        for key in keys:
            if key in self._stirred:
                self._stirred[key].set()

    async def until_up(
        self,
        instance: PaneInstance,
        started: Started,
        agent_type: str,
        on_seen: Callable[[Record], Awaitable[None]],
        *,
        is_prompted: bool,
        limit: float | None = None,
    ) -> Record:
        """Raises E_TIMEOUT if it takes too long, and E_PRECONDITION_FAILED if it has ended; both say what it shows.
        `on_seen` is called as soon as the agent is known, and for one that starts itself anew again."""
        key = (instance.target_id, instance.pane_id)
        event = self._stirred[key] = asyncio.Event()
        limit = limit or self._limit
        deadline = _now() + limit
        ready_since: float | None = None
        # A program may start itself anew.
        ready: Record | None = None
        try:
            while _now() < deadline:
                record = self._world.records.get(key)
                is_there = record is not None and record.runtime.instance == instance
                if record is not None and is_there and record.runtime.agent_type == agent_type:
                    is_same = ready is not None and ready.runtime.runtime_id == record.runtime.runtime_id
                    if not is_same:
                        await on_seen(record)
                    ready = record
                    is_ready = await self._is_ready(record, is_prompted=is_prompted)
                    ready_since = ((ready_since if is_same else None) or _now()) if is_ready else None
                    wanted = _STATE_WITHIN if record.row.state is State.UNKNOWN else _STILL_FOR
                    if ready_since is not None and _now() - ready_since >= wanted:
                        await self._settled(instance, started)
                        return record
                else:
                    await self._check_alive(instance, started)
                    ready_since = None
                self._fleet.look_at(instance.target_id)
                event.clear()
                pause = min(_LOOK_EVERY, max(deadline - _now(), 0))
                try:
                    await asyncio.wait_for(event.wait(), pause)
                    # Not again at once: an agent draws its first screen in many pieces.
                    await asyncio.sleep(0.02)
                except TimeoutError:
                    continue
        finally:
            del self._stirred[key]
        text = await self._check_alive(instance, started)
        await self._settled(instance, started)
        raise AgtmuxError(
            ErrorCode.TIMEOUT,
            f"it was not ready within {limit:g} s and is left as it is in {instance.pane_id}; {_shown(text)}",
            {"screen": text},
        )

    async def _is_ready(self, record: Record, *, is_prompted: bool) -> bool:
        if record.row.state in WAITING or (is_prompted and record.row.state in _AT_WORK):
            return True
        if not self._registry.reads_screens(record.runtime.agent_type):
            return True
        try:
            seen = (await self._typist.look(record)).seen
        except AgtmuxError as error:
            # If not for lack of knowledge, it is not in front yet or already gone: the next look tells.
            return error.code is ErrorCode.UNSUPPORTED
        return seen.state in WAITING or seen.composer != "none"

    async def _check_alive(self, instance: PaneInstance, started: Started) -> str:
        """What its pane shows; raises if what was started there has ended. A target that does not answer just now is
        asked again."""
        try:
            showing = await self._fleet.run(
                instance.target_id, {"do": "launched", **_who(instance, started), "is_up": False}, Showing
            )
        except AgtmuxError as error:
            if error.code is not ErrorCode.RUNTIME_STALE:
                return ""
            raise NothingRunsError("it ended as soon as it was started") from None
        text = str.__str__(redact_text(showing.text))
        if showing.is_dead:
            missing = "; is it installed, and in the PATH of that tmux server?" if _NOT_FOUND in text else ""
            raise NothingRunsError(f"it ended as soon as it was started; {_shown(text)}{missing}", {"screen": text})
        return text

    async def _settled(self, instance: PaneInstance, started: Started) -> None:
        """From now on the pane goes with what runs in it, as any other."""
        try:
            await self._fleet.run(instance.target_id, {"do": "launched", **_who(instance, started), "is_up": True}, Did)
        except AgtmuxError:
            # Then the pane stays for its user to close if the agent fails one day.
            return


def instance_of(target_id: TargetId, started: Started) -> PaneInstance:
    return PaneInstance(target_id, BootId(started.server), PaneId(started.pane_id))


def _who(instance: PaneInstance, started: Started) -> dict[str, object]:
    return {"server": instance.tmux_server_boot_id, "pane_id": instance.pane_id, "pid": started.pid}


def _shown(text: str) -> str:
    lines = text.splitlines()[-_LINES_TOLD:]
    return f"its pane shows: {' / '.join(line.strip() for line in lines)[:600]}" if lines else "its pane shows nothing"


def _now() -> float:
    return asyncio.get_running_loop().time()
