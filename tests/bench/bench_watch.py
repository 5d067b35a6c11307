"""How soon an event that a hook hands over is visible to the last of fifty who watch, and what they cost."""

from __future__ import annotations

import json
import random
import selectors
import socket
import time
import uuid

from stage import Duration, Row, Stage, Stopwatch, bounded, print_rows, row_of, running_daemon, usage

PANES = 100
WATCHERS = 50
EVENTS = 200
# Far enough apart that each is news by itself.
PAUSES = (0.02, 0.06)
BUDGET = 50.0
_PATIENCE = 10.0


def run() -> list[Row]:
    with bounded(180), running_daemon(PANES) as stage:
        alone = _measured(stage, 1)
        many = _measured(stage, WATCHERS)
    ratio = many[1] / alone[1]
    return [
        row_of(f"hook → the last of {WATCHERS} watchers, {PANES} panes", many[0], 0.95, BUDGET),
        row_of(f"hook → 1 watcher, {PANES} panes", alone[0], 0.95, BUDGET),
        (
            f"daemon's time per event, {WATCHERS} watchers beside 1",
            f"{ratio:.1f} × ({many[1] * 1e3:.1f} / {alone[1] * 1e3:.1f} ms)",
            "told only",
            True,
        ),
    ]


def _measured(stage: Stage, watchers: int) -> tuple[list[Duration], float]:
    """From the sending of each event until all have it, and the daemon's seconds per event."""
    waiting = selectors.DefaultSelector()
    for _ in range(watchers):
        connection = _connected(stage.socket)
        connection.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: a\r\n\r\n")
        waiting.register(connection, selectors.EVENT_READ, bytearray())
    _until_all_have(waiting, b'"type":"snapshot"')
    chance = random.Random(7)
    latencies = []
    with _connected(stage.socket) as hook:
        before = usage(stage.pid)
        for number in range(EVENTS):
            time.sleep(chance.uniform(*PAUSES))
            word = f"question-{watchers}-{number}-"
            watch = Stopwatch(stage.pid)
            hook.sendall(_request(chance.choice(stage.panes), word))
            _until_all_have(waiting, word.encode())
            latencies.append(watch.read())
            hook.recv(65_536)
        used = usage(stage.pid).since(before).own
    for key in list(waiting.get_map().values()):
        waiting.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]
    return latencies, used / EVENTS


def _until_all_have(waiting: selectors.BaseSelector, word: bytes) -> None:
    lacking = len(waiting.get_map())
    deadline = time.monotonic() + _PATIENCE
    while lacking:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{lacking} watchers were not told")
        for key, _ in waiting.select(1.0):
            key.data.extend(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]
            if word in key.data:
                key.data.clear()
                lacking -= 1


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def _request(pane: str, word: str) -> bytes:
    event_id = uuid.uuid4().hex
    event = {
        "event_id": event_id,
        "event_type": "state.waiting_input",
        "source": "hook",
        "dedupe_key": event_id,
        "event_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "target_id": "host",
        "pane_id": pane,
        "raw_payload": {"attention": {"kind": "question", "summary": word}},
    }
    content = json.dumps(event).encode()
    return b"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(content) + content


if __name__ == "__main__":
    print_rows(run())
