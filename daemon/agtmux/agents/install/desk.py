"""Hooks of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.plan import hooks_status, install_hooks, uninstall_hooks
from agtmux.agents.install.program import HookProgram, Program
from agtmux.agents.install.several import SettingsDesk
from agtmux.agents.install.sheet import HookSettings
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet


class HookDesk(SettingsDesk):
    def __init__(
        self, registry: Registry, files: Files, backups: Backups, hook_command: str, program: HookProgram | None = None
    ) -> None:
        super().__init__(registry, files, backups, program)
        self._hook_command = hook_command

    def install(self, names: list[str], versions: Mapping[str, str]) -> list[dict[str, Any]]:
        """`versions` has the oldest version that is in use, of those that are; empty where it cannot be told."""
        chosen = self._chosen(names)
        if self._program is not None and any(_has_hooks(sheet) for sheet in chosen):
            self._program.place()
        told = self._each(
            chosen,
            lambda sheet: [
                install_hooks(
                    sheet, self._files, self._hook_command, self._backups, version=versions.get(sheet.agent_type)
                )
            ],
        )
        self._clear_up(told)
        return told

    def uninstall(self, names: list[str]) -> list[dict[str, Any]]:
        told = self._each(self._chosen(names), lambda sheet: uninstall_hooks(sheet, self._files, self._backups))
        self._clear_up(told)
        return told

    def status(self, names: list[str], versions: Mapping[str, str]) -> list[dict[str, Any]]:
        told = self._each(
            self._chosen(names),
            lambda sheet: [
                hooks_status(sheet, self._files, self._hook_command, version=versions.get(sheet.agent_type))
            ],
        )
        if self._program is not None and not self._program.is_current():
            for item in told:
                if item.get("already_there"):
                    why = f"{self._program.path}, which the hooks run, is missing or of another version; install again."
                    item["warnings"] = (*item["warnings"], why)
        return told

    def _settings(self, sheet: AgentSheet) -> HookSettings | None:
        return sheet.hooks

    def _sign(self, program: Program) -> str:
        return program.NAME

    def _chosen(self, names: list[str]) -> list[AgentSheet]:
        """Without names, those that somebody uses here: their folder is there."""
        sheets = self._named(names)
        return sheets if names else [each for each in sheets if _has_hooks(each) and self._is_used(each)]

    def _is_used(self, sheet: AgentSheet) -> bool:
        assert sheet.hooks is not None
        folder = PurePosixPath(sheet.hooks.path(self._files.environ)).parent
        home = PurePosixPath(self._files.environ.get("HOME", "/"))
        # A folder within the agent's own, for hooks alone, is made when needed.
        own = next((each for each in (folder, *folder.parents) if each.parent == home), folder)
        return self._files.is_folder(str(own))


def _has_hooks(sheet: AgentSheet) -> bool:
    return sheet.hooks is not None and bool(sheet.hooks.events)
