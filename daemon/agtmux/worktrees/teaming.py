"""From a role in a team's file to the order by which its agent is launched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agtmux.agents.registry import Registry
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.runtimes import TargetId
from agtmux.messages.team import TeamSheet, Timeouts
from agtmux.worktrees.order import Order

_ANY_START: Final = Timeouts().microseconds("start")


def order_of(team: TeamSheet, name: str, registry: Registry, homes: Path) -> Order:
    """`homes` is where roles have settings of their own, if they are to."""
    if name not in team.roles:
        raise AgtmuxError(ErrorCode.NOT_FOUND, f"{team.name} has no role {name[:40]!r}")
    sheet = team.roles[name]
    folder = os.path.normpath(Path(team.folder) / sheet.cwd) if team.folder or sheet.cwd else ""
    environment: tuple[str, ...] = ()
    start = team.timeouts.microseconds("start")
    if sheet.isolated:
        if sheet.target != HOST:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"{name}: settings of its own are for agents on this machine")
        environment = tuple(f"{key}={value}" for key, value in home_of(team, name, registry, homes).items())
    return Order(
        agent=sheet.agent,
        target_id=TargetId(sheet.target),
        cwd=folder,
        branch=sheet.branch,
        is_apart=sheet.worktree,
        session=f"team_{team.name}" if not (sheet.branch or sheet.worktree) else "",
        role=team.role(name),
        prompt=team.briefing(name),
        environment=environment,
        # Where the file says nothing of it, the settings do.
        start_limit=None if start == _ANY_START else start / SECOND,
    )


def home_of(team: TeamSheet, name: str, registry: Registry, homes: Path) -> dict[str, str]:
    """What in an agent's environment gives it settings of its own: where it keeps them, if that can be said, and a home
    of its own otherwise."""
    agent = team.roles[name].agent
    home = str(homes / team.name / name)
    sheet = registry.sheet(agent) if registry.knows(agent) else None
    variables = [] if sheet is None or sheet.mcp is None else [each for each in sheet.mcp.variables if each != "HOME"]
    return dict.fromkeys(variables, home) if variables else {"HOME": home}
