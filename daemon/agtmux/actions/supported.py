"""Which actions an agent's adapter supports, by its capability flags. What is not supported is refused, not tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.engine.apply import Record

# Action → the flag of `Capabilities` without which it is not carried out. All others need nothing of an adapter.
NEEDED: Final[Mapping[str, str]] = {
    "approve": "supports_waiting_approval",
    "deny": "supports_waiting_approval",
}


def governed(kinds: Mapping[str, Kind], registry: Registry) -> dict[str, Kind]:
    """The same kinds of action, each refused for agents whose adapter does not support it."""
    return {
        name: kind if name not in NEEDED else Kind(_checked(name, kind, registry), kind.needs_state)
        for name, kind in kinds.items()
    }


def _checked(action: str, kind: Kind, registry: Registry) -> Callable[[Record, Asked, StillThere], Awaitable[Done]]:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        agent_type = record.runtime.agent_type
        if registry.knows(agent_type) and not registry.flags(agent_type)[NEEDED[action]]:
            raise AgtmuxError(
                ErrorCode.UNSUPPORTED,
                f"what the dialogs of {registry.sheet(agent_type).name} look like is known from descriptions alone, so"
                " agtmux does not answer them; answer it in its pane (agtmux attach)",
                {"capability": NEEDED[action]},
            )
        return await kind.carry_out(record, asked, still_there)

    return carry_out
