"""What agtmux asks of an agent's adapter, and nothing else: the engine sees only what comes out of these calls.

A new field with a default is a minor version; whatever would break an adapter in the field is a major one, and an
adapter of another major version is refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from agtmux.agents.screen.anchors import NO_HOLD, Hold
from agtmux.agents.screen.replies import NO_REPLIES, Replies
from agtmux.agents.sessions import Status
from agtmux.agents.sheet import AgentSheet
from agtmux.agents.witness import Reading
from agtmux.domain.events import Verdict
from agtmux.domain.panes import ForegroundProcess
from agtmux.domain.states import Source

CONTRACT_VERSION: Final = "1.2"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter can tell, from what was tried with the agent itself. What it cannot is never made up, and what it
    does not support is not offered (`actions/supported.py`, menu, board)."""

    event_driven: bool
    polling_required: bool
    supports_waiting_approval: bool
    supports_waiting_input: bool
    supports_completed: bool


@dataclass(frozen=True, slots=True)
class Subscription:
    """What reports by itself: the hook events that are taken, and the files that are watched."""

    hook_events: tuple[str, ...]
    session_files: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Glance:
    """What there is to see of an agent in one moment."""

    # The screen with its colours, as tmux captures it.
    text: str
    title: str = ""
    # What tmux names as the pane's foreground command.
    command: str = ""
    status: Status | None = None
    # Whether the agent's process is there, in the foreground of its pane; None if that is not known.
    is_alive: bool | None = None
    # The columns of the pane; 0 where they are not known.
    width: int = 0


@dataclass(frozen=True, slots=True)
class Footing:
    """What a key would meet."""

    reading: Reading
    # What shows that it is still so. With nothing to hold on to no key is pressed.
    hold: Hold = NO_HOLD
    # The sign that makes a command of what is typed, if the composer has one in place of its own.
    mode: str = ""
    # Which keys answer the dialog that is open.
    replies: Replies = NO_REPLIES
    # How many lines of the screen say that a turn was stopped.
    stops: int = 0


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of the agent's as it is now."""

    path: str
    beside: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class AdapterHealth:
    """Whether what the adapter knows was tried on that version; if not, it is less sure of what it sees."""

    is_verified: bool
    message: str


class Adapter(Protocol):
    @property
    def contract_version(self) -> str: ...

    @property
    def sheet(self) -> AgentSheet: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def identify(self, process: ForegroundProcess) -> bool:
        """Whether that process is this agent."""

    def subscribe(self) -> Subscription:
        """What this agent reports by itself."""

    def poll(self, glance: Glance) -> Reading:
        """What is to be seen of it now."""

    def footing(self, glance: Glance) -> Footing:
        """What a key would meet there. New in 1.2; nothing is typed at an agent whose adapter does not have it."""

    def normalise(self, event: str, payload: object) -> tuple[Source, Verdict | None]:
        """What a hook event means, and who spoke; None for one that is known to mean nothing."""

    def normalise_file(self, file: SessionFile) -> tuple[frozenset[int], Status | None]:
        """Whose file it is, by process, and what it says."""

    def health(self, version: str | None) -> AdapterHealth:
        """How well this version is known."""
