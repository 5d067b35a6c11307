"""Hooks of a target: of the agents on its machine, which are in files there, and of tmux itself, in its server."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agtmux import paths
from agtmux.agents.install.backups import Backups
from agtmux.agents.install.desk import HookDesk
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.install.plan import Report
from agtmux.agents.install.program import VARIABLES, HookProgram
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import printable
from agtmux.domain.panes import HOST, Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.hook.compose import compose
from agtmux.observe.fleet import Fleet
from agtmux.observe.supervisor import Supervisor
from agtmux.observe.wakers import Wakers
from agtmux.observe.world import World
from agtmux.probe import tmux
from agtmux.probe.processes import program_version
from agtmux.probe.tmux_hooks import HOOKS, OPTION
from agtmux.targets.files import ProbeFiles, read_environ, read_versions
from agtmux.targets.messages import TmuxHooks

_log = logging.getLogger(__name__)

# What tmux's own hooks are called where an agent's name is expected.
TMUX: Final = "tmux"


class Hooks:
    def __init__(
        self, world: World, registry: Registry, fleet: Fleet, supervisor: Supervisor, state_directory: Path
    ) -> None:
        self._world = world
        self._registry = registry
        self._fleet = fleet
        self._supervisor = supervisor
        self._backups = state_directory / "backups"
        self._wakers = Wakers(self._backups / "tmux.json")
        # Files are changed by one at a time.
        self._changing = asyncio.Lock()
        fleet.on_server.append(self._server_began)

    async def change(
        self, action: str, names: list[str], target_name: str, search_path: str = ""
    ) -> list[dict[str, Any]]:
        """Install, uninstall or look at hooks; one item an agent. tmux's own only if they are named, or were before.

        `search_path` is where whoever asks starts agents from on this machine.
        """
        target = self._world.targets.get(TargetId(target_name))
        if target is None:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {target_name[:64]!r}")
        if target.kind is TargetKind.CHAT:
            raise AgtmuxError(ErrorCode.USAGE, "chat sessions tell of themselves and need no hooks")
        agents = [name for name in names if name != TMUX]
        async with self._changing:
            told = []
            if agents or not names:
                told += await self._change_agents(action, agents, target, search_path)
            if TMUX in names or (not names and action != "install" and target in self._wakers):
                told.append(await self._change_tmux(action, target))
        return told

    async def found_here(self) -> list[dict[str, Any]]:
        """What agents' settings on this machine say, for who cannot wait: no change is waited for, no target asked."""
        return await self._change_agents("status", [], self._world.targets[HOST], "")

    # Agents

    async def _change_agents(
        self, action: str, names: list[str], target: Target, search_path: str
    ) -> list[dict[str, Any]]:
        is_ssh = target.kind is TargetKind.SSH
        desk, installed = await (self._desk_there(target) if is_ssh else self._desk_here(search_path))
        versions = self._versions(installed, target)
        match action:
            case "install":
                told = await asyncio.to_thread(desk.install, names, versions)
            case "uninstall":
                told = await asyncio.to_thread(desk.uninstall, names)
            case _:
                told = await asyncio.to_thread(desk.status, names, versions)
        warning = self._fleet.warning_of(target.target_id)
        if warning is not None and action != "uninstall":
            for item in told:
                if item["error"] is None:
                    item["warnings"] = (*item["warnings"], f"{warning[:1].upper()}{warning[1:]}.")
        return told

    async def _desk_here(self, search_path: str) -> tuple[HookDesk, Mapping[str, str]]:
        commands = self._commands()
        found = await asyncio.to_thread(lambda: {each: program_version(each, search_path) for each in commands})
        installed = {command: version for command, version in found.items() if version is not None}
        return HookDesk(self._registry, LocalFiles(), Backups(self._backups), _hook_command()), installed

    async def _desk_there(self, target: Target) -> tuple[HookDesk, Mapping[str, str]]:
        await self._fleet.connect(target.target_id)
        executor = self._fleet.executor(target.target_id)
        sheets = [self._registry.sheet(name) for name in self._registry.agent_types]
        variables = {name for sheet in sheets if sheet.hooks is not None for name in sheet.hooks.variables}
        environ = await read_environ(executor, sorted(variables.union(VARIABLES)))
        found = await read_versions(executor, self._commands())
        files = ProbeFiles(executor, asyncio.get_running_loop(), environ)
        # By the account and not by the target: several tmux servers there share its files.
        backups = Backups(self._backups / "ssh" / quote(target.connection_ref, safe="@"))
        program = HookProgram(files, backups, compose())
        return HookDesk(self._registry, files, backups, program.path, program), found

    def _commands(self) -> list[str]:
        rules = (self._registry.sheet(name).process for name in self._registry.agent_types)
        return [rule.commands[0] for rule in rules if rule.commands]

    def _versions(self, installed: Mapping[str, str], target: Target) -> dict[str, str]:
        """By agent the oldest that is in use on the target's machine: one that runs, or what would be started there.
        Empty where one is there and does not say."""
        versions: dict[str, str] = {}
        for name in self._registry.agent_types:
            for command in self._registry.sheet(name).process.commands[:1]:
                if command in installed:
                    versions[name] = installed[command]
        for (target_id, _), record in self._world.records.items():
            runtime, other = record.runtime, self._world.targets.get(target_id)
            is_there = other is not None and (other.kind, other.connection_ref) == (target.kind, target.connection_ref)
            if is_there:
                told = [each for each in (versions.get(runtime.agent_type), runtime.agent_version) if each]
                versions[runtime.agent_type] = min(told, key=_numbers, default="")
        return versions

    # tmux

    async def _change_tmux(self, action: str, target: Target) -> dict[str, Any]:
        await self._fleet.connect(target.target_id)
        found = await self._ask_tmux(action, target)
        if action == "install" and not found.other:
            self._wakers.add(target)
        elif action == "uninstall":
            self._wakers.discard(target)
        if found.changed:
            # Whether it is to wait for tmux is seen by looking.
            self._fleet.look_at(target.target_id)
        path = self._tmux_socket(target)
        if found.other and action == "install":
            why = (
                f"{OPTION} of {path} is set to {printable(found.other)!r}; unset it first, or leave it: it is followed"
            )
            return {"agent": TMUX, "error": AgtmuxError(ErrorCode.CONFIG, why).as_json()["error"]}
        report = _tmux_report(action, path, found, is_wanted=target in self._wakers)
        return report.as_item()

    async def _ask_tmux(self, action: str, target: Target) -> TmuxHooks:
        executor = self._fleet.executor(target.target_id)
        return await executor.run({"do": "tmux_hooks", "action": action}, TmuxHooks)

    def _tmux_socket(self, target: Target) -> str:
        if target.kind is TargetKind.LOCAL:
            return tmux.socket_path(target.tmux_socket)
        begun = self._fleet.executor(target.target_id).begun
        return printable(begun.sockets[0]) if begun is not None and begun.sockets else "its tmux server"

    def _server_began(self, target_id: TargetId) -> None:
        target = self._world.targets.get(target_id)
        if target is not None and target in self._wakers:
            self._supervisor.spawn(partial(self._tell_again, target), f"tmux-hooks-{target_id}")

    async def _tell_again(self, target: Target) -> None:
        try:
            async with self._changing:
                if target not in self._wakers:
                    # Uninstalled while this waited its turn.
                    return
                found = await self._ask_tmux("install", target)
        except AgtmuxError as error:
            # Tried again with the next server, or when the line is opened anew.
            _log.warning("tmux's own hooks could not be set again: %s", error.message)
            return
        if found.changed:
            _log.info("tmux's own hooks are set again on %s", target.target_id)
            self._fleet.look_at(target.target_id)


