"""`/v1/live`: one WebSocket for a page, with as many subscriptions as it likes: lists, screens, messages.

    in   {"type": "subscribe", "id", "scope": "panes", "cursor"} · {"type": "subscribe", "id", "pane": REF}
         {"type": "subscribe", "id", "worktree": PATH, "target"} · {"type": "unsubscribe", "id"}
         {"type": "ping", "id"}
    out  {"type": "line", "id", "line": {…}}
         {"type": "screen", "id", "runtime_id", "output", "at"} · {"type": "message", "id", "message": {…}}
         {"type": "missed", "id"} · {"type": "error", "id", "error": {…}} · {"type": "pong", "id"} · {"type": "end"}

Nothing is kept for a slow reader: what it is sent next is what is so by then, and one that takes nothing for a while is
cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from agtmux.api.conversations import said as as_said
from agtmux.api.screens import Screens
from agtmux.conversations.message import Message
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.timestamps import format_timestamp
from agtmux.observe.filters import Scope as Listed
from agtmux.observe.filters import read_subject
from agtmux.observe.lookup import resolve
from agtmux.observe.world import PaneKey
from agtmux.service import Service

_log = logging.getLogger(__name__)

SUBPROTOCOL: Final = "agtmux.live.v1"
_MOST_SUBSCRIPTIONS: Final = 32
_MOST_BYTES: Final = 65_536
# Messages that wait for a reader that is busy with something else.
_MOST_MESSAGES: Final = 100
_PATIENCE: Final = 5.0
# As WebSocket calls them: going away, try again later.
_GOING: Final = 1001
_TOO_SLOW: Final = 1013
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Wish(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    type: Literal["subscribe", "unsubscribe", "ping"]
    id: Name
    scope: Listed | None = None
    cursor: Annotated[str, msgspec.Meta(max_length=80)] | None = None
    pane: Annotated[str, msgspec.Meta(max_length=1_024)] | None = None
    worktree: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None
    target: Annotated[str, msgspec.Meta(max_length=64)] = HOST


class Live:
    """Everybody who is connected."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._screens = Screens(service)
        self._connections: set[_Connection] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if SUBPROTOCOL not in scope.get("subprotocols", []):
            raise AgtmuxError(ErrorCode.USAGE, f"this WebSocket speaks the subprotocol {SUBPROTOCOL}; ask for it")
        websocket = WebSocket(scope, receive, send)
        await websocket.accept(SUBPROTOCOL)
        connection = _Connection(self._service, self._screens, websocket)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    async def close(self) -> None:
        await asyncio.gather(*(connection.end() for connection in list(self._connections)))


