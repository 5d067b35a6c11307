"""Messages that are accepted: on the disk, in their receiver's bag, and told to their sender.

orchestrator: throughput, latency.
"""

from __future__ import annotations

import json
import selectors
import socket
import sqlite3
import statistics
import time
from contextlib import closing

from stage import Row, Stage, bounded, daemon_in, environment, own_folder, tmux_server

PANES = 20
SENDERS = 8
SECONDS = 6.0
BUDGET_RATE = 1_000
BUDGET_P50 = 10.0
BUDGET_P99 = 50.0
# A bench writes more than agents may.
_SETTINGS = "[messages]\nper_pair = 1000000\nper_sender = 1000000\nwaiting = 1000000\n"


def run() -> list[Row]:
    with bounded(120), own_folder() as folder:
        env = environment(folder)
        (folder / "config").mkdir()
        (folder / "config" / "config.toml").write_text(_SETTINGS)
        with tmux_server(env) as server:
            server.add_panes(PANES)
            with daemon_in(folder, env, PANES) as stage:
                return _measure(stage)


def _measure(stage: Stage) -> list[Row]:
    names = [item["runtime_id"] for item in stage.client.get("/v1/panes")["items"]]
    took: list[float] = []
    sent = 0
    waiting = selectors.DefaultSelector()

    def ask(connection: socket.socket) -> float:
        nonlocal sent
        sent += 1
        content = {"to": names[sent % len(names)], "content": f"message {sent}: the tests pass on main again"}
        body = json.dumps(content).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        began = time.perf_counter()
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        return began

    for _ in range(SENDERS):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(stage.socket)
        waiting.register(connection, selectors.EVENT_READ, [ask(connection), bytearray()])
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for key, _ in waiting.select():
            connection = key.fileobj  # type: ignore[assignment]
            key.data[1] += connection.recv(65_536)
            head, found, body = bytes(key.data[1]).partition(b"\r\n\r\n")
            if not found or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
                continue
            assert b" 200 " in head.split(b"\r\n")[0] + b" ", head + body
            took.append((time.perf_counter() - key.data[0]) * 1e3)
            key.data[1].clear()
            key.data[0] = ask(connection)
    seconds = time.perf_counter() - began
    for key in list(waiting.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    with closing(sqlite3.connect(stage.folder / "state" / "agtmux.db")) as database:
        kept = database.execute("SELECT count(*) FROM messages").fetchone()[0]
    if kept < len(took):
        raise AssertionError(f"{len(took)} messages were accepted and {kept} are in the database")
    rate = len(took) / seconds
    cuts = statistics.quantiles(took, n=100)
    about = f"{SENDERS} senders"
    return [
        (f"durable messages, {about}", f"{rate:,.0f}/s", f"≥ {BUDGET_RATE:,}/s", rate >= BUDGET_RATE),
        (f"message accepted, {about}, p50", f"{cuts[49]:.1f} ms", f"≤ {BUDGET_P50:.0f} ms", cuts[49] <= BUDGET_P50),
        (f"message accepted, {about}, p99", f"{cuts[98]:.1f} ms", f"≤ {BUDGET_P99:.0f} ms", cuts[98] <= BUDGET_P99),
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
