"""Chat sessions: agents without a pane, each a process of this machine that tells of itself on the daemon's socket.

They are shown as panes of a target of their own, which is there as long as any of them is. Who a session is, the kernel
says: the process at the other end of its connection. It lives as long as that connection does, so one that was killed
is gone at once. What it says is redacted here like everything that comes from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

import msgspec

from agtmux.agents.registry import Registry
from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Attention, Event, Incomplete, Verdict
from agtmux.domain.panes import CHAT, ForegroundProcess, Pane, SeenPane, Target, TargetKind, Topology
from agtmux.domain.redact import Redacted, redact_text
from agtmux.domain.runtimes import BootId, Inhabitant, PaneId, RuntimeId
from agtmux.domain.states import Source, State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.observe.ingest import Ingest
from agtmux.observe.intake import new_event_id
from agtmux.observe.submissions import AddTarget, RemoveTarget
from agtmux.observe.world import World
from agtmux.probe.branches import Branches
from agtmux.probe.processes import read_one

_log = logging.getLogger(__name__)

# A session is one process; what a tmux server's start is for other panes, the process's own start is here.
_BOOT: Final = BootId("chat")
_PYTHON: Final = re.compile(r"(?i)python[0-9.]*")
_REPLY_LIMIT: Final = 10.0
# As many as a session itself keeps for who has not kept them.
_MOST_TURNS: Final = 200
_KEEP_AGAIN: Final = 5.0
# For what a session that is gone has said last; more than git may take to tell where that was.
_LAST_WORDS: Final = 30.0
_MOST_TITLE: Final = 200
_MOST_ERROR: Final = 500
_WAITING: Final = frozenset({State.WAITING_APPROVAL, State.WAITING_INPUT})

_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern="^/")]


class Register(msgspec.Struct, tag_field="type", tag="register", frozen=True):
    session_id: _Word
    agent_type: _Word
    cwd: _Path
    socket: _Path
    agent_version: _Word | None = None


class Stated(msgspec.Struct, tag_field="type", tag="state", frozen=True):
    state: State
    reason_code: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]{0,63}$")]
    title: str = ""
    # What a hook of the agent would have told: there is one way to say what a request is about.
    event: str = ""
    payload: dict[str, Any] | None = None
    request_id: _Word | None = None
    # The payload does not hold all that was asked for.
    is_cut: bool = False
    error: str = ""


class Said(msgspec.Struct, tag_field="type", tag="said", frozen=True):
    # The same, however often it is told.
    id: str
    role: Literal["user", "assistant"]
    content: str
    # In microseconds since the epoch; None from a session that does not tell.
    at: Annotated[int, msgspec.Meta(gt=0, lt=2**53)] | None = None


class _Refusal(msgspec.Struct, frozen=True):
    code: str
    message: str


class Reply(msgspec.Struct, tag_field="type", tag="reply", frozen=True):
    id: int
    error: _Refusal | None = None
    text: str = ""


_decoder: Final[msgspec.json.Decoder[Register | Stated | Said | Reply]] = msgspec.json.Decoder(
    Register | Stated | Said | Reply
)


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said in a session, for whoever keeps conversations."""

    runtime_id: RuntimeId
    agent_type: str
    session_id: str
    cwd: str
    entry_id: str
    role: Literal["user", "assistant"]
    content: Redacted
    at: Timestamp


@dataclass(slots=True, eq=False)
class ChatSession:
    """One that is connected."""

    pid: int
    about: Register
    started_at: Timestamp | None
    # Raises OSError if it is gone.
    send: Callable[[str], Awaitable[None]]
    title: str = ""
    reply_limit: float = _REPLY_LIMIT
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    # Said, and not kept yet.
    turns: asyncio.Queue[Turn] = field(default_factory=lambda: asyncio.Queue(_MOST_TURNS))
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _replies: dict[int, asyncio.Future[Reply]] = field(default_factory=dict)

    @property
    def socket(self) -> str:
        return self.about.socket

    @property
    def pane_id(self) -> PaneId:
        # Larger than tmux counts, so that `%3` goes on meaning what it did.
        return PaneId(f"%{self.pid}")

    async def ask(self, word: str, **words: object) -> str:
        """Have it do something; raises what it refuses with, or that nobody knows what came of it."""
        number = next(self._numbers)
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        try:
            # One that is stopped does not even take what it is asked.
            async with asyncio.timeout(self.reply_limit):
                await self.send(msgspec.json.encode({"id": number, "type": word, **words}).decode())
                answer = await reply
        except (TimeoutError, asyncio.CancelledError, OSError) as error:
            if isinstance(error, asyncio.CancelledError) and not self.gone.is_set():
                raise
            raise AgtmuxError(
                ErrorCode.DELIVERY_UNCERTAIN, "the session was asked and has not answered; look at it before you retry"
            ) from None
        finally:
            del self._replies[number]
        if answer.error is not None:
            known = AgtmuxError.from_json({"error": {"code": answer.error.code, "message": answer.error.message}})
            raise known or AgtmuxError(ErrorCode.AGENT_FAILED, "the session refused and gave no reason that is known")
        return answer.text

    def replied(self, reply: Reply) -> None:
        if (waiting := self._replies.get(reply.id)) is not None and not waiting.done():
            waiting.set_result(reply)

    def ended(self) -> None:
        self.gone.set()
        for waiting in self._replies.values():
            waiting.cancel()

    def seen(self, branch: str, worktree: str = "") -> SeenPane:
        pane = Pane(
            CHAT,
            self.pane_id,
            session_name=PurePath(self.about.cwd).name or "/",
            window_id=f"@{self.pid}",
            window_name="chat",
            title=self.title,
            cwd=self.about.cwd,
            branch=branch,
            worktree=worktree,
        )
        return SeenPane(pane, Inhabitant(self.about.agent_type, self.pid, self.started_at, self.about.agent_version))


