"""What a session asks of whoever runs the agent. The Agent SDK is one (`sdk.py`); tests have another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from agtmux.chat.protocol import Told


@dataclass(frozen=True, slots=True)
class Request:
    """Something that the agent may not do, or cannot know, by itself."""

    request_id: str
    tool: str
    input: dict[str, Any]
    # `approval`, `plan` or `question`, as everywhere else.
    kind: str = "approval"
    reason: str | None = None
    # Set where a subagent asks.
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    allow: bool
    reason: str = ""
    answers: dict[str, str] = field(default_factory=dict)


Ask = Callable[[Request], Awaitable[Decision]]


class Engine(Protocol):
    async def connect(self) -> Told:
        """Starts the agent; what it tells of itself. Raises AgtmuxError if it cannot be started."""

    async def say(self, text: str) -> None: ...

    def events(self) -> AsyncIterator[Told]:
        """All that happens, in the words of the protocol; each turn ends with `done`. Raises when the agent dies."""

    async def interrupt(self) -> None: ...

    async def close(self) -> None: ...


# Makes the one to talk to: whom to ask, and whether there is a conversation to go on with.
NewEngine = Callable[[Ask, bool], Engine]