class _Connection:
    def __init__(self, service: Service, screens: Screens, websocket: WebSocket) -> None:
        self._service = service
        self._screens = screens
        self._websocket = websocket
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_too_slow = asyncio.Event()

    async def run(self) -> None:
        """Until it goes, or is cut off."""
        ends = [asyncio.create_task(self._read()), asyncio.create_task(self._is_too_slow.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [*ends, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_too_slow.is_set():
            _log.info("a page that takes nothing was cut off")

    async def _read(self) -> None:
        # Until it is gone, or sends something that is no text.
        with contextlib.suppress(WebSocketDisconnect, KeyError, RuntimeError):
            while True:
                await self._take(await self._websocket.receive_text())

    async def end(self) -> None:
        """The daemon goes."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._send({"type": "end"})
            await self._websocket.close(_GOING)

    async def _take(self, text: str) -> None:
        try:
            wish = msgspec.json.decode(text[: _MOST_BYTES + 1], type=Wish)
        except (msgspec.MsgspecError, RecursionError) as error:
            await self._fail(None, AgtmuxError(ErrorCode.USAGE, f"this cannot be read: {error}"))
            return
        if wish.type == "ping":
            # A browser does not tell its page of the pings of WebSocket itself. And all that was wished for before is
            # listened for by now: whoever asks then for what was said earlier misses nothing in between.
            with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
                await self._send({"type": "pong", "id": wish.id})
            return
        earlier = self._tasks.pop(wish.id, None)
        if earlier is not None:
            earlier.cancel()
        if wish.type == "unsubscribe":
            return
        if len(self._tasks) >= _MOST_SUBSCRIPTIONS:
            await self._fail(
                wish.id, AgtmuxError(ErrorCode.LIMIT_RATE, f"{_MOST_SUBSCRIPTIONS} at a time is the limit")
            )
            return
        try:
            self._begin(wish)
        except AgtmuxError as error:
            await self._fail(wish.id, error)

    def _begin(self, wish: Wish) -> None:
        wanted = [wish.scope is not None, wish.pane is not None, wish.worktree is not None]
        if sum(wanted) != 1:
            raise AgtmuxError(ErrorCode.USAGE, "subscribe to one of scope, pane and worktree")
        if wish.scope is not None:
            self._tasks[wish.id] = self._spawn(wish.id, [self._lines(wish)])
        elif wish.pane is not None:
            key = resolve(self._service.world, wish.pane)
            runtime_id = self._service.world.records[key].runtime.runtime_id
            said = _Said(self._service, lambda message: message.runtime_id == runtime_id)
            self._tasks[wish.id] = self._spawn(wish.id, [self._shown(wish.id, key)], said)
        else:
            place = (wish.target, wish.worktree)
            said = _Said(self._service, lambda message: (message.target_id, message.worktree) == place)
            self._tasks[wish.id] = self._spawn(wish.id, [], said)

    def _spawn(self, name: str, streams: list[AsyncIterator[bytes]], said: _Said | None = None) -> asyncio.Task[None]:
        """What is said is listened for from now on, and not only when the task has its turn."""
        if said is not None:
            streams.append(self._messages(name, said))
        task = asyncio.create_task(self._serve(name, streams), name=f"live {name}")
        if said is not None:
            task.add_done_callback(lambda _: said.close())
        return task

    async def _serve(self, name: str, streams: list[AsyncIterator[bytes]]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for stream in streams:
                    group.create_task(self._forward(stream))
        except* AgtmuxError as errors:
            await self._fail(name, _first(errors))
        except* (WebSocketDisconnect, RuntimeError, OSError):
            # It is gone, which whoever reads from it finds out too.
            pass

    async def _forward(self, stream: AsyncIterator[bytes]) -> None:
        try:
            async for content in stream:
                await self._send_bytes(content)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    async def _lines(self, wish: Wish) -> AsyncIterator[bytes]:
        service = self._service
        assert wish.scope is not None
        subject = read_subject(wish.scope, {}, service.world.targets.keys(), service.registry.agent_types)
        head = b'{"type":"line","id":' + _ENCODER.encode(wish.id) + b',"line":'
        lines = service.hub.watch(subject, wish.cursor)
        try:
            async for line in lines:
                yield head + line.rstrip(b"\n") + b"}"
        finally:
            await lines.aclose()  # type: ignore[attr-defined]

    async def _shown(self, name: str, key: PaneKey) -> AsyncIterator[bytes]:
        if key not in self._service.world.records:
            raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "that pane has just gone; list the panes again")
        screens = self._screens.follow(key, self._service.world.records[key])
        try:
            async for screen in screens:
                if isinstance(screen, AgtmuxError):
                    yield _ENCODER.encode({"type": "error", "id": name, **screen.as_json()})
                    continue
                told = {"runtime_id": screen.runtime_id, "output": screen.output, "at": format_timestamp(screen.at)}
                yield _ENCODER.encode({"type": "screen", "id": name, **told})
        finally:
            await screens.aclose()  # type: ignore[attr-defined]

    async def _messages(self, name: str, said: _Said) -> AsyncIterator[bytes]:
        while True:
            messages, has_missed = await said.next()
            if has_missed:
                yield _ENCODER.encode({"type": "missed", "id": name})
            for message in messages:
                told = as_said(self._service, message)
                yield _ENCODER.encode({"type": "message", "id": name, "message": told})

    async def _fail(self, name: str | None, error: AgtmuxError) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._send({"type": "error", "id": name, **error.as_json()})

    async def _send(self, content: dict[str, Any]) -> None:
        await self._send_bytes(_ENCODER.encode(content))

    async def _send_bytes(self, content: bytes) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._websocket.send_text(content.decode())
        except TimeoutError:
            # Its connection is full, and a farewell would not get through either.
            self._is_too_slow.set()
            raise WebSocketDisconnect(_TOO_SLOW) from None


class _Said:
    """What was said and not yet told: the last of it. A whole transcript may come at once, which is nobody's fault."""

    def __init__(self, service: Service, is_wanted: Callable[[Message], bool]) -> None:
        self._listeners = service.conversations.on_message
        self._is_wanted = is_wanted
        self._came: deque[Message] = deque(maxlen=_MOST_MESSAGES)
        self._has_missed = False
        self._wake = asyncio.Event()
        self._listeners.append(self._hear)

    def close(self) -> None:
        self._listeners.remove(self._hear)

    async def next(self) -> tuple[list[Message], bool]:
        """What has come since, and whether there was more than that."""
        await self._wake.wait()
        self._wake.clear()
        came, has_missed = list(self._came), self._has_missed
        self._came.clear()
        self._has_missed = False
        return came, has_missed

    def _hear(self, message: Message) -> None:
        if self._is_wanted(message):
            self._has_missed |= len(self._came) == _MOST_MESSAGES
            self._came.append(message)
            self._wake.set()


def _first(errors: BaseExceptionGroup[AgtmuxError]) -> AgtmuxError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
