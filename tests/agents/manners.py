"""How one deals with each agent: which keys answer it, how it is stopped, what it asks before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents import copilot
from agents.bench import AgentPane


def _nothing(pane: AgentPane, *, hooks: bool) -> None:
    """It asks nothing."""


def _escape(pane: AgentPane) -> None:
    pane.keys("Escape")


def _trust_hooks(pane: AgentPane, *, hooks: bool) -> None:
    """Codex asks about hooks that are new to it."""
    if hooks:
        pane.wait_for(r"(?i)hooks? need", 60)
        pane.settle()
        pane.keys("2")
        pane.settle()
        pane.keys("Enter")


@dataclass(frozen=True)
class Manners:
    approve: Sequence[str] = ("Enter",)
    deny: Sequence[str] = ("Escape",)
    answer: Sequence[str] = ("Enter",)
    # What is on the screen once such a dialog takes keys: a hook tells of it before.
    dialog: str = r"1\. (?:Yes|Allow)"
    question: str = r"2\. Blue|Blue"
    interrupt: Callable[[AgentPane], None] = _escape
    enter: Callable[..., None] = _nothing
    # What the model's server answers so that the agent gives up at once.
    error: str = "400"
    # A command that lasts, and whether it has to be approved first.
    lasting: str = "sleep 600"
    lasting_asks: bool = True


MANNERS = {
    "claude": Manners(lasting="tail -f README.md", lasting_asks=False),
    "codex": Manners(enter=_trust_hooks, lasting_asks=False),
    "gemini": Manners(),
    "copilot": Manners(interrupt=copilot.interrupt),
}
