"""The facts as far as they can be found out where no daemon answers."""

from __future__ import annotations

import os
from pathlib import Path

from agtmux import __version__, paths
from agtmux.agents.install.backups import Backups
from agtmux.agents.install.desk import HookDesk
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import PROGRAM, Bridge
from agtmux.agents.registry import AGENTS_FOLDER, Registry
from agtmux.doctor.facts import AgentBridge, AgentHooks, Facts, NoDaemon, TmuxProgram, WatchedTarget
from agtmux.doctor.here import agent_versions, installed_versions, look_here, read_bridges, read_hooks
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.panes import HOST, TargetKind
from agtmux.domain.states import Health
from agtmux.probe import tmux
from agtmux.probe.peer import is_answered

_LIMIT = 2.0


def look_alone(daemon: NoDaemon, target: str | None) -> Facts:
    state_directory = Path(paths.state_directory())
    here = look_here(state_directory)
    if target not in (None, HOST):
        # Only a daemon knows other targets.
        return Facts(here, daemon, __version__, target)
    registry = _registry()
    installed = installed_versions(registry)
    return Facts(
        here,
        daemon,
        __version__,
        target,
        targets=_host(here.tmux),
        hooks=_hooks(registry, installed, state_directory),
        bridges=_bridges(registry, installed, state_directory),
        agents=agent_versions({}, installed, registry),
    )


def _registry() -> Registry:
    try:
        return Registry.load(Path(paths.config_directory()) / AGENTS_FOLDER)
    except (AgtmuxError, OSError):
        # Which file is to blame is a finding of its own.
        return Registry.load()


def _hooks(registry: Registry, installed: dict[str, str], state_directory: Path) -> tuple[AgentHooks, ...]:
    command = paths.hook_command()
    if command is None:
        return ()
    desk = HookDesk(registry, LocalFiles(), Backups(state_directory / "backups"), command)
    try:
        return read_hooks(desk.status([], installed))
    except AgtmuxError as error:
        return (AgentHooks(None, error=error.message),)


def _bridges(registry: Registry, installed: dict[str, str], state_directory: Path) -> tuple[AgentBridge, ...]:
    command = paths.beside(PROGRAM)
    if command is None:
        return ()
    try:
        bridge = Bridge(command, paths.socket_path(), is_answered)
        desk = McpDesk(registry, LocalFiles(), Backups(state_directory / "backups" / "mcp"), bridge)
        return read_bridges(desk.status([], installed))
    except AgtmuxError as error:
        return (AgentBridge(None, error=error.message),)


def _host(program: TmuxProgram) -> tuple[WatchedTarget, ...]:
    """The default tmux server, which is watched as soon as there is a daemon."""
    if program.path is None or program.trouble or program.is_too_old:
        return ()
    try:
        # Even to be asked whether it is there, tmux would make its folder.
        is_there = os.access(tmux.socket_path(""), os.F_OK)
        panes = tmux.snapshot(program.path, "", {}, _LIMIT)[0] if is_there else []
    except tmux.TmuxError as error:
        return (WatchedTarget(HOST, TargetKind.LOCAL.value, Health.DEGRADED, error=str(error)),)
    count = len({row["pane_id"] for row in panes})
    return (
        WatchedTarget(HOST, TargetKind.LOCAL.value, Health.OK, count, has_server=bool(panes), tmux_said=program.said),
    )
