"""How soon a title that changes is visible in `watch`: with tmux's own hooks installed, and without, to compare."""

from __future__ import annotations

import os
import random
import shlex
import statistics
import time
from collections.abc import Iterator
from typing import Any, TextIO

from stage import Row, bounded, daemon_in, environment, own_folder, print_rows, tmux_server

PANES = 20
CHANGES = 80
CHANGES_WITHOUT = 30
# Far enough apart that each is news by itself.
PAUSES = (0.5, 1.0)
BUDGET = 100.0

# Shows each line it reads as its title, as an agent would: by what it writes, with no process for it.
SHOW = r"""while read -r title; do printf '\033]2;%s\007' "$title"; done <"""


def run() -> list[Row]:
    with bounded(180), own_folder() as folder:
        env = environment(folder)
        fifo = folder / "titles"
        os.mkfifo(fifo, 0o600)
        with tmux_server(env) as server:
            server.add_panes(PANES - 1)
            server.run("new-window", "-d", "-t", "bench:", "sh", "-c", SHOW + shlex.quote(str(fifo)))
            server.add_panes(0)
            with fifo.open("w", buffering=1) as titles, daemon_in(folder, env, PANES) as stage:
                stream = stage.client.stream("/v1/watch")
                without = _latencies("without", stream, titles, CHANGES_WITHOUT)
                stage.client.post("/v1/hooks", {"action": "install", "agents": ["tmux"]})
                latencies = _latencies("with", stream, titles, CHANGES)
    return [
        _row("tmux hooks installed", latencies, f"≤ {BUDGET:.0f} ms", BUDGET),
        _row("without them", without, "told only"),
    ]


def _row(how: str, samples: tuple[list[float], list[float]], budget: str, most: float = float("inf")) -> Row:
    p95, late = (statistics.quantiles(each, n=20)[-1] for each in samples)
    measured = f"{p95:.0f} ms (median {statistics.median(samples[0]):.0f}; the machine itself is {late:.0f} late)"
    return f"title change → visible, {how}, p95", measured, budget, p95 <= most


def _latencies(name: str, stream: Iterator[Any], titles: TextIO, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the writing of each title until the stream tells it; and how much longer than asked for was the
    pause before it, which is the machine's doing."""
    chance = random.Random(7)
    latencies, late = [], []
    for number in range(count):
        pause, rested = chance.uniform(*PAUSES), time.perf_counter()
        time.sleep(pause)
        late.append((time.perf_counter() - rested - pause) * 1e3)
        title = f"title {number} {name}"
        began = time.perf_counter()
        titles.write(title + "\n")
        while not _tells(next(stream), title):
            pass
        latencies.append((time.perf_counter() - began) * 1e3)
    return latencies, late


def _tells(line: Any, title: str) -> bool:
    items = (change.get("item", {}) for change in line.get("changes", []))
    return any(item.get("title") == title for item in items)


if __name__ == "__main__":
    print_rows(run())
