"""The bridge on other machines: one file that agents there start, and an entry for it in their settings, put there and
taken away through the probe.

It stays when the daemon ends, as hooks do: whoever asked for it there wants it there tomorrow, and a machine may be out
of reach when the daemon has to go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.program import VARIABLES, BridgeProgram
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import Bridge
from agtmux.agents.registry import Registry
from agtmux.bridge.compose import compose
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.panes import Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.observe.fleet import Fleet
from agtmux.probe.hook_socket import places
from agtmux.targets.executor import ProbeExecutor
from agtmux.targets.files import ProbeFiles, read_environ, read_versions

_log = logging.getLogger(__name__)

# What decides where the probe's door is that is always there. XDG_RUNTIME_DIR is only while somebody is logged in.
_DOOR: Final = ("AGTMUX_SOCKET", "AGTMUX_STATE_DIR", "XDG_STATE_HOME", "HOME")
# A target that is being removed is not waited for any longer.
_LEAVE_LIMIT: Final = 10.0


class Elsewhere:
    def __init__(
        self, registry: Registry, targets: Mapping[TargetId, Target], fleet: Fleet, backups_folder: Path
    ) -> None:
        self._registry = registry
        self._targets = targets
        self._fleet = fleet
        self._folder = backups_folder
        # Files are changed by one at a time.
        self._changing = asyncio.Lock()
        fleet.on_remove.append(self._leave)

    async def change(self, action: str, names: list[str], target: Target) -> list[dict[str, Any]]:
        """Register, unregister or look; one item an agent."""
        async with self._changing:
            await self._fleet.connect(target.target_id)
            executor = self._fleet.executor(target.target_id)
            desk, installed = await self._desk(target, executor)
            match action:
                case "register":
                    told = await asyncio.to_thread(desk.register, names, installed)
                case "unregister":
                    told = await asyncio.to_thread(desk.unregister, names)
                case _:
                    told = await asyncio.to_thread(desk.status, names, installed)
        if executor.complaint and action != "unregister":
            for item in told:
                if item["error"] is None:
                    why = f"Bridges there do not reach this agtmux: {executor.complaint}."
                    item["warnings"] = (*item["warnings"], why)
        return told

    def is_registered(self, target: Target) -> bool:
        """Whether somebody asked for it there, and did not take that back."""
        return bool(self._programs(target).noted(BridgeProgram.NAME))

    def _programs(self, target: Target) -> Backups:
        # By the account and not by the target: several tmux servers there share its files.
        return Backups(self._folder / "ssh" / quote(target.connection_ref, safe="@"))

    async def _desk(self, target: Target, executor: ProbeExecutor) -> tuple[McpDesk, list[str]]:
        sheets = [self._registry.sheet(name) for name in self._registry.agent_types]
        variables = {name for sheet in sheets if sheet.mcp is not None for name in sheet.mcp.variables}
        environ = await read_environ(executor, sorted(variables.union(VARIABLES, _DOOR)))
        commands = {sheet.process.commands[0]: sheet.agent_type for sheet in sheets if sheet.process.commands}
        found = await read_versions(executor, list(commands))
        files = ProbeFiles(executor, asyncio.get_running_loop(), environ)
        program = BridgeProgram(files, self._programs(target), compose())
        door = places({name: environ[name] for name in _DOOR if name in environ})[-1]

        def answers(socket_path: str) -> bool:
            """Whether another agtmux does: at our own door that is whoever keeps us from opening it."""
            return bool(executor.complaint) if socket_path == door else files.is_answered(socket_path)

        bridge = Bridge(program.path, door, answers, is_placed=True)
        backups = Backups(self._folder / "mcp" / "ssh" / quote(target.connection_ref, safe="@"))
        return McpDesk(self._registry, files, backups, bridge, program), [commands[each] for each in found]

    async def _leave(self, target: Target) -> list[str]:
        """The target goes: what was put there goes too, if it can be reached and nobody else of ours uses it."""
        others = [each for each in self._targets.values() if each.target_id != target.target_id]
        is_last = target.connection_ref not in {each.connection_ref for each in others}
        if target.kind is not TargetKind.SSH or not is_last or not self.is_registered(target):
            return []
        try:
            async with asyncio.timeout(_LEAVE_LIMIT):
                told = await self.change("unregister", [], target)
            problems = [item["error"]["message"] for item in told if item["error"] is not None]
        except AgtmuxError as error:
            problems = [error.message]
        except TimeoutError:
            problems = [f"it did not answer within {_LEAVE_LIMIT:g} seconds"]
        if not problems:
            return []
        left = f"the bridge stays registered on {target.connection_ref}: {problems[0]}"
        _log.warning("%s", left)
        return [f"{left}; add the target again and unregister it when it can be reached"]
