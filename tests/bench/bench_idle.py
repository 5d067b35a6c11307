"""What a hundred idle agents cost: the daemon's processor time, the processes it starts, its memory. Linux only."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

from stage import Row, Usage, bounded, daemon_in, environment, own_folder, print_rows, settle, tmux_server, usage

PANES = 100
WINDOW = 60.0
PROCESSOR_BUDGET = 1.0
PROCESS_BUDGET = 12
MEMORY_BUDGET = 80

_CALL = re.compile(r"(\d+) +([\d.]+) (.*)")
_UNFINISHED = "<unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_EXECUTED = re.compile(r'execve(?:at)?\(.*?"([^"]*)".* = 0$')
_FORKED = re.compile(r"(?:v?fork|clone3?)\(.* = [1-9]\d*$")


def run() -> list[Row]:
    with bounded(180), own_folder() as folder:
        env = environment(folder)
        with tmux_server(env) as server:
            server.add_panes(PANES)
            assert server.pid is not None
            with daemon_in(folder, env, PANES) as stage:
                settle(stage.client)
                daemon, tmux = _over_a_window(stage.pid, server.pid)
                memory = _resident(stage.pid)
            # Then another one under a tracer, whose work must not count as the daemon's.
            trace = folder / "trace"
            with daemon_in(folder, env, PANES, under=_tracer(trace)) as stage:
                settle(stage.client)
                began = time.time()
                time.sleep(WINDOW)
                ended = time.time()
            started, executed = _started(trace, began, ended)
    share = daemon.whole / WINDOW * 100
    parts = f"daemon {_percent(daemon.own)}, what it starts {_percent(daemon.started)}; tmux server {_percent(tmux)}"
    names = ", ".join(f"{count} × {name}" for name, count in executed.most_common(3))
    what = f"{PANES} idle agent panes"
    return [
        (
            f"{what}, processor",
            f"{share:.2f} % of a core ({parts})",
            f"< {PROCESSOR_BUDGET:.0f} %",
            share < PROCESSOR_BUDGET,
        ),
        (
            f"{what}, processes started",
            f"{started} a minute ({names or 'none'})",
            f"≤ {PROCESS_BUDGET}",
            started <= PROCESS_BUDGET,
        ),
        (f"{what}, daemon's memory", f"{memory:.0f} MB", f"≤ {MEMORY_BUDGET} MB", memory <= MEMORY_BUDGET),
    ]


def _percent(seconds: float) -> str:
    return f"{seconds / WINDOW * 100:.2f}"


def _over_a_window(daemon: int, tmux: int) -> tuple[Usage, float]:
    before = usage(daemon), usage(tmux)
    time.sleep(WINDOW)
    # The panes' own processes are below the tmux server and none of its cost.
    return usage(daemon).since(before[0]), usage(tmux).since(before[1]).own


def _resident(pid: int) -> float:
    """In millions of bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def _tracer(trace: Path) -> tuple[str, ...]:
    """From the start, and not attached later: a kernel may refuse that, and what runs by then would be missed."""
    calls = "trace=fork,vfork,clone,clone3,execve,execveat"
    return ("strace", "-f", "--seccomp-bpf", "-qq", "-ttt", "-e", calls, "-e", "signal=none", "-o", str(trace))


def _started(trace: Path, began: float, ended: float) -> tuple[int, Counter[str]]:
    """How many processes were started in that time, and what was run in them; threads are none."""
    started = 0
    executed: Counter[str] = Counter()
    unfinished: dict[str, str] = {}
    for line in trace.read_text("utf-8", "replace").splitlines():
        found = _CALL.fullmatch(line)
        if found is None:
            continue
        caller, at, call = found[1], float(found[2]), found[3]
        if call.endswith(_UNFINISHED):
            unfinished[caller] = call.removesuffix(_UNFINISHED)
            continue
        if resumed := _RESUMED.match(call):
            call = unfinished.pop(caller, "") + call[resumed.end() :]
        if not began <= at < ended:
            continue
        if _FORKED.match(call) and "CLONE_THREAD" not in call:
            started += 1
        elif program := _EXECUTED.match(call):
            executed[Path(program[1]).name] += 1
    return started, executed


if __name__ == "__main__":
    print_rows(run())