class Chats:
    def __init__(self, world: World, ingest: Ingest, registry: Registry, clock: Clock) -> None:
        self._world = world
        self._ingest = ingest
        self._registry = registry
        self._clock = clock
        self._sessions: dict[int, ChatSession] = {}
        self._showing = asyncio.Lock()
        self._branches = Branches()
        self._sleep = asyncio.sleep
        # Told of all that is said, in order.
        self.on_said: list[Callable[[Turn], Awaitable[None]]] = []

    async def start(self) -> None:
        """Those of an earlier daemon have to come again: whether they live, only they can say."""
        if CHAT not in self._world.targets and any(
            key[0] == CHAT for key in (*self._world.records, *self._world.panes)
        ):
            await self._ingest.submit(RemoveTarget(CHAT))

    def of(self, record: Record) -> ChatSession | None:
        """The session that a runtime is; None for one in a pane."""
        if record.runtime.target_id != CHAT or record.runtime.pid is None:
            return None
        return self._sessions.get(record.runtime.pid)

    async def serve(
        self, pid: int | None, receive: Callable[[], Awaitable[str | None]], send: Callable[[str], Awaitable[None]]
    ) -> None:
        """One connection, to its end. Raises AgtmuxError for one that is no session, or says what none would."""
        session = self._registered(pid, await receive(), send)
        self._sessions[session.pid] = session
        async with self._keeping(session):
            try:
                await self._show()
                await send('{"type":"registered"}')
                while (line := await receive()) is not None:
                    await self._hear(session, line)
            finally:
                session.ended()
                if self._sessions.get(session.pid) is session:
                    del self._sessions[session.pid]
                # Also if the connection's task was cancelled: it must not be shown any longer.
                await asyncio.shield(self._shown_without(session))

    @contextlib.asynccontextmanager
    async def _keeping(self, session: ChatSession) -> AsyncIterator[None]:
        """What is said is kept beside the lines: a disk or a git that hangs holds up no state and no reply."""
        task = asyncio.create_task(self._keep(session), name=f"turns-{session.pid}")
        try:
            yield
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await session.turns.join()
        finally:
            task.cancel()

    def _registered(self, pid: int | None, line: str | None, send: Callable[[str], Awaitable[None]]) -> ChatSession:
        about = None if line is None else _decoded(line)
        if not isinstance(about, Register):
            raise AgtmuxError(ErrorCode.USAGE, "a session says first who it is: register")
        if not self._registry.knows(about.agent_type):
            raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {about.agent_type[:64]!r}")
        target = self._world.targets.get(CHAT)
        if target is not None and target.kind is not TargetKind.CHAT:
            raise AgtmuxError(
                ErrorCode.TARGET_EXISTS, f"a target of yours is called {CHAT}; sessions are shown once it is removed"
            )
        process = None if pid is None else read_one(pid)
        if pid is None or process is None:
            raise AgtmuxError(ErrorCode.FORBIDDEN, "the system does not tell which process this is")
        if pid in self._sessions:
            raise AgtmuxError(ErrorCode.ALREADY_RUNNING, "this process has registered its session already")
        return ChatSession(pid, about, Timestamp(int(process.started * SECOND)), send)

    async def _hear(self, session: ChatSession, line: str) -> None:
        said = _decoded(line)
        match said:
            case Reply():
                session.replied(said)
            case Stated():
                await self._state(session, said)
            case Said():
                await self._said(session, said)
            case Register():
                raise AgtmuxError(ErrorCode.USAGE, "a session registers once")

    async def _state(self, session: ChatSession, stated: Stated) -> None:
        title = redact_text(" ".join(stated.title.split()))[:_MOST_TITLE]
        if title != session.title:
            session.title = title
            await self._show()
        runtime_id = self._runtime_id(session)
        if runtime_id is None:
            return
        event_id, now = new_event_id(), self._clock.now()
        event = Event(
            event_id=event_id,
            event_type=f"chat.{stated.state}",
            source=Source.WRAPPER,
            dedupe_key=event_id,
            event_time=now,
            ingested_at=now,
            runtime_id=runtime_id,
            verdict=self._verdict(session, stated),
        )
        await self._ingest.submit((event,))

    def _verdict(self, session: ChatSession, stated: Stated) -> Verdict:
        note = Redacted(f"the session says {stated.state}")
        if stated.state in _WAITING:
            _, told = self._registry.read_hook(session.about.agent_type, stated.event, stated.payload)
            if told is not None and told.state in _WAITING:
                attention = told.attention
                if attention is not None and stated.is_cut:
                    attention = replace(attention, incomplete=Incomplete.TOO_LONG, is_brief=False)
                return replace(told, state=stated.state, attention=attention, note=note, dialog=stated.request_id)
        attention = None
        if stated.error:
            attention = Attention("error", Redacted(redact_text(" ".join(stated.error.split()))[:_MOST_ERROR]))
        return Verdict(stated.state, stated.reason_code, attention=attention, note=note, dialog=stated.request_id)

    async def _said(self, session: ChatSession, said: Said) -> None:
        runtime_id = self._runtime_id(session)
        if runtime_id is None or not self.on_said:
            return
        about = session.about
        if about.session_id:
            self._world.sessions[runtime_id] = about.session_id
        content = await asyncio.to_thread(redact_text, said.content)
        now = self._clock.now()
        turn = Turn(
            runtime_id=runtime_id,
            agent_type=about.agent_type,
            session_id=about.session_id,
            cwd=about.cwd,
            entry_id=said.id,
            role=said.role,
            content=content,
            at=now if said.at is None else Timestamp(min(said.at, now)),
        )
        try:
            session.turns.put_nowait(turn)
        except asyncio.QueueFull:
            _log.warning("the session of process %d has said too much that is not kept yet", session.pid)

    async def _keep(self, session: ChatSession) -> None:
        """One turn after another. Of what is not kept the session is not told so, and tells it to the next daemon."""
        while True:
            turn = await session.turns.get()
            try:
                await self._tell(turn)
                # The number is nobody's: no answer is waited for.
                kept = msgspec.json.encode({"id": -1, "type": "kept", "said": turn.entry_id}).decode()
                with contextlib.suppress(OSError):
                    await session.send(kept)
            except Exception:
                _log.exception("what was said in the session of process %d could not be kept", session.pid)
            session.turns.task_done()

    async def _tell(self, turn: Turn) -> None:
        while True:
            try:
                for hear in self.on_said:
                    await hear(turn)
                return
            except AgtmuxError as error:
                # As when the disk is full. What follows waits with it: a conversation is kept in its order.
                _log.warning("what was said in the session %s has to wait: %s", turn.session_id, error.message)
                await self._sleep(_KEEP_AGAIN)

    def _runtime_id(self, session: ChatSession) -> RuntimeId | None:
        record = self._world.records.get((CHAT, session.pane_id))
        return None if record is None or record.runtime.pid != session.pid else record.runtime.runtime_id

    async def _shown_without(self, session: ChatSession) -> None:
        try:
            await self._show()
        except AgtmuxError as error:
            # The daemon stops, or its disk is full; the next one begins without sessions.
            _log.warning("the session of process %d could not be taken off: %s", session.pid, error.message)

    async def _show(self) -> None:
        """The sessions that there are, as a look at a tmux server would show panes."""
        async with self._showing:
            sessions = list(self._sessions.values())
            if not sessions:
                if CHAT in self._world.targets:
                    await self._ingest.submit(RemoveTarget(CHAT))
                return
            if CHAT not in self._world.targets:
                await self._ingest.submit(AddTarget(Target(CHAT, TargetKind.CHAT, is_ephemeral=True)))
            folders = {session.about.cwd for session in sessions}
            branches = await asyncio.to_thread(self._branches.look_at, folders)
            panes = tuple(session.seen(*branches.get(session.about.cwd, ("", ""))) for session in sessions)
            await self._ingest.submit(Topology(CHAT, self._clock.now(), _BOOT, panes))


def _decoded(line: str) -> Register | Stated | Said | Reply:
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise AgtmuxError(ErrorCode.USAGE, f"this is nothing that a session says: {error}") from None


def is_chat(process: ForegroundProcess) -> bool:
    """Whether that is a session's own process, or a terminal that talks to one."""
    words = list(process.argv)
    if words and _PYTHON.fullmatch(PurePath(words[0]).name):
        del words[0]
        # Sessions of an older agtmux run without it.
        if words[:1] == ["-P"]:
            del words[0]
    if words[:1] == ["-m"]:
        return words[1:2] == ["agtmux.chat.main"] or words[1:3] == ["agtmux.cli.main", "chat"]
    names = [PurePath(word).name for word in words[:2]]
    return names[:1] == ["agtmux-chat"] or names == ["agtmux", "chat"]
