"""What a bridge costs an agent: until it knows the tools, for each call, and in memory. gwt NFR-001, NFR-002."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from stage import Row, bounded, environment, own_folder, print_rows, running_daemon

PANES = 20
STARTS = 30
CALLS = 300
BUDGET_START = 300.0
BUDGET_CALL = 10.0
BUDGET_MEMORY = 30.0
COMMAND = Path(sys.executable).with_name("agtmux-mcp")
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}


class Bridge:
    """One, and the milliseconds until it told which tools there are."""

    def __init__(self, socket: str, env: dict[str, str]) -> None:
        began = time.perf_counter()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([COMMAND, "--socket", socket], env=env, **pipes)  # type: ignore[call-overload]
        self.ask("initialize", GREETING)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self.ask("tools/list", {})["tools"]
        self.started = (time.perf_counter() - began) * 1e3

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=10)

    def ask(self, method: str, params: object) -> Any:
        self._write({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())["result"]

    def call(self) -> float:
        began = time.perf_counter()
        assert not self.ask("tools/call", {"name": "list_agents", "arguments": {}})["isError"]
        return (time.perf_counter() - began) * 1e3

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return float(subprocess.check_output(["ps", "-o", "rss=", "-p", str(self.process.pid)])) / 1024
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024

    def _write(self, message: object) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def run() -> list[Row]:
    with bounded(180):
        with running_daemon(PANES) as stage:
            with Bridge(stage.socket, stage.environment) as first:
                # Until the daemon has loaded its server.
                first.call()
            starts: list[float] = []
            for _ in range(STARTS):
                with Bridge(stage.socket, stage.environment) as bridge:
                    starts.append(bridge.started)
            with Bridge(stage.socket, stage.environment) as bridge:
                calls = [bridge.call() for _ in range(CALLS)]
                memory = bridge.megabytes
        with own_folder() as folder:
            alone: list[float] = []
            # One more, that has everything compiled.
            for _ in range(STARTS + 1):
                with Bridge(str(folder / "nobody.sock"), environment(folder)) as bridge:
                    alone.append(bridge.started)
            del alone[0]
    p95, worst = _p95(starts), max(starts)
    return [
        (
            "bridge: start → tools/list, p95",
            f"{p95:.0f} ms (median {statistics.median(starts):.0f}, worst {worst:.0f})",
            f"≤ {BUDGET_START:.0f} ms",
            p95 <= BUDGET_START,
        ),
        (
            "bridge: the same of a daemon's first",
            f"{first.started:.0f} ms",
            f"≤ {BUDGET_START:.0f} ms",
            first.started <= BUDGET_START,
        ),
        (
            "bridge: start → tools/list without a daemon, p95",
            f"{_p95(alone):.0f} ms",
            f"≤ {BUDGET_START:.0f} ms",
            _p95(alone) <= BUDGET_START,
        ),
        (
            f"bridge: list_agents of {PANES}, p95",
            f"{_p95(calls):.1f} ms (median {statistics.median(calls):.1f})",
            f"≤ {BUDGET_CALL:.0f} ms",
            _p95(calls) <= BUDGET_CALL,
        ),
        ("bridge: memory, at most", f"{memory:.1f} MB", f"≤ {BUDGET_MEMORY:.0f} MB", memory <= BUDGET_MEMORY),
    ]


def _p95(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1]


if __name__ == "__main__":
    print_rows(run())
