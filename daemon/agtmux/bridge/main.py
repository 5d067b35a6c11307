"""`agtmux-mcp`: what an agent on this machine starts as its MCP server. It passes on lines, and is nobody by itself.

It imports as little as it can: every agent has one, and some wait for it before they do anything.
"""

from __future__ import annotations

import sys

from agtmux import paths
from agtmux.bridge.local import Packaged
from agtmux.bridge.run import Bridge
from agtmux.domain.errors import AgtmuxError

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_WITHDRAW_LIMIT: Final = 20.0
_USAGE: Final = "usage: agtmux-mcp [--socket PATH]"


def main() -> int:
    words = sys.argv[1:]
    if words in (["-h"], ["--help"]):
        print(f"{_USAGE}\n\nWhat agents start to reach agtmux: MCP on standard input and output.")
        return 0
    if words and (len(words) != 2 or words[0] != "--socket"):
        print(f"agtmux: E_USAGE: {_USAGE}", file=sys.stderr)
        return 2
    return serve(words[1] if words else None)


def serve(socket_path: str | None = None) -> int:
    try:
        path = socket_path or paths.socket_path()
        return Bridge(path, Packaged(), lambda: _withdraw(path)).run()
    except AgtmuxError as error:
        print(f"agtmux: {error}", file=sys.stderr)
        return error.exit_status
    except (BrokenPipeError, KeyboardInterrupt):
        # The agent has gone.
        return 0


def _withdraw(socket_path: str) -> None:
    """No agent started from now on is to look for a daemon that is gone. The next daemon tells them again."""
    import subprocess

    try:
        subprocess.run(
            [*paths.python_module("agtmux.bridge.withdraw"), socket_path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WITHDRAW_LIMIT,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        # The next daemon clears it up.
        return


if __name__ == "__main__":
    sys.exit(main())
