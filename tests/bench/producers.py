"""Fifty producers in one process: each sends an event, waits for its acknowledgement, sends the next."""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
import uuid

STATES = ("running", "waiting_approval", "completed", "idle")


def body(number: int, pane: str, per_request: int, run: str) -> bytes:
    """Events as a wrapper would send them, each with its own identity and a payload of a usual size."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    events = [
        {
            "event_id": f"{run}-{number}-{index}",
            "event_type": f"state.{STATES[(number + index) % len(STATES)]}",
            "source": "hook",
            "dedupe_key": f"{run}-{number}-{index}",
            "event_time": now,
            "target_id": "host",
            "pane_id": pane,
            "raw_payload": {
                "session_id": "5f1d3c52-8a2e-4a5e-9d9c-1f3a3c9d7e11",
                "hook_event_name": "PreToolUse",
                "cwd": "/home/dev/project",
                "tool_name": "Bash",
                "tool_input": {"command": "make test", "description": "Run the tests and report what failed"},
            },
        }
        for index in range(per_request)
    ]
    return json.dumps(events[0] if per_request == 1 else {"events": events}).encode()


def main(path: str, panes: list[str], producers: int, per_request: int, seconds: float) -> int:
    run = uuid.uuid4().hex[:8]
    waiting = selectors.DefaultSelector()
    sent = 0

    def request() -> bytes:
        nonlocal sent
        sent += 1
        content = body(sent, panes[sent % len(panes)], per_request, run)
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
        )
        return head.encode() + b"\r\n\r\n" + content

    for _ in range(producers):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        connection.sendall(request())
        waiting.register(connection, selectors.EVENT_READ, bytearray())
    acknowledged = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        for key, _ in waiting.select(1.0):
            buffer = key.data
            buffer += key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
            head, found, rest = buffer.partition(b"\r\n\r\n")
            if not found:
                continue
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if len(rest) < length:
                continue
            if not head.startswith(b"HTTP/1.1 200") or b'"refused"' in rest:
                raise SystemExit(f"not acknowledged: {bytes(buffer[:500])!r}")
            acknowledged += per_request
            del buffer[:]
            key.fileobj.sendall(request())  # type: ignore[union-attr]
    print(json.dumps({"events": acknowledged, "seconds": elapsed, "run": run}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])))
