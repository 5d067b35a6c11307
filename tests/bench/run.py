"""Runs every benchmark in this folder and prints one table. Exit status 1 if a budget is not kept.

A benchmark is a module `bench_*.py` with `run()`, which returns rows of (what, measured, budget, kept). Names on
the command line choose some: `run.py hook cli`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(wanted: list[str]) -> int:
    folder = Path(__file__).parent
    sys.path.insert(0, str(folder))
    names = [f"bench_{name}" for name in wanted] or sorted(path.stem for path in folder.glob("bench_*.py"))
    rows: list[tuple[str, str, str, bool]] = []
    for name in names:
        print(f"measuring {name.removeprefix('bench_')} …", file=sys.stderr)
        rows += importlib.import_module(name).run()
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for what, measured, budget, kept in rows:
        print(f"{what:<{widths[0]}}  {measured:<{widths[1]}}  {budget:<{widths[2]}}  {'ok' if kept else 'MISSED'}")
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
