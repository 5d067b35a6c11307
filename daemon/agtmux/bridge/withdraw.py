"""Takes the bridge out of agents' settings when its daemon is gone: `python -m agtmux.bridge.withdraw SOCKET`.

A bridge runs it that has looked for its daemon in vain, in a process of its own: it needs all that a daemon has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agtmux import paths
from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import LocalFiles
from agtmux.agents.mcp.desk import McpDesk
from agtmux.agents.mcp.plan import PROGRAM, Bridge
from agtmux.agents.registry import AGENTS_FOLDER, Registry
from agtmux.bridge.registrar import endpoint_socket
from agtmux.domain.errors import AgtmuxError
from agtmux.probe.peer import is_answered


def main(socket_path: str) -> int:
    command = paths.beside(PROGRAM)
    state_directory = Path(paths.state_directory())
    if command is None or is_answered(socket_path) or endpoint_socket(state_directory) != socket_path:
        # It is back, or it ended in peace and has seen to it, or it is not clear whose notes these are.
        return 1
    try:
        registry = Registry.load(Path(paths.config_file()).parent / AGENTS_FOLDER)
        # The daemon's own notes stay as they are, so that the next one knows whom to tell again.
        backups = Backups(state_directory / "backups" / "mcp")
        bridge = Bridge(command, socket_path, is_answered)
        told = McpDesk(registry, LocalFiles(), backups, bridge).unregister([])
    except AgtmuxError:
        return 1
    return int(any(item["error"] for item in told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