def _tmux_report(action: str, path: str, found: TmuxHooks, *, is_wanted: bool) -> Report:
    there, changed = set(found.there), set(found.changed)
    names = (*HOOKS, OPTION)
    warnings = []
    if is_wanted and not found.is_running:
        warnings.append("No tmux server is running there; the next one is told.")
    if action == "status" and there and not is_wanted:
        warnings.append("A new tmux server will not be told; installing sees to that.")
    if found.other:
        warnings.append(f"{OPTION} is set to {printable(found.other)!r} by somebody else, and followed.")
    if action == "uninstall" and there:
        warnings.append("Not all could be removed; try again.")
    is_looked_at = action == "status" and (is_wanted or there) and not found.other
    return Report(
        agent=TMUX,
        path=path,
        added=tuple(name for name in names if name in changed and action == "install"),
        already_there=tuple(name for name in names if name in there - changed),
        removed=tuple(name for name in names if name in changed and action == "uninstall"),
        missing=tuple(name for name in names if name not in there and is_looked_at),
        warnings=tuple(warnings),
    )


def _hook_command() -> str:
    """agtmux-hook, as it was installed with this daemon."""
    found = paths.hook_command()
    if found is None:
        raise AgtmuxError(ErrorCode.CONFIG, "agtmux-hook is not installed beside agtmuxd; install agtmux again")
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", version)]
