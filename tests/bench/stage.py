"""What the benchmarks measure against: a real daemon with a private tmux server, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agtmux.client import Client

Row = tuple[str, str, str, bool]


class Stage(NamedTuple):
    folder: Path
    socket: str
    environment: dict[str, str]
    client: Client
    pid: int
    panes: list[str]


def environment(folder: Path) -> dict[str, str]:
    """A user's: compiled files are kept, nothing is debugged, nobody else's tmux or daemon is in reach."""
    dropped = ("TMUX", "TMUX_PANE", "PYTHONDONTWRITEBYTECODE", "PYTHONASYNCIODEBUG", "XDG_RUNTIME_DIR", "AGTMUX_SOCKET")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return kept | {
        "AGTMUX_STATE_DIR": str(folder / "state"),
        "AGTMUX_CONFIG_DIR": str(folder / "config"),
        "TMUX_TMPDIR": str(folder),
        # Beside the sources, so that an editable checkout is measured as an installed package would be.
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
    }


@contextlib.contextmanager
def running_daemon(panes: int) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="agb-", dir="/tmp") as name:
        folder = Path(name).resolve()
        env = environment(folder)
        tmux = ["tmux", "-f", "/dev/null"]
        daemon: subprocess.Popen[bytes] | None = None
        try:
            made = []
            for number in range(panes):
                verb = ["new-session", "-d", "-s", "bench"] if number == 0 else ["new-window", "-d", "-t", "bench:"]
                command = [*tmux, *verb, "-P", "-F", "#{pane_id}", "sleep", "3600"]
                pane = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()
                subprocess.run([*tmux, "set-option", "-p", "-t", pane, "@agtmux_agent", "claude"], env=env, check=True)
                made.append(pane)
            daemon = subprocess.Popen([sys.executable, "-m", "agtmux.daemon"], env=env)
            socket = str(folder / "state" / "agtmuxd.sock")
            client = Client(socket, start=False)
            _wait(lambda: client.is_answered() and len(client.get("/v1/panes")["items"]) == panes)
            yield Stage(folder, socket, env, client, daemon.pid, made)
        finally:
            if daemon is not None:
                daemon.terminate()
                daemon.wait()
            subprocess.run([*tmux, "kill-server"], env=env, check=False, capture_output=True)


def _wait(condition: object, limit: float = 20.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("the daemon did not come up")
        time.sleep(0.05)
