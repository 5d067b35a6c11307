"""The bridge in settings that an agent has of its own, apart from the user's: those of a team's role."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.registry import Registry
from agtmux.bridge.registrar import bridge
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.paths import private_directory


def tell_home(registry: Registry, agent: str, environ: Mapping[str, str], backups: Path) -> None:
    """An agent that is started with that environment knows the bridge. Raises if it cannot be told."""
    for home in environ.values():
        private_directory(home)
    for item in _desk(registry, environ, backups).register([agent], [agent]):
        if item["error"] is not None:
            raise AgtmuxError(ErrorCode(item["error"]["code"]), item["error"]["message"])


def untell_home(registry: Registry, agent: str, environ: Mapping[str, str], backups: Path) -> None:
    _desk(registry, environ, backups).unregister([agent])


def _desk(registry: Registry, environ: Mapping[str, str], backups: Path) -> McpDesk:
    return McpDesk(registry, LocalFiles({**os.environ, **environ}), Backups(backups), bridge())
