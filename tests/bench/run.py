"""Runs every benchmark in this folder and prints one table. Exit status 1 if a budget is not kept or a row is missing.

A benchmark is a module `bench_*.py` with `run()`, which returns rows of (what, measured, budget, kept). Names on
the command line choose some: `run.py hook cli`. One that fails has a row that says why, and the others are measured.
Below the table stand the rows that were missed, how long it took, and how busy other programs kept the machine.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import stage

Row = tuple[str, str, str, bool]


def main(wanted: list[str]) -> int:
    folder = Path(__file__).parent
    known = sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))
    rows: list[Row] = []
    seconds: dict[str, float] = {}
    is_over = False
    try:
        for name in wanted or known:
            began = time.monotonic()
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            found = measured(name, lambda name=name: importlib.import_module(f"bench_{name}").run())
            seconds[name] = time.monotonic() - began
            rows += found
            missed = sum(not row[3] for row in found)
            print(f"  {seconds[name]:.0f} s, {len(found)} rows, {missed} missed", file=sys.stderr, flush=True)
        is_over = True
    finally:
        # Also after Ctrl-C: what has been measured took minutes.
        print("\n".join([*table(rows), "", *summary(rows, seconds, is_over)]), flush=True)
    return 0 if all(row[3] for row in rows) else 1


def measured(name: str, run: Callable[[], list[Row]]) -> list[Row]:
    """The rows of a benchmark, or the one that says why there are none."""
    try:
        rows = run()
    except (Exception, stage.TooLongError) as error:
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return [(name, f"not measured: {reason}", "", False)]
    return rows or [(name, "not measured: it has no rows", "", False)]


def table(rows: list[Row]) -> list[str]:
    # An error may be a page long, and the table is for what was measured.
    widths = [max((len(row[column]) for row in rows if row[2]), default=0) for column in range(3)]
    return [
        f"{what:<{widths[0]}}  {value:<{widths[1]}}  {budget:<{widths[2]}}  {'ok' if kept else 'MISSED'}"
        for what, value, budget, kept in rows
    ]


def summary(rows: list[Row], seconds: dict[str, float], is_over: bool) -> list[str]:
    missed = [row[0] for row in rows if not row[3]]
    kept = f"{len(rows) - len(missed)} of {len(rows)} rows kept"
    longest = ", ".join(f"{name} {seconds[name]:.0f}" for name in sorted(seconds, key=lambda each: -seconds[each])[:3])
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return [
        *(f"MISSED: {what}" for what in missed),
        f"{kept}; {len(seconds)} benchmarks in {sum(seconds.values()):.0f} s (longest: {longest or 'none'})",
        f"load {load} on {os.cpu_count()} processors",
        *([] if is_over else ["ended early: the benchmarks after these were not measured"]),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
