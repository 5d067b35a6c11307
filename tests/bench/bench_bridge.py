"""What a bridge costs an agent: until it knows the tools, for each call, and in memory. gwt NFR-001, NFR-002."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from stage import Duration, Row, Stopwatch, bounded, environment, own_folder, print_rows, row_of, running_daemon

PANES = 20
STARTS = 30
CALLS = 300
BUDGET_START = 300.0
BUDGET_CALL = 10.0
BUDGET_MEMORY = 30.0
COMMAND = Path(sys.executable).with_name("agtmux-mcp")
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}


class Bridge:
    """One, and how long it took until it told which tools there are."""

    def __init__(self, socket: str, env: dict[str, str], *daemon: int) -> None:
        """`daemon` is the process that it asks, if there is one."""
        self._daemon = daemon
        watch = Stopwatch(*daemon)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([COMMAND, "--socket", socket], env=env, **pipes)  # type: ignore[call-overload]
        self.ask("initialize", GREETING)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self.ask("tools/list", {})["tools"]
        self.started = watch.read(self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=10)

    def ask(self, method: str, params: object) -> Any:
        self._write({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())["result"]

    def call(self) -> Duration:
        watch = Stopwatch(self.process.pid, *self._daemon)
        assert not self.ask("tools/call", {"name": "list_agents", "arguments": {}})["isError"]
        return watch.read()

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
            with Bridge(stage.socket, stage.environment, stage.pid) as first:
                # Until the daemon has loaded its server.
                first.call()
            starts: list[Duration] = []
            for _ in range(STARTS):
                with Bridge(stage.socket, stage.environment, stage.pid) as bridge:
                    starts.append(bridge.started)
            with Bridge(stage.socket, stage.environment, stage.pid) as bridge:
                calls = [bridge.call() for _ in range(CALLS)]
                memory = bridge.megabytes
        with own_folder() as folder:
            alone: list[Duration] = []
            # One more, that has everything compiled.
            for _ in range(STARTS + 1):
                with Bridge(str(folder / "nobody.sock"), environment(folder)) as bridge:
                    alone.append(bridge.started)
            del alone[0]
    return [
        row_of("bridge: start → tools/list", starts, 0.95, BUDGET_START),
        row_of("bridge: the same of a daemon's first", [first.started], 1.0, BUDGET_START),
        row_of("bridge: start → tools/list without a daemon", alone, 0.95, BUDGET_START),
        row_of(f"bridge: list_agents of {PANES}", calls, 0.95, BUDGET_CALL),
        ("bridge: memory, at most", f"{memory:.1f} MB", f"≤ {BUDGET_MEMORY:.0f} MB", memory <= BUDGET_MEMORY),
    ]


if __name__ == "__main__":
    print_rows(run())
