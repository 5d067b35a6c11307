"""All that a request over TCP has to get past, in this order: its host, its origin, who sends it, what it wants.

A page that runs in the user's browser can send requests to any address. It cannot choose the `Host` of a name that
leads here by a trick, nor its own `Origin`, nor read what the user's own session is; and nothing here takes a write
that a plain form could send. What gets through comes to the same API as on the Unix socket, or rather to the part of
it that the board needs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import Annotated, Final, Literal

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtmux.api.board.auth import COOKIE, SESSION_LASTS, Attempts, Codes, Credentials
from agtmux.api.board.pages import Pages
from agtmux.api.board.peer import uid_of
from agtmux.api.bodies import as_json, decoded, read_body
from agtmux.api.live import SUBPROTOCOL
from agtmux.api.protocol import ACTOR, CONNECTION, PEER
from agtmux.domain.errors import AgtmuxError, ErrorCode

LOGIN: Final = "/v1/board/login"
LOGOUT: Final = "/v1/board/logout"
# The half of a session that is no cookie. A WebSocket of a browser has no headers, so it comes as a subprotocol.
KEY_HEADER: Final = "agtmux-key"
KEY_PROTOCOL: Final = "agtmux.key."
# Who acts, in the log.
NAME: Final = "board"

# All that can be asked for over TCP. Neither events nor hooks, nor targets, settings of agents, launches or signals.
READS: Final = frozenset(
    {
        *("/v1/board", "/v1/panes", "/v1/windows", "/v1/sessions", "/v1/targets", "/v1/watch", "/v1/explain"),
        *("/v1/preview", "/v1/worktrees", "/v1/worktrees/diff", "/v1/actions"),
        *("/v1/conversations", "/v1/conversations/messages"),
    }
)
WRITES: Final = frozenset(f"/v1/actions/{name}" for name in ("approve", "deny", "send"))
SOCKETS: Final = frozenset({"/v1/live"})

# Of a login, which anybody may send.
_MOST_BYTES: Final = 4_096
_MOST_COOKIES: Final = 8
_JSON: Final = "application/json"


class LoginAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """With a code or with the token. Who gives an `attempt` of their own may ask again for what got lost."""

    code: str | None = None
    token: str | None = None
    attempt: Annotated[str, msgspec.Meta(max_length=64)] = ""


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        pages: Pages,
        credentials: Credentials,
        codes: Codes,
        port: int,
        is_own_host: Callable[[str], bool],
        answer_to: Callable[[Exception, Scope], Response],
    ) -> None:
        self._app = app
        self._pages = pages
        self._credentials = credentials
        self._codes = codes
        self._attempts = Attempts()
        self._cookie = f"{COOKIE}{port}"
        self._is_own_host = is_own_host
        self._answer_to = answer_to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        guarded = _with_headers(send, headers.get("host", ""))
        try:
            answer = await self._answer(scope, headers, receive)
        except AgtmuxError as error:
            answer = self._answer_to(error, scope)
            wait = error.details.get("retry_after_seconds")
            if wait is not None:
                answer.headers["retry-after"] = str(wait)
        if answer is not None:
            await answer(scope, receive, guarded)
            return
        # Who is at the other end of this connection is not known by their process.
        scope.pop(PEER, None)
        scope[ACTOR] = NAME
        await self._app(scope, receive, guarded)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive) -> Response | None:
        """What can be said here already; None for what the API is asked."""
        method, path = ("GET" if scope["type"] == "websocket" else scope["method"]), scope["path"]
        self._check_where(scope, headers, method)
        if scope["type"] == "http":
            if method in ("GET", "HEAD") and (page := self._pages.find(path, headers)) is not None:
                return page
            if path in (LOGIN, LOGOUT) and method == "POST":
                _check_json(headers)
                return await (self._login(scope, receive) if path == LOGIN else self._logout())
        self._admit(scope, headers)
        if scope["type"] == "websocket":
            known: Collection[str] = SOCKETS
        else:
            known = READS if method in ("GET", "HEAD") else WRITES if method == "POST" else ()
        if path not in known:
            raise AgtmuxError(ErrorCode.FORBIDDEN, f"{method} {path[:80]} is not asked for over TCP; use the command")
        if method == "POST":
            _check_json(headers)
        return None

    def _check_where(self, scope: Scope, headers: Headers, method: str) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_host(hosts[0]):
            raise AgtmuxError(ErrorCode.FORBIDDEN, "that is not the name of this board; see hosts in [board]")
        origins = headers.getlist("origin")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            raise AgtmuxError(ErrorCode.FORBIDDEN, "another page asks; only the board's own may")
        if not origins and "cookie" in headers and (scope["type"] == "websocket" or method not in ("GET", "HEAD")):
            # Browsers say where such a request comes from. Whoever sends a cookie and does not is none.
            raise AgtmuxError(ErrorCode.FORBIDDEN, "a browser says which page asks; a program sends a bearer token")
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and method == "GET"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not is_navigation:
            raise AgtmuxError(ErrorCode.FORBIDDEN, "another page asks; only the board's own may")

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Who is known keeps the connection; who is not, has it only until others want it."""
        connection = scope.get(CONNECTION)
        try:
            self._check_who(scope, headers)
        except AgtmuxError:
            if connection is not None:
                connection.doubt()
            raise
        if connection is not None and not connection.know():
            raise AgtmuxError(
                ErrorCode.LIMIT_RATE,
                "too many connections to this board are in use; close some of its pages",
                {"retry_after_seconds": 1},
            )

    def _check_who(self, scope: Scope, headers: Headers) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self._attempts.check(_address(scope), time.monotonic())
            if self._credentials.is_token(given.strip()):
                return
            self._attempts.failed(_address(scope), time.monotonic())
            raise _unauthorized("that is not the board's token")
        cookies, key = _cookies(headers, self._cookie), headers.get(KEY_HEADER, "")
        if scope["type"] == "websocket":
            offered = scope.get("subprotocols", [])
            key = next((each[len(KEY_PROTOCOL) :] for each in offered if each.startswith(KEY_PROTOCOL)), key)
            scope["subprotocols"] = [each for each in offered if each == SUBPROTOCOL]
        # Nobody can guess one, so wrong ones are not counted: they are of a browser whose session is over.
        if not any(self._credentials.is_session(cookie, key, time.time()) for cookie in cookies):
            raise _unauthorized("this browser is not signed in")

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        address = _address(scope)
        self._attempts.check(address, time.monotonic())
        asked = decoded(await read_body(Request(scope, receive), _MOST_BYTES), LoginAsked)
        if (asked.code is None) == (asked.token is None):
            raise AgtmuxError(ErrorCode.USAGE, "a login takes a code or a token, and not both")
        if asked.code is not None and not await asyncio.to_thread(_is_ours, scope):
            # Every user of a machine may read the addresses that programs are started with.
            raise AgtmuxError(ErrorCode.FORBIDDEN, "a code is for whose daemon has given it; sign in with the token")
        is_known = (
            self._codes.take(asked.code, asked.attempt, time.monotonic())
            if asked.code is not None
            else self._credentials.is_token(asked.token or "")
        )
        if not is_known:
            self._attempts.failed(address, time.monotonic())
            what = "that code was used already, or is older than a minute" if asked.code else "that is not the token"
            raise _unauthorized(what)
        cookie, key = self._credentials.new_session(time.time())
        answer = as_json({"schema_version": 1, "key": key})
        answer.set_cookie(self._cookie, cookie, max_age=SESSION_LASTS, httponly=True, samesite=_STRICT)
        return answer

    async def _logout(self) -> Response:
        answer = as_json({"schema_version": 1, "key": None})
        answer.delete_cookie(self._cookie, httponly=True, samesite=_STRICT)
        return answer


