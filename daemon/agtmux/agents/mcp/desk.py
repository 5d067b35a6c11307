"""The bridge in the settings of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.program import BridgeProgram
from agtmux.agents.mcp.plan import Bridge, Entry, Report, register, settings_of, status, unregister
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class McpDesk:
    def __init__(
        self,
        registry: Registry,
        files: Files,
        backups: Backups,
        bridge: Bridge,
        program: BridgeProgram | None = None,
    ) -> None:
        """`program` is what the bridge's command runs, where it has to be placed first and goes with the last agent."""
        self._registry = registry
        self._files = files
        self._backups = backups
        self._bridge = bridge
        self._program = program

    def register(
        self, names: list[str], installed: Collection[str], declined: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        """`installed` are the agents whose program is there; their folder may come with their first start."""
        chosen = [sheet for sheet in self._chosen(names, installed) if sheet.agent_type not in declined]
        if self._program is not None and any(sheet.mcp for sheet in chosen):
            self._program.place()
        told = _each(chosen, lambda sheet: [register(sheet, self._files, self._bridge, self._backups)])
        self._clear_up(told)
        return told

    def unregister(self, names: list[str]) -> list[dict[str, Any]]:
        """Without names, of all: one that is not used any more may have it still."""
        chosen = self._chosen(names, self._registry.agent_types)
        told = _each(chosen, lambda sheet: unregister(sheet, self._files, self._bridge, self._backups))
        self._clear_up(told)
        return told

    def status(self, names: list[str], installed: Collection[str]) -> list[dict[str, Any]]:
        chosen = self._chosen(names, installed)
        told = _each(chosen, lambda sheet: [status(sheet, self._files, self._bridge)])
        if self._program is not None and not self._program.is_current():
            for item in told:
                if item.get("entry") == Entry.REGISTERED:
                    why = f"{self._program.path}, which it runs, is missing or of another version; register again."
                    item["warnings"] = (*item["warnings"], why)
        return told

    def _clear_up(self, told: list[dict[str, Any]]) -> None:
        """The program, when no agent runs it; on a machine that is out of reach it stays."""
        if self._program is None:
            return
        try:
            if not any(map(self._runs_program, self._registry.agent_types)):
                self._program.remove()
        except AgtmuxError as error:
            told.append({"agent": self._program.NAME, "error": error.as_json()["error"]})

    def _runs_program(self, name: str) -> bool:
        assert self._program is not None
        sheet = self._registry.sheet(name)
        paths = [*self._backups.noted(name), *([sheet.mcp.path(self._files.environ)] if sheet.mcp else [])]
        states = (self._files.read(path, sheet.mcp.wanted if sheet.mcp else None) for path in paths)
        # By its name alone: a file that cannot be understood may well mean it.
        return any(state is not None and self._program.path.encode() in state.data for state in states)

    def _chosen(self, names: list[str], installed: Collection[str]) -> list[AgentSheet]:
        for name in names:
            if not self._registry.knows(name):
                known = ", ".join(self._registry.agent_types)
                raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {name[:64]!r}; known are {known}")
        if names:
            return [self._registry.sheet(name) for name in names]
        sheets = [self._registry.sheet(name) for name in self._registry.agent_types]
        return [each for each in sheets if each.mcp and (each.agent_type in installed or self._is_used(each))]

    def _is_used(self, sheet: AgentSheet) -> bool:
        return self._files.is_folder(settings_of(sheet).folder(self._files.environ))


def _each(chosen: list[AgentSheet], act: Callable[[AgentSheet], list[Report]]) -> list[dict[str, Any]]:
    """One that cannot be done keeps none of the others from being done."""
    told: list[dict[str, Any]] = []
    for sheet in chosen:
        try:
            told += [report.as_item() for report in act(sheet)]
        except AgtmuxError as error:
            told.append({"agent": sheet.agent_type, "error": error.as_json()["error"]})
    return told
