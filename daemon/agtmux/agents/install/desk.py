"""Hooks of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.plan import Report, hooks_status, install_hooks, uninstall_hooks
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class HookDesk:
    def __init__(self, registry: Registry, files: Files, backups: Backups, hook_command: str) -> None:
        self._registry = registry
        self._files = files
        self._backups = backups
        self._hook_command = hook_command

    def install(self, names: list[str], versions: Mapping[str, str]) -> list[dict[str, Any]]:
        """`versions` has the oldest version that is in use, of those that are."""
        return self._each(
            names,
            lambda sheet: [
                install_hooks(
                    sheet, self._files, self._hook_command, self._backups, version=versions.get(sheet.agent_type)
                )
            ],
        )

    def uninstall(self, names: list[str]) -> list[dict[str, Any]]:
        return self._each(names, lambda sheet: uninstall_hooks(sheet, self._files, self._backups))

    def status(self, names: list[str], versions: Mapping[str, str]) -> list[dict[str, Any]]:
        return self._each(
            names,
            lambda sheet: [
                hooks_status(sheet, self._files, self._hook_command, version=versions.get(sheet.agent_type))
            ],
        )

    def _each(self, names: list[str], act: Callable[[AgentSheet], list[Report]]) -> list[dict[str, Any]]:
        """One that cannot be done keeps none of the others from being done."""
        told: list[dict[str, Any]] = []
        for sheet in self._chosen(names):
            try:
                told += [asdict(report) | {"changed": report.changed, "error": None} for report in act(sheet)]
            except AgtmuxError as error:
                told.append({"agent": sheet.agent_type, "error": error.as_json()["error"]})
        return told

    def _chosen(self, names: list[str]) -> list[AgentSheet]:
        for name in names:
            if not self._registry.knows(name):
                known = ", ".join(self._registry.agent_types)
                raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {name[:64]!r}; known are {known}")
        if names:
            return [self._registry.sheet(name) for name in names]
        # Those that somebody uses here: their folder is there.
        sheets = [self._registry.sheet(name) for name in self._registry.agent_types]
        return [sheet for sheet in sheets if sheet.hooks is not None and sheet.hooks.events and self._is_used(sheet)]

    def _is_used(self, sheet: AgentSheet) -> bool:
        assert sheet.hooks is not None
        folder = PurePosixPath(sheet.hooks.path(self._files.environ)).parent
        home = PurePosixPath(self._files.environ.get("HOME", "/"))
        # A folder within the agent's own, for hooks alone, is made when needed.
        own = next((each for each in (folder, *folder.parents) if each.parent == home), folder)
        return self._files.is_folder(str(own))
