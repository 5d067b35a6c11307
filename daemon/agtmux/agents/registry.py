"""Which agents there are: one TOML each in `resources/agents`, read once at start."""

from __future__ import annotations

from importlib import resources
from typing import Annotated

import msgspec

from agtmux.agents.hooks import HookRule, read_hook
from agtmux.domain.events import Verdict
from agtmux.domain.runtimes import NO_AGENT
from agtmux.domain.states import Source


class ProcessRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    commands: list[str]


class AgentSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent_type: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    name: str
    process: ProcessRule
    hook: list[HookRule] = []


class Registry:
    def __init__(self, sheets: list[AgentSheet]) -> None:
        self._sheets = {sheet.agent_type: sheet for sheet in sheets}
        self._commands = {command: sheet.agent_type for sheet in sheets for command in sheet.process.commands}

    @classmethod
    def load(cls) -> Registry:
        folder = resources.files("agtmux") / "resources" / "agents"
        files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda e: e.name)
        return cls([msgspec.toml.decode(entry.read_bytes(), type=AgentSheet) for entry in files])

    @property
    def agent_types(self) -> list[str]:
        return list(self._sheets)

    def knows(self, agent_type: str) -> bool:
        return agent_type in self._sheets

    def identify(self, mark: str, command: str) -> str:
        """The agent in a pane: what the pane says of itself, else what runs in it."""
        if mark in self._sheets:
            return mark
        return self._commands.get(command, NO_AGENT)

    def read_hook(self, agent_type: str, event: str, payload: object) -> tuple[Source, Verdict | None]:
        return read_hook(self._sheets[agent_type].hook, event, payload)