_STRICT: Final[Literal["strict"]] = "strict"


def own_hosts(bind: str, port: int, names: Collection[str]) -> Callable[[str], bool]:
    """Which `Host` is this board's own. A name that leads here by a trick is one that nobody has told us."""
    address = ip_address(bind)
    known = {"localhost", "127.0.0.1", "::1"} if address.is_loopback else set()
    known |= {bind.lower(), *(name.lower() for name in names)}

    def is_own(host: str) -> bool:
        name, _, given = host.lower().rpartition(":")
        if not name or given != str(port):
            return False
        name = name.removeprefix("[").removesuffix("]")
        # An address is what it is; no name server was asked for it.
        return name in known or (address.is_unspecified and _is_address(name))

    return is_own


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _with_headers(send: Send, host: str) -> Send:
    """What every answer says to a browser: run nothing but ours, tell nobody, be shown in nobody's frame."""

    async def guarded(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            # Some browsers do not count a WebSocket as of the same origin. The host has been looked at by now, or
            # nothing is connected to.
            socket = f" ws://{host}" if message["status"] < 400 else ""
            headers["content-security-policy"] = _POLICY.format(socket=socket)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return guarded


_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self';"
    " connect-src 'self'{socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)


def _check_json(headers: Headers) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        # A form of another page can send any other type without being asked.
        raise AgtmuxError(ErrorCode.USAGE, f"a write is of the content type {_JSON}")


def _cookies(headers: Headers, name: str) -> list[str]:
    """By hand: other servers on this host set cookies of any shape, also of this name, and they all come here."""
    pairs = (each.strip().partition("=") for line in headers.getlist("cookie") for each in line.split(";"))
    return [value for found, _, value in pairs if found == name][:_MOST_COOKIES]


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _is_ours(scope: Scope) -> bool:
    """Whether it comes from a process of this user's or of the system's, or from where nobody can tell."""
    client, server = scope.get("client"), scope.get("server")
    if not client or not server:
        return True
    return uid_of((client[0], client[1]), (server[0], server[1])) in (None, 0, os.geteuid())


def _unauthorized(why: str) -> AgtmuxError:
    return AgtmuxError(ErrorCode.UNAUTHORIZED, f"{why}; run `agtmux board`")
