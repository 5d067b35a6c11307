"""The bridge in the settings of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.program import BridgeProgram, Program
from agtmux.agents.install.several import SettingsDesk
from agtmux.agents.mcp.plan import Bridge, Entry, register, settings_of, status, unregister
from agtmux.agents.mcp.sheet import McpSettings
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError


class McpDesk(SettingsDesk):
    def __init__(
        self,
        registry: Registry,
        files: Files,
        backups: Backups,
        bridge: Bridge,
        program: BridgeProgram | None = None,
    ) -> None:
        super().__init__(registry, files, backups, program)
        self._bridge = bridge

    def register(
        self, names: list[str], installed: Collection[str], declined: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        """`installed` are the agents whose program is there; their folder may come with their first start."""
        chosen = [sheet for sheet in self._chosen(names, installed) if sheet.agent_type not in declined]
        if self._program is not None and any(sheet.mcp for sheet in chosen):
            self._program.place()
        told = self._each(chosen, lambda sheet: [register(sheet, self._files, self._bridge, self._backups)])
        self._clear_up(told)
        return told

    def unregister(self, names: list[str]) -> list[dict[str, Any]]:
        """Without names, of all: one that is not used any more may have it still."""
        chosen = self._chosen(names, self._registry.agent_types)
        told = self._each(chosen, lambda sheet: unregister(sheet, self._files, self._bridge, self._backups))
        self._clear_up(told)
        return told

    def status(self, names: list[str], installed: Collection[str]) -> list[dict[str, Any]]:
        chosen = self._chosen(names, installed)
        told = self._each(chosen, lambda sheet: [status(sheet, self._files, self._bridge)])
        if self._program is not None and not self._program.is_current():
            for item in told:
                if item.get("entry") == Entry.REGISTERED:
                    why = f"{self._program.path}, which it runs, is missing or of another version; register again."
                    item["warnings"] = (*item["warnings"], why)
        return told

    def _settings(self, sheet: AgentSheet) -> McpSettings | None:
        return sheet.mcp

    def _sign(self, program: Program) -> str:
        # An agtmux of that machine's own has a program of the same name, elsewhere.
        return program.path

    def _chosen(self, names: list[str], installed: Collection[str]) -> list[AgentSheet]:
        sheets = self._named(names)
        if names:
            return sheets
        return [each for each in sheets if each.mcp and (each.agent_type in installed or self._is_used(each))]

    def _is_used(self, sheet: AgentSheet) -> bool:
        settings = settings_of(sheet)
        if self._files.is_folder(settings.folder(self._files.environ)):
            return True
        try:
            # Its file may lie elsewhere, as where it was registered by name before its first start.
            return self._files.read(settings.path(self._files.environ), settings.wanted) is not None
        except AgtmuxError:
            # There is one, and what is wrong with it is told when it comes to that.
            return True
