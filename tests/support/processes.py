"""The processes of this machine, as the system lists them, and signals to some of them by process id."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    parent: int
    state: str
    name: str


def processes() -> dict[int, Process]:
    """All that live, by process id. A zombie does not."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        # The name stands in brackets and may hold any character, brackets too.
        start, _, rest = read_text(f"{entry}/stat").rpartition(") ")
        if rest:
            found[int(entry.name)] = Process(int(rest.split()[1]), rest[0], start.partition("(")[2])
    if not found:
        listing = subprocess.run(["ps", "-axo", "pid=,ppid=,stat=,comm="], capture_output=True, text=True, check=True)
        for pid, parent, state, name in (line.split(maxsplit=3) for line in listing.stdout.splitlines()):
            found[int(pid)] = Process(int(parent), state[0], Path(name).name)
    return {pid: process for pid, process in found.items() if process.state not in "ZX"}


def with_descendants(pids: set[int], table: dict[int, Process]) -> set[int]:
    found: set[int] = set()
    while pids:
        found |= pids
        pids = {pid for pid, process in table.items() if process.parent in pids} - found
    return found & table.keys()


def read_text(path: str) -> str:
    """Empty when its process has just ended or is another user's."""
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def send(number: int, pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
