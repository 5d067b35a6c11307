"""Hooks of several agents at once: whose are meant when nobody says, and what is told of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.agents.install.plan import Report, hooks_status, install_hooks, uninstall_hooks
from agtmux.agents.install.program import HookProgram
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode


class HookDesk:
    def __init__(
        self, registry: Registry, files: Files, backups: Backups, hook_command: str, program: HookProgram | None = None
    ) -> None:
        """`program` is `hook_command` itself, where it has to be placed first and goes with the last agent."""
        self._registry = registry
        self._files = files
        self._backups = backups
        self._hook_command = hook_command
        self._program = program

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

    def _clear_up(self, told: list[dict[str, Any]]) -> None:
        """The program, when no agent runs it; on a machine that is out of reach it stays."""
        if self._program is None:
            return
        try:
            if not any(map(self._runs_program, self._registry.agent_types)):
                self._program.remove()
        except AgtmuxError as error:
            told.append({"agent": HookProgram.NAME, "error": error.as_json()["error"]})

    def _runs_program(self, name: str) -> bool:
        sheet = self._registry.sheet(name)
        paths = [*self._backups.noted(name), *([sheet.hooks.path(self._files.environ)] if sheet.hooks else [])]
        states = (self._files.read(path, sheet.hooks.wanted if sheet.hooks else None) for path in paths)
        # By its name alone: a file that cannot be understood may well mean it.
        return any(state is not None and HookProgram.NAME.encode() in state.data for state in states)

    def _each(self, chosen: list[AgentSheet], act: Callable[[AgentSheet], list[Report]]) -> list[dict[str, Any]]:
        """One that cannot be done keeps none of the others from being done."""
        told: list[dict[str, Any]] = []
        for sheet in chosen:
            try:
                told += [report.as_item() for report in act(sheet)]
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
        return [sheet for sheet in sheets if _has_hooks(sheet) and self._is_used(sheet)]

    def _is_used(self, sheet: AgentSheet) -> bool:
        assert sheet.hooks is not None
        folder = PurePosixPath(sheet.hooks.path(self._files.environ)).parent
        home = PurePosixPath(self._files.environ.get("HOME", "/"))
        # A folder within the agent's own, for hooks alone, is made when needed.
        own = next((each for each in (folder, *folder.parents) if each.parent == home), folder)
        return self._files.is_folder(str(own))


def _has_hooks(sheet: AgentSheet) -> bool:
    return sheet.hooks is not None and bool(sheet.hooks.events)
