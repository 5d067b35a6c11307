"""Events acknowledged durably through POST /v1/events, with fifty producers at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from stage import Row, Stage, running_daemon

PRODUCERS = 50
SECONDS = 6.0
BUDGET = 5_000


def run() -> list[Row]:
    rows = []
    with running_daemon(panes=10) as stage:
        for per_request in (1, 10):
            rows.append(_measure(stage, per_request))
    return rows


def _measure(stage: Stage, per_request: int) -> Row:
    command = [sys.executable, str(Path(__file__).with_name("producers.py")), stage.socket, ",".join(stage.panes)]
    command += [str(PRODUCERS), str(per_request), str(SECONDS)]
    done = json.loads(
        subprocess.run(command, env=stage.environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    rate = done["events"] / done["seconds"]
    with closing(sqlite3.connect(stage.folder / "state" / "agtmux.db")) as database:
        kept = database.execute("SELECT count(*) FROM events WHERE event_id LIKE ?", (done["run"] + "-%",)).fetchone()[
            0
        ]
    if kept < done["events"]:
        raise AssertionError(f"{done['events']} events were acknowledged and {kept} are in the database")
    what = f"durable events, {PRODUCERS} producers, {per_request} a request"
    measured = f"{rate:,.0f}/s ({rate / BUDGET:.2f} × {BUDGET:,})"
    if per_request == 1:
        # Told for comparison: every event pays for a request and an answer of its own, the producers' share included.
        return (what, measured, "told only", True)
    return (what, measured, f"≥ {BUDGET:,}/s", rate >= BUDGET)


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
