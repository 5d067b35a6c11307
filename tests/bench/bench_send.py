"""How soon whoever sends a text knows that it was taken: the whole command, read-back included."""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from stage import Row, Stage, bounded, daemon_in, environment, own_folder, tmux_server

PANES = 100
TIMES = 30
BUDGET = 1_000.0
_PROGRAM = Path(__file__).resolve().parents[1] / "support" / "puppet.py"
_PATIENCE = 20.0


def run() -> list[Row]:
    with bounded(180), own_folder() as folder:
        env = environment(folder)
        with tmux_server(env) as server:
            server.add_panes(PANES)
            command = f'bash -c \'exec -a claude "{sys.executable}" "{_PROGRAM}" one {folder}\''
            words = ["tmux", "new-window", "-dPF", "#{pane_id}", command]
            pane = subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout.strip()
            with daemon_in(folder, env, PANES + 1) as stage:
                short = _measured(stage, pane, "run the tests")
                long = _measured(stage, pane, "\n".join(f"line {number}" for number in range(200)))
    rows = []
    for what, found in (("one line", short), ("200 lines", long)):
        p95 = statistics.quantiles(found, n=20)[-1]
        told = f"{p95:.0f} ms (median {statistics.median(found):.0f}, longest {max(found):.0f})"
        rows.append((f"agtmux send --enter, {what}, taken, p95", told, f"≤ {BUDGET:.0f} ms", p95 <= BUDGET))
    return rows


def _measured(stage: Stage, pane: str, text: str) -> list[float]:
    found = []
    for _ in range(TIMES):
        _tell(stage, "reset")
        _until_idle(stage, pane)
        begun = time.perf_counter()
        words = [Path(sys.executable).with_name("agtmux"), "send", pane, "--text", text, "--enter"]
        done = subprocess.run(words, env=stage.environment, capture_output=True, text=True)
        found.append((time.perf_counter() - begun) * 1e3)
        if done.stdout != "delivered\n":
            raise RuntimeError(f"not delivered: {done}")
    return found


def _tell(stage: Stage, order: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as strings:
        strings.sendto(order.encode(), str(stage.folder / "one.sock"))


def _until_idle(stage: Stage, pane: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        items = stage.client.get("/v1/panes")["items"]
        if any(item["identity"]["pane_id"] == pane and item["state"] in ("idle", "completed") for item in items):
            return
        time.sleep(0.02)
    raise RuntimeError("the puppet is not at its prompt")
