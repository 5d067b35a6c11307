"""How soon the board is there, how soon a hundred of them have a change, and what it costs while nobody looks."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import selectors
import socket
import sys
import time
from pathlib import Path

from bench_watch import _request, _until_all_have
from playwright.sync_api import sync_playwright
from stage import Duration, Row, Stage, Stopwatch, bounded, print_rows, row_of, running_daemon, usage

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from board.browser import program

PANES = 100
CLIENTS = 100
EVENTS = 100
VISITS = 5
PAUSES = (0.05, 0.15)
PAINT_BUDGET = 1_000.0
CHANGE_BUDGET = 200.0
_STILL = 3.0


def run() -> list[Row]:
    with bounded(180), running_daemon(PANES) as stage:
        before = _resident(stage.pid)
        opened = stage.client.post("/v1/board", {"action": "open", "port": 0, "token_file": f"{stage.folder}/token"})
        token = (stage.folder / "token").read_text().strip()
        port = int(opened["url"].rpartition(":")[2].strip("/"))
        after = _resident(stage.pid)
        changes = _changes(stage, port, token)
        paints, whole = _paints(stage)
        idle = usage(stage.pid)
        time.sleep(_STILL)
        idle_share = usage(stage.pid).since(idle).own / _STILL * 100
    return [
        (
            f"board, first paint, {PANES} panes, the slowest of {VISITS}",
            f"{max(paints):.0f} ms (every agent shown: {max(whole):.0f})",
            f"≤ {PAINT_BUDGET:.0f} ms",
            max(whole) <= PAINT_BUDGET,
        ),
        row_of(f"board, hook → the last of {CLIENTS} pages", changes, 0.95, CHANGE_BUDGET),
        (
            "board, open and nobody there",
            f"{after - before:+.1f} MB, {idle_share:.1f} % of a core",
            "told only",
            True,
        ),
    ]


def _changes(stage: Stage, port: int, token: str) -> list[Duration]:
    """From the sending of each event until all pages have it."""
    waiting = selectors.DefaultSelector()
    for _ in range(CLIENTS):
        waiting.register(_subscribed(port, token), selectors.EVENT_READ, bytearray())
    _until_all_have(waiting, b'"type":"snapshot"')
    chance = random.Random(7)
    latencies = []
    with socket.socket(socket.AF_UNIX) as hook:
        hook.connect(stage.socket)
        for number in range(EVENTS):
            time.sleep(chance.uniform(*PAUSES))
            word = f"question-{number}-"
            watch = Stopwatch(stage.pid)
            hook.sendall(_request(chance.choice(stage.panes), word))
            _until_all_have(waiting, word.encode())
            latencies.append(watch.read())
            hook.recv(65_536)
    for key in list(waiting.get_map().values()):
        waiting.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]
    return latencies


def _subscribed(port: int, token: str) -> socket.socket:
    """A WebSocket by hand: a hundred clients of a library would be what is measured."""
    connection = socket.create_connection(("127.0.0.1", port))
    words = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "agtmux.live.v1",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Authorization": f"Bearer {token}",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in words.items())
    connection.sendall(f"GET /v1/live HTTP/1.1\r\n{head}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4_096)
    assert answer.startswith(b"HTTP/1.1 101"), answer
    wish = json.dumps({"type": "subscribe", "id": "x", "scope": "panes"}).encode()
    # Masked, with a mask of zeros.
    connection.sendall(bytes((0x81, 0x80 | len(wish), 0, 0, 0, 0)) + wish)
    return connection


_SHOWN = """panes => new Promise((resolve) => {
    const look = () => {
        if (document.querySelectorAll(".row").length < panes) return requestAnimationFrame(look);
        const paint = performance.getEntriesByName("first-contentful-paint")[0];
        resolve([paint.startTime, performance.now()]);
    };
    look();
})"""


def _paints(stage: Stage) -> tuple[list[float], list[float]]:
    """Milliseconds from the beginning of a visit to the first paint, and until every agent is shown."""
    paints, whole = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox", "--disable-gpu"])
        try:
            for _ in range(VISITS):
                # A browser that has never been here before.
                context = browser.new_context()
                page = context.new_page()
                page.goto(stage.client.post("/v1/board", {"action": "open"})["login_url"], wait_until="commit")
                first, shown = page.evaluate(_SHOWN, PANES)
                paints.append(first)
                whole.append(shown)
                context.close()
        finally:
            browser.close()
    return paints, whole


def _resident(pid: int) -> float:
    """Resident, in millions of bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    print_rows(run())
