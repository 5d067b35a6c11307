"""Tells the daemon of the session, as long as there is one, and does what it asks. Without a daemon a session works
alone; whenever one is started, it is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from agtmux.chat.protocol import Told, encoded, fitted
from agtmux.chat.session import Session
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import State
from agtmux.probe.owners import connected

_log = logging.getLogger(__name__)

_SUBPROTOCOL: Final = Subprotocol("agtmux.chat.v1")
_URI: Final = "ws://agtmux/v1/chat"
_TRY_EVERY: Final = 1.0
_CONNECT_LIMIT: Final = 1.0
# Refused for a reason that the user can mend.
_TRY_SELDOM: Final = 30.0
# A state that nobody repeats counts as stale after a while.
_REPEAT_EVERY: Final = 300.0
_MOST_SAID: Final = 200
# How long the end of a session waits for its last words to be kept.
_SETTLE_LIMIT: Final = 2.0
_LONGEST_TEXT: Final = 4_000
_LONGEST_SAID: Final = 200_000
# The hook of the agent that would tell of a request.
_REQUEST: Final = "PermissionRequest"


class Reporter:
    def __init__(self, session: Session, path: str, daemon_socket: str) -> None:
        self._session = session
        self._socket = path
        self._daemon_socket = daemon_socket
        self._news = asyncio.Event()
        # What no daemon has kept yet, as far as there is room; it is told to each until one has.
        self._said: deque[Told] = deque(maxlen=_MOST_SAID)
        self._is_connected = False
        self._all_kept = asyncio.Event()
        self._all_kept.set()
        session.on_change.append(self._news.set)
        session.on_said.append(self._heard)

    async def run(self) -> None:
        """Until it is cancelled."""
        while not self._session.agent:
            self._news.clear()
            await self._news.wait()
        while True:
            pause = _TRY_EVERY
            try:
                # Whether it is there is asked of the file first: most of the time that is all there is to know.
                if Path(self._daemon_socket).exists():  # noqa: ASYNC240 - a local file's name
                    await self._report()
            except (OSError, WebSocketException, TimeoutError) as error:
                _log.debug("no daemon: %s", error)
            except AgtmuxError as error:
                _log.warning("the daemon does not take the session: %s", error.message)
                pause = _TRY_SELDOM
            await asyncio.sleep(pause)

    async def settled(self) -> None:
        """Until a daemon that is there has kept all that was said, but not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_LIMIT):
                # One that has just been found is told in a moment.
                while self._said and (self._is_connected or Path(self._daemon_socket).exists()):  # noqa: ASYNC240
                    await self._all_kept.wait()

    def _heard(self, role: str, content: str) -> None:
        said = {"type": "said", "id": uuid.uuid4().hex, "role": role, "content": content[:_LONGEST_SAID]}
        self._said.append({**said, "at": time.time_ns() // 1_000})
        self._all_kept.clear()
        self._news.set()

    def _kept(self, said_id: str) -> None:
        for each in [each for each in self._said if each["id"] == said_id]:
            self._said.remove(each)
        if not self._said:
            self._all_kept.set()

    async def _report(self) -> None:
        connection = socket.socket(fileno=connected(os.fsencode(self._daemon_socket), _CONNECT_LIMIT).detach())
        async with unix_connect(
            uri=_URI, sock=connection, subprotocols=[_SUBPROTOCOL], ping_interval=None, compression=None
        ) as daemon:
            await daemon.send(_encoded(self._registration()))
            answer = msgspec.json.decode(await daemon.recv())
            if answer.get("type") != "registered":
                raise AgtmuxError.from_json(answer) or AgtmuxError(ErrorCode.INTERNAL, "no answer that is known")
            _log.info("the daemon knows of the session")
            tasks = [asyncio.create_task(self._tell(daemon)), asyncio.create_task(self._obey(daemon))]
            self._is_connected = True
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._is_connected = False
                for task in tasks:
                    task.cancel()
                for ended in await asyncio.gather(*tasks, return_exceptions=True):
                    if isinstance(ended, Exception) and not isinstance(ended, OSError | WebSocketException):
                        _log.error("what the daemon was told of failed", exc_info=ended)

    def _registration(self) -> Told:
        agent = self._session.agent
        return {
            "type": "register",
            "session_id": self._session.session_id,
            "agent_type": agent["agent_type"],
            "agent_version": agent.get("agent_version"),
            "cwd": self._session.cwd,
            "socket": self._socket,
        }

    async def _tell(self, daemon: ClientConnection) -> None:
        told: Told | None = None
        sent: set[str] = set()
        while True:
            self._news.clear()
            # Those that are kept by now are gone from it; while one is sent, another may come.
            sent &= {each["id"] for each in self._said}
            while left := [each for each in self._said if each["id"] not in sent]:
                sent.add(left[0]["id"])
                await daemon.send(_encoded(left[0]))
            if (state := self._state()) != told:
                told = state
                await daemon.send(_encoded(state))
            try:
                async with asyncio.timeout(_REPEAT_EVERY):
                    await self._news.wait()
            except TimeoutError:
                told = None

    def _state(self) -> Told:
        session = self._session
        told: Told = {"type": "state", "state": session.state.value, "title": session.title}
        asking = session.asking
        if asking is not None:
            payload, is_cut = fitted({"tool_name": asking.tool, "tool_input": asking.input}, _LONGEST_TEXT)
            told |= {"reason_code": asking.kind, "event": _REQUEST, "payload": payload}
            return {**told, "request_id": next(iter(session.pending)), "is_cut": is_cut}
        if session.state is State.ERROR:
            return {**told, "reason_code": "agent_failed", "error": fitted(session.error, _LONGEST_TEXT)[0]}
        if session.state is State.IDLE:
            return {**told, "reason_code": "interrupted" if session.outcome == "aborted" else "session_started"}
        return {**told, "reason_code": "turn_ended" if session.state is State.COMPLETED else "prompt_submitted"}

    async def _obey(self, daemon: ClientConnection) -> None:
        async for line in daemon:
            asked: dict[str, Any] = msgspec.json.decode(line)
            if asked["type"] == "kept":
                self._kept(asked["said"])
                continue
            if asked["type"] == "refused":
                # It is told of again, as after any other end.
                _log.warning("the daemon has ended the connection: %s", asked["error"]["message"])
                return
            reply: Told = {"type": "reply", "id": asked["id"]}
            try:
                reply["text"] = await self._do(asked)
            except AgtmuxError as error:
                reply["error"] = {"code": str(error.code), "message": error.message}
            await daemon.send(_encoded(reply))

    async def _do(self, asked: dict[str, Any]) -> str:
        session = self._session
        match asked["type"]:
            case "approve":
                session.approve(asked["request_id"], "agtmux")
            case "deny":
                session.deny(asked["request_id"], asked.get("reason", ""), "agtmux")
            case "answer":
                session.answer(asked["request_id"], asked["answers"], "agtmux")
            case "message":
                session.say(asked["text"])
            case "abort":
                await session.abort()
            case "recent":
                return session.recent
            case _:
                raise AgtmuxError(ErrorCode.UNSUPPORTED, "this session is of another version of agtmux")
        return ""


def _encoded(told: Told) -> str:
    return encoded(told).decode()
