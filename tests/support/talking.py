"""Transcripts as agents write them, for tests that have no agent: the registry of a process, and a file for its
session."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

from support.home import Home, wait_until


class Talker:
    """A pane that is marked as Claude's, with files as Claude writes them."""

    def __init__(self, home: Home, *, cwd: Path | None = None, config: Path | None = None) -> None:
        self.home = home
        self.config = config or home.folder / ".claude"
        self.cwd = cwd or home.folder
        variable = "" if config is None else f"CLAUDE_CONFIG_DIR={config} "
        self.pane = home.pane(command=f"cd '{self.cwd}' && exec env {variable}sleep 3600")
        self.pid = int(home.tmux("display-message", "-p", "-t", self.pane, "#{pane_pid}"))
        self.session = ""
        self.begin()

    def begin(self, session: str = "") -> Path:
        """Another session, as after /clear; or one that there was before."""
        self.session = session or str(uuid.uuid4())
        folder = self.config / "projects" / "-work"
        folder.mkdir(parents=True, exist_ok=True)
        (self.config / "sessions").mkdir(exist_ok=True)
        note = {"pid": self.pid, "sessionId": self.session, "status": "idle"}
        (self.config / "sessions" / f"{self.pid}.json").write_text(json.dumps(note))
        return self.path

    @property
    def path(self) -> Path:
        return self.config / "projects" / "-work" / f"{self.session}.jsonl"

    def prompt(self, text: str, **fields: Any) -> dict[str, Any]:
        return self.write({"type": "user", "message": {"role": "user", "content": text}, "promptId": "p1"} | fields)

    def answer(self, text: str, **fields: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return self.write({"type": "assistant", "message": {"role": "assistant", "content": content}} | fields)

    def turn(self, number: int) -> None:
        self.prompt(f"prompt {number}")
        self.answer(f"answer {number}")

    def write(self, entry: dict[str, Any]) -> dict[str, Any]:
        entry = {"uuid": str(uuid.uuid4()), "timestamp": stamp(), "isSidechain": False} | entry
        self.append(json.dumps(entry).encode() + b"\n")
        return entry

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def stir(self, state: str = "running") -> None:
        """Its agent does something, which is when its file is looked for."""
        from support.home import event

        self.home.ask("POST", "/v1/events", event(self.pane, f"state.{state}"))

    # What the daemon has of it

    @property
    def ref(self) -> str:
        return str(self.home.panes()[self.pane]["ref"])

    def said(self, query: str = "") -> list[tuple[str, str]]:
        asked = query or f"ref={self.ref}"
        items = self.home.ask("GET", f"/v1/conversations/messages?{asked}&limit=1000").json["items"]
        return [(item["role"], item["content"]) for item in items]

    def hears(self, *texts: str) -> list[tuple[str, str]]:
        """These and nothing else, in their order."""

        def has() -> bool:
            return [text for _, text in self.said()] == list(texts)

        try:
            wait_until(has, f"{texts[-3:]}", 10)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.said()[-6:]}") from None
        return self.said()


def turns(first: int, last: int) -> list[str]:
    return [f"{what} {number}" for number in range(first, last + 1) for what in ("prompt", "answer")]


def stamp(ago: float = 0.0) -> str:
    now = time.time() - ago
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e3):03d}Z"
