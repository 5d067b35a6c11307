"""What a command costs beside bare Python, measured in turns so that a busy moment falls on both."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from stage import Row, bounded, running_daemon

PANES = 100
RUNS = 60
BUDGET = 3.5


def run() -> list[Row]:
    agtmux = str(Path(sys.executable).with_name("agtmux"))
    with bounded(180), running_daemon(PANES) as stage:
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "agtmux status": [agtmux, "status"],
            "agtmux list panes --json": [agtmux, "list", "panes", "--json"],
            "agtmux bar --format tmux": [agtmux, "bar", "--format", "tmux"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run(command, env=stage.environment, check=True, stdout=subprocess.DEVNULL)
                times[name].append(time.perf_counter() - began)
    bare = statistics.median(times.pop("python -c pass"))
    rows = []
    for name, samples in times.items():
        ratio = statistics.median(samples) / bare
        measured = f"{ratio:.2f} × python -c pass ({statistics.median(samples) * 1e3:.1f} / {bare * 1e3:.1f} ms)"
        rows.append((name, measured, f"≤ {BUDGET} ×", ratio <= BUDGET))
    return rows


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
