"""Takes out of agents' settings what a daemon that was killed has left there, for whoever leaves after it."""

from __future__ import annotations

import contextlib
import os
import subprocess

from agtmux import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# As the bridge's registrar calls it.
_ENDPOINT: Final = "mcp-state.json"
_LIMIT: Final = 15.0


def withdraw() -> bool | None:
    """Whether it is out; None if nothing was there. While a daemon answers, it sees to that itself."""
    endpoint = os.path.join(paths.state_directory(), _ENDPOINT)
    if not os.path.exists(endpoint):
        return None
    # In a process of its own: it needs all that a daemon has.
    command = [*paths.python_module("agtmux.bridge.withdraw"), paths.socket_path()]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT, cwd="/", check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode != 0:
        return False
    # Nobody wants it back with the next daemon.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(endpoint)
    return True
