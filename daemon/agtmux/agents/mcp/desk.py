"""The bridge in the settings of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.mcp.plan import Bridge, Report, register, settings_of, status, unregister
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class McpDesk:
    def __init__(self, registry: Registry, files: Files, backups: Backups, bridge: Bridge) -> None:
        self._registry = registry
        self._files = files
        self._backups = backups
        self._bridge = bridge

    def register(self, names: list[str], installed: Collection[str]) -> list[dict[str, Any]]:
        """`installed` are the agents whose program is there; their folder may come with their first start."""
        chosen = self._chosen(names, installed)
        return _each(chosen, lambda sheet: [register(sheet, self._files, self._bridge, self._backups)])

    def unregister(self, names: list[str]) -> list[dict[str, Any]]:
        """Without names, of all: one that is not used any more may have it still."""
        chosen = self._chosen(names, self._registry.agent_types)
        return _each(chosen, lambda sheet: unregister(sheet, self._files, self._bridge, self._backups))

    def status(self, names: list[str], installed: Collection[str]) -> list[dict[str, Any]]:
        chosen = self._chosen(names, installed)
        return _each(chosen, lambda sheet: [status(sheet, self._files, self._bridge)])

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
