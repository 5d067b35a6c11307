"""Which panes the user looks at: those that a terminal shows which has the keyboard.

tmux knows, if it is told to listen to terminals (`focus-events on`); the daemon does not ask. Without that option, and
of other machines, nothing is known, and then nobody looks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, Final

# A target and the id of a pane in it.
Place = tuple[str, str]

_FORMAT: Final = "#{focus-events} #{client_control_mode} #{client_flags} #{pane_id}"
# It is asked before a notification is shown, and rather shown than waited for.
_TIME_LIMIT: Final = 1.0


def looked_at(targets: Iterable[Mapping[str, Any]]) -> frozenset[Place]:
    tmux = shutil.which("tmux")
    if tmux is None:
        return frozenset()
    local = [target for target in targets if target["kind"] == "local"]
    return frozenset((target["name"], pane) for target in local for pane in _fronted(tmux, target["tmux_socket"]))


def _fronted(tmux: str, socket: str) -> list[str]:
    where = ["-S" if "/" in socket else "-L", socket] if socket else []
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    try:
        # It starts no server where there is none.
        done = subprocess.run(
            [tmux, "-u", *where, "list-clients", "-F", _FORMAT],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    words = [line.split(" ") for line in done.stdout.splitlines()]
    return [each[3] for each in words if len(each) == 4 and each[:2] == ["1", "0"] and "focused" in each[2].split(",")]
