"""Which agents on this machine know the bridge: told when agtmux comes up and the user has agreed, taken back when the
daemon ends.

`mcp-state.json` says that a daemon is there and whom it told. A daemon that finds one from before it was not ended in
peace: what that one had registered is made right first.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from agtmux import __version__, paths
from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import PROGRAM, Bridge, Entry
from agtmux.agents.registry import Registry
from agtmux.bridge.consent import Consent
from agtmux.bridge.elsewhere import Elsewhere
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.observe.fleet import Fleet
from agtmux.paths import write_private
from agtmux.probe.peer import is_answered
from agtmux.probe.processes import program_version, read_one

_log = logging.getLogger(__name__)

ENDPOINT: Final = "mcp-state.json"


class Registrar:
    def __init__(
        self,
        registry: Registry,
        targets: Mapping[TargetId, Target],
        fleet: Fleet,
        state_directory: Path,
        *,
        setting: bool | None,
    ) -> None:
        """`setting` is what config.toml says of registering; None if it says nothing."""
        self._registry = registry
        self._targets = targets
        self.elsewhere = Elsewhere(registry, targets, fleet, state_directory / "backups")
        self._endpoint = state_directory / ENDPOINT
        self.consent = Consent(state_directory, setting)
        self._backups = state_directory / "backups" / "mcp"
        self._changing = asyncio.Lock()
        self._started = False
        # Those whose entry is ours.
        self._agents: list[str] = []

    async def start(self) -> None:
        left_by_another = await asyncio.to_thread(self._left_behind)
        self._started = True
        try:
            if left_by_another is not None:
                # An earlier version may have registered unasked.
                again = await asyncio.to_thread(self.consent.allowed, left_by_another)
                _log.info("the daemon before this one did not end in peace; its registrations are made right")
                for item in await self._change("unregister", [], ""):
                    _warn(item)
                if again:
                    await self._change("register", again, "")
        except AgtmuxError as error:
            _log.warning("what is left of the bridge's registration stays: %s", error.message)
        await asyncio.to_thread(self._note)

    async def close(self) -> None:
        """Nothing of ours stays behind."""
        if not self._started:
            return
        self._started = False
        try:
            if self._agents or self._backups.is_dir():
                for item in await self._change("unregister", [], ""):
                    _warn(item)
        except AgtmuxError as error:
            _log.warning("the bridge stays registered: %s", error.message)
        self._endpoint.unlink(missing_ok=True)

    async def change(
        self, action: str, names: list[str], target_name: str, search_path: str = "", *, automatic: bool = False
    ) -> list[dict[str, Any]]:
        """Register, unregister or look; one item an agent.

        `automatic` comes with starting agtmux and is no decision of the user's: only agents that the user has agreed to
        are registered. Anything else is the user's decision, and is kept. `search_path` is where the caller starts
        agents from.
        """
        target = self._targets.get(TargetId(target_name))
        if target is None:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {target_name[:64]!r}")
        if automatic and target.kind is not TargetKind.LOCAL:
            return []
        if target.kind is TargetKind.CHAT:
            raise AgtmuxError(ErrorCode.USAGE, "chat sessions have the settings of this machine; leave --target out")
        if target.kind is not TargetKind.LOCAL:
            return await self.elsewhere.change(action, names, target)
        declined: Collection[str] = ()
        if automatic and action == "register":
            allowed = await asyncio.to_thread(self.consent.allowed, self._registry.agent_types)
            if not allowed:
                return []
            declined = {*self._registry.agent_types}.difference(allowed)
        # A name that is no agent's is refused below, and nothing is kept of it.
        elif action != "status" and not automatic and all(map(self._registry.knows, names)):
            # Kept first: what stands in an agent's settings is never more than what the user has agreed to.
            await asyncio.to_thread(self.consent.decide, names, allow=action == "register")
        told = await self._change(action, names, search_path, declined)
        await asyncio.to_thread(self._note)
        return told

    async def found_here(self) -> list[dict[str, Any]]:
        """What agents' settings say, without a change to wait for."""
        return await asyncio.to_thread(self._told, "status", [], "")

    async def _change(
        self, action: str, names: list[str], search_path: str, declined: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        # Files are changed by one at a time.
        async with self._changing:
            told = await asyncio.to_thread(self._told, action, names, search_path, declined)
        ours = {item["agent"] for item in told if item.get("entry") == Entry.REGISTERED}
        seen = {item["agent"] for item in told if item["error"] is None}
        self._agents = [name for name in self._registry.agent_types if name in ours or name in {*self._agents} - seen]
        return told

    def _told(
        self, action: str, names: list[str], search_path: str, declined: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        desk = McpDesk(self._registry, LocalFiles(), Backups(self._backups), bridge())
        match action:
            case "register":
                return desk.register(names, self._installed(search_path), declined)
            case "unregister":
                return desk.unregister(names)
            case _:
                return desk.status(names, self._installed(search_path))

    def _installed(self, search_path: str) -> list[str]:
        sheets = (self._registry.sheet(name) for name in self._registry.agent_types)
        return [
            sheet.agent_type
            for sheet in sheets
            if any(program_version(command, search_path) is not None for command in sheet.process.commands[:1])
        ]

    def _left_behind(self) -> list[str] | None:
        """Whom a daemon had told that did not end in peace; None if there was none."""
        try:
            agents = json.loads(self._endpoint.read_bytes())["agents"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError):
            return []
        return [name for name in agents if self._registry.knows(name)] if isinstance(agents, list) else []

    def _note(self) -> None:
        content = {
            "schema_version": 1,
            "socket": paths.socket_path(),
            "pid": os.getpid(),
            "started_at": _started_at(),
            "version": __version__,
            "agents": self._agents,
        }
        try:
            write_private(self._endpoint, json.dumps(content, indent=2))
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._endpoint, error.strerror)


def bridge() -> Bridge:
    """agtmux-mcp, as it was installed with this daemon, and this daemon's socket."""
    command = paths.beside(PROGRAM)
    if command is None:
        raise AgtmuxError(ErrorCode.CONFIG, f"{PROGRAM} is not installed beside agtmuxd; install agtmux again")
    return Bridge(command, paths.socket_path(), is_answered)


def endpoint_socket(state_directory: Path) -> str | None:
    """The socket of the daemon that is there, or that did not end in peace."""
    try:
        return str(json.loads((state_directory / ENDPOINT).read_bytes())["socket"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _started_at() -> float:
    process = read_one(os.getpid())
    return time.time() if process is None else float(process.started)


def _warn(item: dict[str, Any]) -> None:
    if item["error"] is not None:
        _log.warning("the bridge stays registered with %s: %s", item["agent"], item["error"]["message"])
