"""Asks around for the facts that the checks are about. Whoever runs the daemon loads this only when somebody asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agtmux import paths
from agtmux.agents.registry import Registry
from agtmux.bridge.registrar import Registrar
from agtmux.doctor.checks import examine
from agtmux.doctor.facts import AgentBridge, AgentHooks, Daemon, Facts
from agtmux.doctor.here import agent_versions, installed_versions, look_here, other_servers, read_bridges, read_hooks
from agtmux.doctor.watched import agent_panes, running_versions, unknown_panes, watched_targets
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import TargetId
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.observe.fleet import Fleet
from agtmux.observe.hooking import Hooks
from agtmux.observe.world import World


@dataclass(frozen=True, slots=True)
class Examiner:
    world: World
    fleet: Fleet
    registry: Registry
    hooks: Hooks
    registrar: Registrar
    state_directory: Path
    wants_bridge: bool

    async def examine(
        self, daemon: Daemon, now: Timestamp, target: str | None, callers_tmux: str, client_version: str
    ) -> dict[str, Any]:
        """What works here and what does not. Nothing waits for a target: what is known of it is told."""
        only = None if target is None else TargetId(target)
        if only is not None and only not in self.world.targets:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {only[:64]!r}")
        here, installed, others, hooks, bridges = await asyncio.gather(
            asyncio.to_thread(look_here, self.state_directory),
            asyncio.to_thread(installed_versions, self.registry),
            asyncio.to_thread(other_servers, lambda path: self.fleet.local_target_at(path) is not None, callers_tmux),
            self._hooks_found(),
            self._bridges_found(),
        )
        panes = agent_panes(self.world, only)
        facts = Facts(
            here=here,
            daemon=daemon,
            client_version=client_version,
            target=target,
            targets=watched_targets(self.world, self.fleet, only),
            other_servers=others if only in (None, HOST) else (),
            hooks=hooks,
            bridges=bridges,
            wants_bridge=self.wants_bridge,
            agents=agent_versions(running_versions(panes), installed if only in (None, HOST) else {}, self.registry),
            unknown_panes=unknown_panes(panes),
            agent_panes=Counter(item.identity.target for item in panes),
        )
        return examine(facts, format_timestamp(now))

    async def _hooks_found(self) -> tuple[AgentHooks, ...]:
        if paths.hook_command() is None:
            # That is a finding of its own.
            return ()
        try:
            return read_hooks(await self.hooks.found_here())
        except AgtmuxError as error:
            return (AgentHooks(None, error=error.message),)

    async def _bridges_found(self) -> tuple[AgentBridge, ...]:
        try:
            return read_bridges(await self.registrar.found_here())
        except AgtmuxError as error:
            return (AgentBridge(None, error=error.message),)
