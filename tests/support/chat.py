"""A client of a chat socket, an agent that does what it is told in place of the Agent SDK, and a session around it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agtmux.chat.door import Door
from agtmux.chat.engine import Ask, Request
from agtmux.chat.journal import Journal
from agtmux.chat.protocol import Told
from agtmux.chat.reporter import Reporter
from agtmux.chat.session import Session
from agtmux.domain.errors import AgtmuxError, ErrorCode

LIMIT = 20.0
ID = "11111111-2222-4333-8444-555555555555"
DONE: Told = {"type": "done", "outcome": "completed", "usage": {"input_tokens": 3, "output_tokens": 4}}


class ChatClient:
    """Lines on a socket, as any program would read and write them."""

    def __init__(self, path: Path | str, limit: float = LIMIT) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(limit)
        self.socket.connect(str(path))
        self._file = self.socket.makefile("rb")
        self.lines: list[dict[str, Any]] = []
        self.init = self.next()
        assert self.init["type"] == "init", self.init

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, kind: str, **words: Any) -> None:
        self.raw(json.dumps({"type": kind, **words}).encode() + b"\n")

    def next(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise EOFError("the session has closed the connection")
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def until(self, *kinds: str) -> dict[str, Any]:
        """The next line of one of these types; what came before is in `lines`."""
        while (line := self.next())["type"] not in kinds:
            pass
        return line

    def kinds(self) -> list[str]:
        return [line["type"] for line in self.lines]

    def text(self) -> str:
        return "".join(line["text"] for line in self.lines if line["type"] == "text_delta")


class PuppetEngine:
    """An agent that does what each message says in its first word, and no more."""

    def __init__(self, ask: Ask, has_spoken: bool) -> None:
        self._ask = ask
        self.has_spoken = has_spoken
        self._told: asyncio.Queue[Told | AgtmuxError] = asyncio.Queue()
        self._turn: asyncio.Task[None] | None = None
        self.closed = 0

    async def connect(self) -> Told:
        return {"agent_type": "claude", "agent_version": "2.1.325"}

    async def say(self, text: str) -> None:
        self._turn = asyncio.create_task(self._do(*text.partition(" ")[::2]))

    async def events(self) -> AsyncIterator[Told]:
        while True:
            told = await self._told.get()
            if isinstance(told, AgtmuxError):
                raise told
            yield told

    async def interrupt(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        self._told.put_nowait(DONE | {"outcome": "aborted"})

    async def close(self) -> None:
        self.closed += 1
        if self._turn is not None:
            self._turn.cancel()

    def tell(self, told: Told) -> None:
        self._told.put_nowait(told)

    async def _do(self, word: str, rest: str) -> None:
        match word:
            case "say":
                for piece in rest.split(" "):
                    self.tell({"type": "text_delta", "text": f"{piece} "})
            case "flood":
                for _ in range(int(rest)):
                    self.tell({"type": "text_delta", "text": "x" * 10_000})
                    await asyncio.sleep(0)
            case "ask":
                await self._asked(Request("r1", "Bash", {"command": rest}))
            case "twice":
                await asyncio.gather(
                    *(self._asked(Request(f"r{n}", "Bash", {"command": f"{rest} {n}"})) for n in (1, 2))
                )
            case "question":
                asked = [{"question": rest, "options": [{"label": "Red"}, {"label": "Blue"}]}]
                await self._asked(Request("q1", "AskUserQuestion", {"questions": asked}, "question"))
            case "wait":
                self.tell({"type": "text_delta", "text": "waiting"})
                await asyncio.Event().wait()
            case "crash":
                self._told.put_nowait(AgtmuxError(ErrorCode.AGENT_FAILED, rest))
                return
            case "fail":
                self.tell({"type": "error", "code": "E_AGENT_FAILED", "message": rest})
                self.tell(DONE | {"outcome": "error"})
                return
        self.tell(DONE)

    async def _asked(self, request: Request) -> None:
        self.tell({"type": "tool_use", "request_id": request.request_id, "tool": request.tool, "input": request.input})
        decision = await self._ask(request)
        output = decision.reason if not decision.allow else json.dumps(decision.answers) if decision.answers else "ran"
        told = {"request_id": request.request_id, "output": output, "is_error": not decision.allow}
        self.tell({"type": "tool_result", **told})


class Sitting:
    """A session in this process, with a puppet in it and its socket open."""

    def __init__(self, folder: Path, *, answer_limit: float = LIMIT, journal: Journal | None = None) -> None:
        self.path = folder / "chat.sock"
        self.engines: list[PuppetEngine] = []
        self.door: Door | None = None
        self.session = Session(ID, str(folder), self._engine, journal or Journal(), answer_limit)

    def _engine(self, ask: Ask, has_spoken: bool) -> PuppetEngine:
        self.engines.append(PuppetEngine(ask, has_spoken))
        return self.engines[-1]


@contextlib.asynccontextmanager
async def sitting(
    folder: Path,
    *,
    answer_limit: float = LIMIT,
    journal: Journal | None = None,
    stall_limit: float = LIMIT,
    daemon: Path | None = None,
) -> AsyncIterator[Sitting]:
    made = Sitting(folder, answer_limit=answer_limit, journal=journal)
    made.door = door = Door(made.session, str(made.path), stall_limit)
    await door.open()
    tasks = [asyncio.create_task(made.session.run())]
    reporter = Reporter(made.session, str(made.path), str(daemon)) if daemon is not None else None
    if reporter is not None:
        tasks.append(asyncio.create_task(reporter.run()))
    try:
        yield made
    finally:
        if reporter is not None:
            await reporter.settled()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await made.session.close()
        await door.close("the test is over")
