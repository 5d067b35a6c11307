"""Real chat sessions, each with the real agent in it, against the scripted model, in a home of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from agents import claude_setup
from agents.bench import LIMIT, Stage, new_stage
from agents.install import PINNED, install
from agents.model.server import ModelServer
from support.chat import ChatClient
from support.home import COMMANDS, wait_until

VERSION = PINNED["claude"][-1]


def environment(stage: Stage, env: dict[str, str]) -> dict[str, str]:
    """Nothing of whoever runs the tests but the way to programs."""
    path = f"{stage.folder / 'bin'}:{os.environ['PATH']}"
    return {"HOME": str(stage.home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color", **env}


def processes(stage: Stage) -> set[int]:
    """All that have this stage's home in their environment."""
    mark = f"HOME={stage.home}".encode()
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.add(int(path.parent.name))
    return found


class Session:
    """`agtmux-chat` as a program starts it."""

    def __init__(self, stage: Stage, env: dict[str, str], name: str, *words: str) -> None:
        self.path = stage.folder / f"{name}.sock"
        command = [COMMANDS / "agtmux-chat", "--cwd", stage.project, "--socket", self.path]
        self.errors = (stage.folder / f"{name}.log").open("w+")
        self.process = subprocess.Popen(
            [*command, "--program", stage.executable, *words], env=env, stdout=subprocess.PIPE, stderr=self.errors
        )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise AssertionError(f"no session: {self.log()}")

    def log(self) -> str:
        self.errors.flush()
        return Path(self.errors.name).read_text("utf-8")

    def join(self) -> ChatClient:
        return ChatClient(self.path, LIMIT)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=LIMIT)
        self.errors.close()
        return self.process.returncode


class Chatting:
    """`with Chatting() as here: session = here.start(); client = session.join()`"""

    def __init__(self, version: str = VERSION, wishes: frozenset[str] = frozenset()) -> None:
        self.server = ModelServer(*claude_setup.PROTOCOLS)
        self.server.start()
        self.stage = new_stage(install("claude", version), version, self.server.url, wishes)
        self.env = environment(self.stage, claude_setup.prepare(self.stage).env)
        self._sessions: list[Session] = []

    def start(self, name: str = "chat", *words: str, env: dict[str, str] | None = None) -> Session:
        session = Session(self.stage, self.env | (env or {}), name, *words)
        self._sessions.append(session)
        return session

    def requests(self) -> list[Any]:
        """What the model was asked for, in order."""
        return [exchange.body for exchange in self.server.exchanges if exchange.main]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            with contextlib.suppress(subprocess.TimeoutExpired):
                session.end(signal.SIGKILL)
        reap(self.stage)
        self.server.stop()
        shutil.rmtree(self.stage.folder, ignore_errors=True)


def reap(stage: Stage) -> None:
    """Whatever is left of what was started in there."""
    deadline = time.monotonic() + LIMIT
    while strays := processes(stage):
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"still alive: {strays}"
        time.sleep(0.05)


def all_gone(stage: Stage) -> None:
    wait_until(lambda: not processes(stage), "the end of all that was started", LIMIT)
