"""The script of the demo, as values: scenes, their steps, and the manner of the agent each one plays.

All of it stands in `resources/demo.toml`, so that nothing here knows an agent's name.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

_SCRIPT: Final = Path(__file__).parents[1] / "resources" / "demo.toml"
_TYPED: Final = "{typed}"

Screen = Literal["busy", "approval", "question", "error", "prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    screen: Screen
    hold: float
    title: str
    lines: tuple[str, ...] = ()
    # None: this agent says nothing about it.
    event: str | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    busy: str = ""
    ask: str = ""
    subject: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def with_typed(self, text: str) -> Step:
        return replace(
            self,
            title=_fill(self.title, text),
            lines=_fill(self.lines, text),
            payload=_fill(self.payload, text),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How an agent looks, and what it does when someone answers it."""

    agent_type: str
    header: tuple[str, ...]
    accent: str
    bullet: str
    pointer: str
    spinner: str
    border: str
    hint: str
    # Beside what it does: since when, and how it is stopped.
    interrupt: str
    stopped: Step
    turn: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    name: str
    session: str
    window: str
    cwd: str
    manner: Manner
    steps: tuple[Step, ...]

    @property
    def agent_type(self) -> str:
        return self.manner.agent_type


@cache
def load_scenes() -> tuple[Scene, ...]:
    """In the script's order, which is the order of their panes."""
    script = tomllib.loads(_SCRIPT.read_text("utf-8"))
    manners = {table["agent_type"]: _manner(table) for table in script["manner"]}
    return tuple(_scene(table, manners) for table in script["scene"])


def find_scene(name: str) -> Scene:
    return next(scene for scene in load_scenes() if scene.name == name)


def _scene(table: dict[str, Any], manners: dict[str, Manner]) -> Scene:
    steps = tuple(_step(step) for step in table.pop("step"))
    return Scene(manner=manners[table.pop("agent_type")], steps=steps, **table)


def _manner(table: dict[str, Any]) -> Manner:
    stopped = _step(table.pop("stopped"))
    turn = tuple(_step(step) for step in table.pop("turn"))
    return Manner(stopped=stopped, turn=turn, **_frozen(table))


def _step(table: dict[str, Any]) -> Step:
    payload = table.pop("payload", {})
    return Step(payload=payload, **_frozen(table))


def _frozen(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _fill(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(_TYPED, text)
    if isinstance(value, dict):
        return {key: _fill(part, text) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(part, text) for part in value)
    return value
