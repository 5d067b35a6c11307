"""The listener: opened when it is asked for, closed with the daemon, and not opened again by itself."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from agtmux.api.board.auth import Codes, Credentials
from agtmux.api.board.gate import Gate, own_hosts
from agtmux.api.board.listener import Listener, most_connections
from agtmux.api.board.pages import Pages
from agtmux.api.board.token import NAME, RunToken, TokenStore
from agtmux.api.connections import ConnectionLimits
from agtmux.api.server import HttpServer
from agtmux.domain.errors import AgtmuxError, ErrorCode

_log = logging.getLogger(__name__)

_BACKLOG: Final = 128
# A phone that has gone out of reach says nothing.
_PING_EVERY: Final = 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. Without a port it is the usual one, or any where that is taken."""

    bind: str
    port: int | None
    usual_port: int
    hosts: Sequence[str] = ()


class Door:
    def __init__(
        self,
        app: ASGIApp,
        answer_to: Callable[[Exception, Scope], Response],
        on_refused: Callable[[AgtmuxError], None],
        state_directory: Path,
    ) -> None:
        self._app = app
        self._answer_to = answer_to
        self._on_refused = on_refused
        self._state_directory = state_directory
        self._codes = Codes()
        self._changing = asyncio.Lock()
        self._server: HttpServer | None = None
        self._listener: socket.socket | None = None
        self._bind = ""
        self._port = 0
        self._place = Place("", 0, 0)
        self._token = ""
        self._token_file: Path | None = None
        self._run_token = RunToken()

    @property
    def url(self) -> str | None:
        """Where it is open."""
        if self._server is None:
            return None
        shown = self._bind
        if ip_address(shown).is_unspecified:
            # Everywhere; here it is this.
            shown = "127.0.0.1" if ip_address(shown).version == 4 else "::1"
        return f"http://[{shown}]:{self._port}/" if ":" in shown else f"http://{shown}:{self._port}/"

    @property
    def warnings(self) -> list[str]:
        if self._server is None:
            return []
        told = []
        if self._token == self._run_token.token:
            told.append(
                f"no keyring takes the board's token ({self._run_token.why}), so it is only kept until the daemon ends,"
                " and browsers sign in again after that; `agtmux board --token-file` keeps it in a file that only you"
                " can read"
            )
        if ip_address(self._bind).is_loopback:
            return told
        return [
            *told,
            f"other machines can reach it at {self._bind} port {self._port}, and what they say to each other is not"
            " encrypted; on a network that is not yours alone use `ssh -L` or a VPN instead",
        ]

    async def open(self, place: Place, token_file: Path | None, *, anew: bool = False) -> None:
        """Where it is asked for. If it is open there already it stays, unless the token is another one."""
        # One after the other: a token that is made takes a while, and is made once.
        async with self._changing:
            bind = _address(place.bind)
            token = await self.token(token_file, anew=anew)
            is_there = self._server is not None and bind == self._bind and place.port in (None, 0, self._port)
            if is_there and token == self._token:
                return
            if is_there:
                place = Place(place.bind, self._port, place.usual_port, place.hosts)
            file = token_file or (self._token_file if self._server is not None else None)
            before = None if self._server is None else (self._bind, self._place, self._token)
            await self._close()
            try:
                listener = _listening(bind, place)
            except AgtmuxError:
                if before is not None:
                    # Nobody has asked for it to be closed.
                    self._serve(_listening(before[0], before[1]), *before)
                raise
            self._token_file = file
            self._serve(listener, bind, place, token)
            _log.info("the board is at %s", self.url)

    def _serve(self, listener: socket.socket, bind: str, place: Place, token: str) -> None:
        self._bind, self._port, self._token = bind, int(listener.getsockname()[1]), token
        self._place = Place(place.bind, self._port, place.usual_port, place.hosts)
        is_own = own_hosts(bind, self._port, place.hosts)
        gate = Gate(self._app, Pages(), Credentials(token), self._codes, self._port, is_own, self._answer_to)
        self._listener = listener
        self._server = HttpServer(
            gate, listener, self._on_refused, _PING_EVERY, ConnectionLimits.for_strangers(most_connections())
        )
        self._server.start()

    async def token(self, token_file: Path | None, *, anew: bool = False) -> str:
        """What opens it now, or would. While it is open, the token stays where it is unless another file is named."""
        if self._server is not None:
            token_file = token_file or self._token_file
            if token_file == self._token_file and not anew:
                return self._token
        return await TokenStore(token_file, self._state_directory / NAME, self._run_token).load(anew=anew)

    def code(self) -> str:
        """Opens it once, within a minute."""
        return self._codes.issue(time.monotonic())

    async def close(self) -> bool:
        """Whether there was something to close."""
        async with self._changing:
            return await self._close()

    async def _close(self) -> bool:
        server, listener = self._server, self._listener
        if server is None or listener is None:
            return False
        self._server = self._listener = None
        self._codes = Codes()
        await server.stop()
        listener.close()
        return True


def _address(text: str) -> str:
    if text == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise AgtmuxError(
            ErrorCode.USAGE, f"{text[:60]!r} is no address of this machine; use one such as 127.0.0.1 or 0.0.0.0"
        ) from None


def _listening(bind: str, place: Place) -> socket.socket:
    ports = [place.usual_port, 0] if place.port is None else [place.port]
    for port in ports:
        listener = Listener(socket.AF_INET6 if ":" in bind else socket.AF_INET)
        try:
            # Else the port of a daemon that was just stopped could not be had for a minute.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((bind, port))
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            listener.close()
            if getattr(error, "errno", None) == errno.EADDRINUSE and port != ports[-1]:
                continue
            why = getattr(error, "strerror", None) or str(error)
            raise AgtmuxError(
                ErrorCode.CONFIG, f"cannot listen on {bind} port {port}: {why}; choose another with --port or --bind"
            ) from None
        listener.setblocking(False)
        return listener
    raise AssertionError("the last port either works or raises")
