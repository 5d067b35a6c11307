"""Conversations: words looked for among many messages, and a long transcript that is followed while it grows."""

from __future__ import annotations

import json
import statistics
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stage import Row, Stage, TmuxServer, bounded, daemon_in, environment, own_folder, tmux_server, usage, wait_until

MESSAGES = 10_000
LARGE = 100_000_000
SECONDS = 15.0
# Entries a second that a busy agent writes, with what its tools have said.
RATE = 5
BUDGET_SEARCH = 50.0
BUDGET_FOLLOW = 2.0
WORDS = ("the", "label", "printer", "parcel", "weight", "main", "merge", "fails", "because", "colour", "front")


def run() -> list[Row]:
    return [*_searched(), *_followed()]


def _searched() -> list[Row]:
    with bounded(300), own_folder() as folder:
        env = environment(folder) | {"HOME": str(folder)}
        with tmux_server(env) as server:
            path = _session(server, folder)
            with path.open("w") as file:
                for number in range(MESSAGES):
                    text = " ".join(WORDS[(number * 7 + each * each) % len(WORDS)] for each in range(60))
                    file.write(_entry("user" if number % 2 else "assistant", f"{text} needle{number}") + "\n")
            with daemon_in(folder, env, 1) as stage:
                _stir(stage)
                wait_until(lambda: _count(stage) == MESSAGES, "all of it in the archive", 120)
                took = []
                asked = ["needle4711", "printer colour", "front needle99", "nowhere at all", "bel prin"]
                for number in range(50):
                    began = time.perf_counter()
                    stage.client.get(f"/v1/conversations/messages?search={quote(asked[number % len(asked)])}")
                    took.append((time.perf_counter() - began) * 1000)
        p95 = statistics.quantiles(took, n=20)[-1]
        kept = p95 <= BUDGET_SEARCH
        return [(f"words among {MESSAGES:,} messages, p95", f"{p95:.1f} ms", f"<= {BUDGET_SEARCH:.0f} ms", kept)]


def _followed() -> list[Row]:
    with bounded(300), own_folder() as folder:
        env = environment(folder) | {"HOME": str(folder)}
        with tmux_server(env) as server:
            path = _session(server, folder)
            filler = _entry("tool", "x" * 20_000) + "\n"
            with path.open("w") as file:
                for _ in range(LARGE // len(filler)):
                    file.write(filler)
                file.write(_entry("user", "first") + "\n")
            with daemon_in(folder, env, 1) as stage:
                _stir(stage)
                wait_until(lambda: _count(stage) == 1, "its end in the archive", 60)
                idle = _share(stage, path, 0)
                busy = _share(stage, path, RATE)
                wait_until(lambda: _count(stage) == 1 + RATE * int(SECONDS), "all of it in the archive", 30)
        share = max(busy - idle, 0.0)
        text = f"{share:.2f} % (with the looking {busy:.2f} %)"
        return [
            ("a transcript of 100 MB, followed", text, f"<= {BUDGET_FOLLOW:.0f} % of a core", share <= BUDGET_FOLLOW)
        ]


def _share(stage: Stage, path: Path, rate: int) -> float:
    """Of a core that the daemon takes while so many entries a second are written."""
    before, began = usage(stage.pid), time.perf_counter()
    for _ in range(int(SECONDS)):
        for _ in range(rate):
            with path.open("a") as file:
                file.write(_entry("assistant", f"word {uuid.uuid4().hex} " * 20) + "\n")
            time.sleep(1 / rate)
        if not rate:
            time.sleep(1)
    return usage(stage.pid).since(before).whole / (time.perf_counter() - began) * 100


def _session(server: TmuxServer, folder: Path) -> Path:
    """A pane whose process has a session, and the file of that."""
    server.add_panes(1)
    pid = server.run("display-message", "-p", "-t", server.panes()[0], "#{pane_pid}").strip()
    session = str(uuid.uuid4())
    home = folder / ".claude"
    (home / "sessions").mkdir(parents=True)
    (home / "projects" / "-work").mkdir(parents=True)
    (home / "sessions" / f"{pid}.json").write_text(json.dumps({"sessionId": session, "status": "idle"}))
    return home / "projects" / "-work" / f"{session}.jsonl"


def _entry(role: str, text: str) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    content: Any = [{"type": "text", "text": text}]
    if role == "tool":
        role, content = "user", [{"type": "tool_result", "content": text}]
    return json.dumps(
        {"type": role, "uuid": str(uuid.uuid4()), "timestamp": stamp, "message": {"role": role, "content": content}}
    )


def _stir(stage: Stage) -> None:
    """A state that changes, which is when its file is looked for."""
    (item,) = stage.client.get("/v1/panes")["items"]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    event = {"event_id": uuid.uuid4().hex, "event_type": "state.running", "source": "hook", "event_time": now}
    stage.client.post("/v1/events", event | {"dedupe_key": event["event_id"], "runtime_id": item["runtime_id"]})


def _count(stage: Stage) -> int:
    items = stage.client.get("/v1/conversations")["items"]
    return sum(item["messages"] for item in items)
