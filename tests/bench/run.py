"""Runs every benchmark in this folder and prints one table. Exit status 1 if a budget is not kept or a row is missing.

A benchmark is a module `bench_*.py` with `run()`, which returns rows of (what, measured, budget, kept). Names on
the command line choose some: `run.py hook cli`. One that fails has a row that says why, and the others are measured.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import stage

Row = tuple[str, str, str, bool]


def main(wanted: list[str]) -> int:
    folder = Path(__file__).parent
    names = wanted or sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))
    rows: list[Row] = []
    try:
        for name in names:
            print(f"measuring {name} …", file=sys.stderr)
            rows += measured(name, lambda name=name: importlib.import_module(f"bench_{name}").run())
    finally:
        # Also after Ctrl-C: what has been measured took minutes.
        print("\n".join(table(rows)), flush=True)
    return 0 if all(row[3] for row in rows) else 1


def measured(name: str, run: Callable[[], list[Row]]) -> list[Row]:
    """The rows of a benchmark, or the one that says why there are none."""
    try:
        return run()
    except (Exception, stage.TooLongError) as error:
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return [(name, f"not measured: {reason}", "", False)]


def table(rows: list[Row]) -> list[str]:
    # An error may be a page long, and the table is for what was measured.
    widths = [max((len(row[column]) for row in rows if row[2]), default=0) for column in range(3)]
    return [
        f"{what:<{widths[0]}}  {value:<{widths[1]}}  {budget:<{widths[2]}}  {'ok' if kept else 'MISSED'}"
        for what, value, budget, kept in rows
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
