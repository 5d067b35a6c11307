"""The first answer of a daemon that a command has to start: whether it is right, and how long it takes."""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from stage import Duration, Row, bounded, environment, own_folder, print_rows, quantile, scheduling, tmux_server, usage

from agtmux.daemon import LOCK_FILE
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
    chosen, mistakes = random.Random(SEED), []
    took: list[Duration] = []
    # Seconds of processor time until the answer, and of bare Python.
    spent: list[float] = []
    bare: list[float] = []
    for start in range(STARTS):
        # Others than those that the daemon before has written down.
        waiting = set(chosen.sample(agents.panes, WAITING))
        agents.show_all({pane: "waiting" if pane in waiting else "at rest" for pane in agents.panes}, start)
        before = _children_seconds()
        subprocess.run([sys.executable, "-c", "pass"], env=env, check=True, timeout=60)
        bare.append(_children_seconds() - before)

        before, began = _children_seconds(), time.perf_counter()
        answer = _agtmux(env, "list", "panes", "--json")
        whole = time.perf_counter() - began
        daemon = int(Path(env["AGTMUX_STATE_DIR"], LOCK_FILE).read_text())
        # Of the daemon alone: the command waits for it most of the time.
        waited = scheduling(daemon).waited
        spent.append(_children_seconds() - before + usage(daemon).whole)
        took.append(Duration(whole, spent[-1], waited))
        if found := wrong(json.loads(answer), waiting, agents.panes):
            mistakes.append(f"start {start}: {'; '.join(found)}")
        _agtmux(env, "down")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    right, p95 = STARTS - len(mistakes), quantile([each.own for each in took], 0.95)
    whole95 = quantile([each.whole for each in took], 0.95)
    processor = statistics.median(spent)
    ratio = processor / statistics.median(bare)
    return [
        (
            f"first answer of {STARTS} cold starts, {len(AGENTS)} agents of which {WAITING} wait",
            f"{right} right (seed {SEED})",
            f"{STARTS} right",
            right == STARTS,
        ),
        (
            "cold start → first answer, p95",
            f"{p95:.2f} s (median {statistics.median(each.own for each in took):.2f};"
            f" p95 {whole95:.2f} with the daemon's waiting for a processor)",
            f"≤ {BUDGET:.0f} s",
            p95 <= BUDGET,
        ),
        (
            "cold start → first answer, processor time",
            f"{processor:.2f} s = {ratio:.0f} × python -c pass",
            "told only",
            True,
        ),
    ]


def _children_seconds() -> float:
    """Processor time of all processes that were started here and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _agtmux(env: dict[str, str], *words: str) -> str:
    command = [Path(sys.executable).with_name("agtmux"), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout


if __name__ == "__main__":
    print_rows(run())
