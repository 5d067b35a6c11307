"""One conversation: its turns, what it waits for, and who may answer that. It knows no socket and no SDK."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agtmux.chat.engine import Decision, Engine, NewEngine, Request
from agtmux.chat.journal import Journal
from agtmux.chat.protocol import Told, error_told, fitted, tool_line
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.redact import redact_text
from agtmux.domain.states import State

_log = logging.getLogger(__name__)

ANSWER_LIMIT: Final = 300.0
MOST_QUEUED: Final = 16
_MOST_REMEMBERED: Final = 256
# A reply that ends a turn is kept for those who keep conversations.
_MOST_SAID: Final = 1_000_000
_MOST_RECENT: Final = 20_000
_LOOKED_AT: Final = 4_000

# How a turn ended → what the session then is.
_AFTER: Final = {"completed": State.COMPLETED, "aborted": State.IDLE, "error": State.ERROR}


@dataclass(slots=True)
class Pending:
    request: Request
    told: Told
    decided: asyncio.Future[Decision]
    # By whom, once it is decided.
    by: str = ""


class Session:
    def __init__(
        self, session_id: str, cwd: str, new_engine: NewEngine, journal: Journal, answer_limit: float = ANSWER_LIMIT
    ) -> None:
        self.session_id = session_id
        self.cwd = cwd
        self.journal = journal
        self._new_engine = new_engine
        self._answer_limit = answer_limit
        self._engine: Engine | None = None
        self._listening: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._queue: deque[str] = deque()
        self._wake = asyncio.Event()
        self._is_in_turn = False
        self._is_aborting = False
        self._has_spoken = False
        self._outcome: str | None = None
        self._said = ""
        # The last of the conversation, as text.
        self.recent = ""
        self.turn = 0
        self.agent: Told = {}
        self.error = ""
        self.title = ""
        self.pending: OrderedDict[str, Pending] = OrderedDict()
        self._decided: OrderedDict[str, str] = OrderedDict()
        # What runs in the background.
        self._tasks: set[str] = set()
        # Called, without arguments, after whatever changes what the session is.
        self.on_change: list[Callable[[], None]] = []
        # Called with who said what: "user" or "assistant".
        self.on_said: list[Callable[[str, str], None]] = []

    @property
    def state(self) -> State:
        if (asking := self.asking) is not None:
            return State.WAITING_INPUT if asking.kind == "question" else State.WAITING_APPROVAL
        # A turn that has left something running in the background is not over.
        if self._is_in_turn or (self._tasks and self._outcome == "completed"):
            return State.RUNNING
        return State.IDLE if self._outcome is None else _AFTER[self._outcome]

    @property
    def outcome(self) -> str | None:
        """How the last turn ended; None before the first has."""
        return self._outcome

    @property
    def asking(self) -> Request | None:
        """What it has waited for longest."""
        return next(iter(self.pending.values())).request if self.pending else None

    def init(self) -> Told:
        """What a client is told first."""
        return {
            "type": "init",
            "session_id": self.session_id,
            "cwd": self.cwd,
            **self.agent,
            "state": self.state.value,
            "turn": self.turn,
            "first_seq": self.journal.first_seq,
            "last_seq": self.journal.last_seq,
            "pending": [each.told for each in self.pending.values()],
        }

    # What clients ask for. Each raises AgtmuxError if it cannot be.

    def say(self, text: str) -> None:
        if len(self._queue) >= MOST_QUEUED:
            raise AgtmuxError(ErrorCode.LIMIT_RATE, f"{MOST_QUEUED} messages wait already; abort, or wait for `done`")
        self._queue.append(text)
        if self._is_in_turn:
            self.journal.add({"type": "queued", "text": fitted(text)[0]})
        self._wake.set()

    def approve(self, request_id: str, by: str = "client") -> None:
        pending = self._open(request_id)
        if pending.request.kind == "question":
            raise AgtmuxError(ErrorCode.USAGE, "it asks a question; answer it with `answer`, or `deny` it")
        self._decide(pending, Decision(allow=True), by)

    def deny(self, request_id: str, reason: str = "", by: str = "client") -> None:
        self._decide(self._open(request_id), Decision(allow=False, reason=reason), by)

    def answer(self, request_id: str, answers: Any, by: str = "client") -> None:
        pending = self._open(request_id)
        if pending.request.kind != "question":
            raise AgtmuxError(ErrorCode.USAGE, "it asks for approval; `approve` or `deny` it")
        self._decide(pending, Decision(allow=True, answers=_answers(pending.request, answers)), by)

    async def abort(self) -> None:
        if not self._is_in_turn:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "no turn is under way")
        self._is_aborting = True
        # Whoever said it would wait for it.
        while self._queue:
            self.journal.add({"type": "forgotten", "text": fitted(self._queue.popleft())[0]})
        if self._engine is None:
            # It is being started, and then not told.
            return
        try:
            await self._engine.interrupt()
        except AgtmuxError:
            self._is_aborting = False
            raise

    # Its life.

    async def run(self) -> None:
        """Until it is cancelled. The first start is part of it: raises AgtmuxError if that fails."""
        await self._connected()
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._queue and not self._is_in_turn:
                await self._begin(self._queue.popleft())

    async def close(self) -> None:
        for pending in list(self.pending.values()):
            self._decide(pending, Decision(allow=False, reason="the session ends"), "end")
        await self._drop_engine()

    async def _connected(self) -> Engine:
        if self._engine is None:
            # Not beside the last one: both would write to the same conversation.
            async with self._changing:
                engine = self._new_engine(self.ask, self._has_spoken)
                try:
                    self.agent = await engine.connect()
                except BaseException:
                    await engine.close()
                    raise
            self._engine = engine
            self._listening = asyncio.create_task(self._listen(engine), name="listen")
            self.journal.add({"type": "ready", **self.agent})
            self._changed()
        return self._engine

    async def _begin(self, text: str) -> None:
        self._begun(text)
        try:
            was_there, engine = self._engine is not None, await self._connected()
            if self._is_aborting and not was_there:
                self._ended({"type": "done", "outcome": "aborted", "usage": {}})
                return
            await engine.say(text)
            self._has_spoken = True
        except AgtmuxError as error:
            await self._drop_engine()
            self._failed(error)

    def _begun(self, text: str | None) -> None:
        self.turn += 1
        self._is_in_turn = True
        self._is_aborting = False
        self._said = ""
        self.error = ""
        told: Told = {"type": "turn", "turn": self.turn}
        if text is not None:
            told["text"] = fitted(text)[0]
            self._remember(f"\n› {text}\n")
            # Of a secret that is cut off, the rest might no longer look like one.
            self.title = self.title or redact_text(" ".join(text[:_LOOKED_AT].split()))[:120]
            for hear in self.on_said:
                hear("user", text)
        self.journal.add(told)
        self._changed()

    async def _listen(self, engine: Engine) -> None:
        error = AgtmuxError(ErrorCode.AGENT_FAILED, "the agent has ended; the next message starts it again")
        try:
            async for told in engine.events():
                self._take(told)
        except AgtmuxError as failure:
            error = failure
        except Exception as failure:  # Whatever a library raises, the session goes on and says so.
            _log.exception("the agent's events ended")
            error = AgtmuxError(ErrorCode.AGENT_FAILED, f"{type(failure).__name__}: {failure}")
        if self._engine is engine:
            self._engine = self._listening = None
            # First: what is said while it is put away is for the next one, and has not failed.
            self._failed(error)
            async with self._changing:
                await engine.close()

    def _take(self, told: Told) -> None:
        kind = told["type"]
        if kind == "agent":
            self.agent = self.agent | {key: value for key, value in told.items() if key != "type"}
            self.journal.add(told)
            self._changed()
            return
        if kind == "task":
            (self._tasks.add if told["status"] == "running" else self._tasks.discard)(told["task_id"])
            self.journal.add(told)
            self._changed()
            return
        if not self._is_in_turn:
            if kind == "done":
                return
            # Something in the background has woken the agent.
            self._begun(None)
        if kind == "done":
            self._ended(told)
            return
        if kind == "text_delta":
            self._said = (self._said + told["text"])[:_MOST_SAID]
            self._remember(told["text"])
        if kind == "tool_use":
            self._remember(f"\n· {tool_line(told['tool'], told['input'])}\n")
        if kind == "error":
            self.error = told["message"]
        self.journal.add(told)

    def _ended(self, done: Told) -> None:
        outcome = "aborted" if self._is_aborting else done["outcome"]
        # What is still asked is asked by something in the background, which has its own time.
        if self._said.strip():
            for hear in self.on_said:
                hear("assistant", self._said)
        self._is_in_turn = self._is_aborting = False
        self._outcome = outcome
        self.journal.add({**done, "turn": self.turn, "outcome": outcome})
        self._changed()
        self._wake.set()

    def _failed(self, error: AgtmuxError) -> None:
        for pending in list(self.pending.values()):
            self._decide(pending, Decision(allow=False, reason="the agent has ended"), "gone")
        self._tasks.clear()
        self.error = error.message
        self.journal.add(error_told(error))
        if self._is_in_turn:
            self._ended({"type": "done", "outcome": "error", "usage": {}})
        else:
            self._outcome = "error"
            self._changed()

    def _remember(self, text: str) -> None:
        self.recent = (self.recent + text)[-_MOST_RECENT:]

    async def _drop_engine(self) -> None:
        engine, listening, self._engine, self._listening = self._engine, self._listening, None, None
        if engine is not None:
            await engine.close()
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])

    # Requests.

    async def ask(self, request: Request) -> Decision:
        """Asked by the engine. Nobody answers in time: denied. Cancelled: the agent no longer wants to know."""
        if not self._is_in_turn:
            self._begun(None)
        pending = self._asked(request)
        self.pending[pending.told["request_id"]] = pending
        self.journal.add(pending.told)
        self._changed()
        try:
            async with asyncio.timeout(self._answer_limit):
                return await asyncio.shield(pending.decided)
        except TimeoutError:
            if pending.decided.done():
                # In the same moment: who answered was told that it counts.
                return pending.decided.result()
            reason = f"nobody answered within {self._answer_limit:g} seconds"
            decision = Decision(allow=False, reason=reason)
            self._decide(pending, decision, "timeout")
            return decision
        except asyncio.CancelledError:
            if not pending.decided.done():
                # Answered by a hook of the user's, or the turn was broken off.
                self._decide(pending, Decision(allow=False), "gone")
            raise

    def _asked(self, request: Request) -> Pending:
        request_id, number = request.request_id, 1
        while request_id in self.pending or request_id in self._decided:
            number += 1
            request_id = f"{request.request_id}#{number}"
        value, is_cut = fitted(request.input)
        told: Told = {"request_id": request_id, "tool": request.tool}
        if request.kind == "question":
            told = {"type": "question", **told, "questions": value.get("questions", [])}
        else:
            told = {"type": "approval_request", **told, "kind": request.kind, "input": value}
        told |= {"expires_at": time.time() + self._answer_limit}
        if is_cut:
            told["is_cut"] = True
        if request.reason:
            told["reason"] = request.reason
        if request.agent_id:
            told["agent_id"] = request.agent_id
        return Pending(request, told, asyncio.get_running_loop().create_future())

    def _open(self, request_id: str) -> Pending:
        if (pending := self.pending.get(request_id)) is not None:
            return pending
        if (decision := self._decided.get(request_id)) is not None:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"request {request_id[:80]} is answered: {decision}")
        raise AgtmuxError(ErrorCode.NOT_FOUND, f"there is no request {request_id[:80]!r}")

    def _decide(self, pending: Pending, decision: Decision, by: str) -> None:
        request_id = pending.told["request_id"]
        del self.pending[request_id]
        word = "gone" if by == "gone" else ("approved" if decision.allow else "denied")
        if by == "timeout":
            word = "timed_out"
        self._decided[request_id] = word
        while len(self._decided) > _MOST_REMEMBERED:
            self._decided.popitem(last=False)
        pending.by = by
        pending.decided.set_result(decision)
        told: Told = {"type": "answered", "request_id": request_id, "decision": word, "by": by}
        if decision.reason:
            told["reason"] = decision.reason
        self.journal.add(told)
        self._changed()

    def _changed(self) -> None:
        for tell in self.on_change:
            tell()


def _answers(request: Request, given: Any) -> dict[str, str]:
    questions = [str(each.get("question", "")) for each in request.input.get("questions", [])]
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list):
        if len(given) != len(questions):
            raise AgtmuxError(ErrorCode.USAGE, f"it asks {len(questions)} questions; answer each, in their order")
        given = dict(zip(questions, given, strict=True))
    if unknown := [each for each in given if each not in questions]:
        raise AgtmuxError(ErrorCode.USAGE, f"it does not ask {unknown[0][:80]!r}")
    if missing := [each for each in questions if not given.get(each)]:
        raise AgtmuxError(ErrorCode.USAGE, f"{missing[0][:80]!r} needs an answer")
    return {question: ", ".join(each) if isinstance(each, list) else each for question, each in given.items()}
