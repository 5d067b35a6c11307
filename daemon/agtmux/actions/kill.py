"""`kill`: a Ctrl-C in the pane, or a signal to the agent's process."""

from __future__ import annotations

import asyncio
import signal
from typing import Final

from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.ledger import DELIVERED, UNCERTAIN
from agtmux.actions.reach import Reach, agent_process, inhabited
from agtmux.actions.send import check_key, press_key
from agtmux.actions.typing import Typist
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.engine.apply import Record
from agtmux.targets.messages import Did

_SIGNALS: Final = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "KILL": signal.SIGKILL}
# The result of a request that only asked whether it would be done.
CHECKED: Final = "checked"
_PATIENCE: Final = 3.0
_LOOK_EVERY: Final = 0.1


def kill(typist: Typist, reach: Reach) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        only_check = bool(asked.parameters.get("only_check"))
        # Ctrl-C is no text: it may also stop what a shell runs.
        shell = not record.runtime.has_agent
        mode, name = str(asked.parameters.get("mode", "key")), str(asked.parameters.get("signal", "INT"))
        if mode == "key":
            if name != "INT":
                raise AgtmuxError(ErrorCode.USAGE, f"a key can only interrupt; {name} needs --mode signal")
            if only_check:
                await check_key(typist, record, still_there, shell=shell)
                return Done(CHECKED, {"mode": mode})
            async with typist.writer(record):
                await press_key(typist, record, "C-c", still_there, shell=shell)
            return Done(DELIVERED, {"mode": mode})
        agent = agent_process(reach, record)
        if record.runtime.pid is None:
            raise AgtmuxError(ErrorCode.PID_UNAVAILABLE, "its process is not known, so it cannot be sent a signal")
        if agent is None:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "its process is not in that pane any more; list the panes again")
        who = {**inhabited(reach, record), "agent": agent}
        still_there()
        if only_check:
            return Done(CHECKED, {"mode": mode, "signal": name})
        try:
            await reach.run(record.runtime.target_id, {"do": "signal", **who, "number": int(_SIGNALS[name])}, Did)
        except AgtmuxError as error:
            if error.code is ErrorCode.RUNTIME_STALE:
                raise
            raise AgtmuxError(error.code, error.message, {"result_code": UNCERTAIN}) from None
        return Done(DELIVERED, {"mode": mode, "signal": name, "has_ended": await _has_ended(reach, record, who)})

    return Kind(carry_out, needs_state=True)


async def _has_ended(reach: Reach, record: Record, who: dict[str, object]) -> bool | None:
    """Whether the process went; one may take its time, or take no notice. None if that cannot be seen: the signal was
    sent, whatever is seen of it."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while asyncio.get_running_loop().time() < deadline:
        try:
            # The signal 0 only asks, for the process itself: one that has lent its terminal is not in front, and lives.
            await reach.run(record.runtime.target_id, {"do": "signal", **who, "number": 0}, Did)
        except AgtmuxError as error:
            return True if error.code is ErrorCode.RUNTIME_STALE else None
        await asyncio.sleep(_LOOK_EVERY)
    return False
