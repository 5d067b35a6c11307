"""The first answer of a daemon that a command has to start: whether it is right, and how long it takes."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from stage import Row, bounded, environment, own_folder, print_rows, tmux_server

from support.recorded import RecordedAgents, wrong

AGENTS = ["claude", "codex", "gemini", "copilot"] * 5
WAITING = 3
STARTS = 50
# A daemon that starts, the first looks, and the command itself.
BUDGET = 3.0
SEED = 16


def run() -> list[Row]:
    with bounded(600), own_folder() as folder:
        env = environment(folder)
        with tmux_server(env) as server:
            agents = RecordedAgents(server.run, folder, AGENTS)
            server.pid = int(server.run("display-message", "-p", "#{pid}"))
            return _measured(agents, env)


def _measured(agents: RecordedAgents, env: dict[str, str]) -> list[Row]:
    chosen, took, mistakes = random.Random(SEED), [], []
    for start in range(STARTS):
        # Others than those that the daemon before has written down.
        waiting = set(chosen.sample(agents.panes, WAITING))
        for pane in agents.panes:
            agents.show(pane, "waiting" if pane in waiting else "at rest", start)
        began = time.perf_counter()
        listing = json.loads(_agtmux(env, "list", "panes", "--json"))
        took.append(time.perf_counter() - began)
        if found := wrong(listing, waiting, agents.panes):
            mistakes.append(f"start {start}: {'; '.join(found)}")
        _agtmux(env, "down")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    right, p95 = STARTS - len(mistakes), statistics.quantiles(took, n=20)[-1]
    what = f"first answer of {STARTS} cold starts, {len(AGENTS)} agents of which {WAITING} wait"
    told = f"{p95:.2f} s (median {statistics.median(took):.2f}, longest {max(took):.2f})"
    return [
        (what, f"{right} right (seed {SEED})", f"{STARTS} right", right == STARTS),
        ("cold start → first answer, p95", told, f"≤ {BUDGET:.0f} s", p95 <= BUDGET),
    ]


def _agtmux(env: dict[str, str], *words: str) -> str:
    command = [Path(sys.executable).with_name("agtmux"), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout


if __name__ == "__main__":
    print_rows(run())
