"""What editing the settings of several agents at once has in common, whatever is put into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.program import Program
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class Settings(Protocol):
    """A file of an agent's that is edited."""

    @property
    def wanted(self) -> Sequence[str] | None: ...

    def path(self, environ: Mapping[str, str]) -> str: ...


class Report(Protocol):
    def as_item(self) -> dict[str, Any]: ...


class SettingsDesk(ABC):
    """`program` is what the settings run, where it has to be placed first and goes with the last agent."""

    def __init__(self, registry: Registry, files: Files, backups: Backups, program: Program | None) -> None:
        self._registry = registry
        self._files = files
        self._backups = backups
        self._program = program

    @abstractmethod
    def _settings(self, sheet: AgentSheet) -> Settings | None:
        """Which of an agent's files it is, if it has one."""

    @abstractmethod
    def _sign(self, program: Program) -> str:
        """What stands in a file that runs that program."""

    def _named(self, names: list[str]) -> list[AgentSheet]:
        """All agents, if none is named."""
        for name in names:
            if not self._registry.knows(name):
                known = ", ".join(self._registry.agent_types)
                raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {name[:64]!r}; known are {known}")
        return [self._registry.sheet(name) for name in names or self._registry.agent_types]

    def _each(self, chosen: list[AgentSheet], act: Callable[[AgentSheet], Sequence[Report]]) -> list[dict[str, Any]]:
        """One that cannot be done keeps none of the others from being done."""
        told: list[dict[str, Any]] = []
        for sheet in chosen:
            try:
                told += [report.as_item() for report in act(sheet)]
            except AgtmuxError as error:
                told.append({"agent": sheet.agent_type, "error": error.as_json()["error"]})
        return told

    def _clear_up(self, told: list[dict[str, Any]]) -> None:
        """The program, when no agent runs it; on a machine that is out of reach it stays."""
        program = self._program
        if program is None:
            return
        try:
            if not any(self._runs(program, sheet) for sheet in self._named([])):
                program.remove()
        except AgtmuxError as error:
            told.append({"agent": program.NAME, "error": error.as_json()["error"]})

    def _runs(self, program: Program, sheet: AgentSheet) -> bool:
        settings = self._settings(sheet)
        paths = [*self._backups.noted(sheet.agent_type), *([settings.path(self._files.environ)] if settings else [])]
        states = (self._files.read(path, settings.wanted if settings else None) for path in paths)
        # By that sign alone: a file that cannot be understood may well mean it.
        sign = self._sign(program).encode()
        return any(state is not None and sign in state.data for state in states)
