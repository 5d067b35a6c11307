"""What a scene is: a state that an agent is driven to, and what a reader of its screen should say there.

Each agent's module lists its own. How the bench makes sure that the agent is in that state, without reading the screen
as the product does, is here too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.bench import AgentPane
from agents.model.script import Kind

STATES = frozenset({"running", "waiting_approval", "waiting_input", "idle", "error", "unknown"})
CLASSES = frozenset(
    {
        "startup",
        "prompt",
        "draft",
        "suggestion",
        "menu",
        "background",
        "busy",
        "queued",
        "dialog",
        "question",
        "plan",
        "stopped",
        "error",
        "quoted",
        "overlay",
        "dead",
    }
)
COMPOSERS = frozenset({"empty", "draft", "suggestion", "none"})

Proof = Callable[[AgentPane], bool]


@dataclass(frozen=True)
class Attention:
    """What the agent wants: a part of the text that says it, and the options it offers, in order."""

    kind: str  # approval, question, plan, trust, login
    summary: str = ""
    # None: whatever is numbered at the end of the screen, where the scene is known to end in a list.
    options: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class Scene:
    name: str
    state: str
    kind: str
    did: str  # what was done to get there, in one sentence
    drive: Callable[[AgentPane], object]
    # Or how to tell it from what was taken, as versions differ in what they suggest.
    composer: str | Callable[[dict[str, Any]], str] = "none"
    attention: Attention | None = None
    wishes: frozenset[str] = frozenset()
    # Whether the agent is brought to its prompt before the scene is driven.
    ready: bool = True
    # In place of what the state itself asks for.
    proof: Proof | None = None

    def __post_init__(self) -> None:
        assert self.state in STATES, self.state
        assert self.kind in CLASSES, self.kind
        assert callable(self.composer) or self.composer in COMPOSERS, self.composer

    def holds(self, pane: AgentPane) -> bool:
        """Whether the agent is in this state now, as far as the model server and the processes tell."""
        return (self.proof or STATE_PROOFS[self.state])(pane)

    def expected(self, taken: dict[str, Any]) -> dict[str, Any]:
        composer = self.composer(taken) if callable(self.composer) else self.composer
        attention = None
        if wanted := self.attention:
            options = numbered(taken["screen"]) if wanted.options is None else list(wanted.options)
            attention = {"kind": wanted.kind, "summary": wanted.summary, "options": options}
        return {"state": self.state, "class": self.kind, "attention": attention, "composer": composer}


_COLOUR = re.compile(r"\x1b\[[0-9;:]*m|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)")
_NUMBERED = re.compile(r"^[\s│┃▌]*[❯›>●]?\s*([1-9])\. +(\S.*?)[\s│┃]*$")


def plain(screen: str) -> str:
    return _COLOUR.sub("", screen)


def numbered(screen: str) -> list[str]:
    """The first lines of the options in the last list, numbered or marked. Only for screens known to end in one."""
    found: list[str] = []
    for line in plain(screen).splitlines():
        if match := _NUMBERED.match(line):
            if match[1] == "1":
                found = []
            found.append(match[2])
    return found or _marked(plain(screen).splitlines())


def _marked(lines: list[str]) -> list[str]:
    """The same where no option has a number: those around the mark that begin below or above it."""
    rows = [row for row, line in enumerate(lines) if re.match(r"\s*❯ \S", line)]
    if not rows:
        return []
    first = last = rows[-1]
    margin = " " * (lines[first].index("❯") + 2)

    def is_option(row: int) -> bool:
        return 0 <= row < len(lines) and re.match(margin + r"\S", lines[row]) is not None

    while is_option(first - 1):
        first -= 1
    while is_option(last + 1):
        last += 1
    return [line[len(margin) :].rstrip() for line in lines[first : last + 1]]


# What the model asks to run where a scene wants a command that goes on.
LASTING = ("sleep", "tail")


def tool_runs(pane: AgentPane) -> bool:
    return any(pane.runs(name) for name in LASTING)


def is_running(pane: AgentPane) -> bool:
    return pane.server.busy or tool_runs(pane)


def is_waiting(pane: AgentPane) -> bool:
    """Either the model has called a tool whose result has not come, or nothing was said at all."""
    steps = pane.server.steps
    return not is_running(pane) and (not steps or steps[-1].is_tool)


def is_resting(pane: AgentPane) -> bool:
    return not is_running(pane)


def has_failed(pane: AgentPane) -> bool:
    """The last answer was an error, and it was long enough ago that the agent has given up."""
    main = pane.server.main
    if not main or main[-1].step is None or not is_resting(pane):
        return False
    return main[-1].step.kind is Kind.ERROR and time.monotonic() - main[-1].started > GIVEN_UP


# The first pauses between tries are shorter, and scenes let agents try only a few times.
GIVEN_UP = 4.0

STATE_PROOFS: dict[str, Proof] = {
    "running": is_running,
    "waiting_approval": is_waiting,
    "waiting_input": is_waiting,
    "idle": is_resting,
    "error": has_failed,
    "unknown": lambda pane: True,
}
