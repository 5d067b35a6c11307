"""`/v1/board` and `/v1/live`: the web page's door and its socket, loaded when somebody asks for them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agtmux import __version__
from agtmux.api.bodies import as_json, decoded, envelope, read_body
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from agtmux.api.board.door import Door
    from agtmux.api.live import Live

_log = logging.getLogger(__name__)


class BoardAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # `open` also gives a code that opens it once; `token` gives the token itself.
    action: Literal["open", "close", "token"]
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] | None = None
    bind: Annotated[str, msgspec.Meta(max_length=253)] = ""
    # Where the token is kept, on the word of whoever is at the keyboard; empty is the keyring, or what settings say.
    token_file: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    # Everybody who was signed in has to sign in again.
    new_token: bool = False


class Board:
    """Until it is asked for there is no listener, no task, and no code of it in memory."""

    def __init__(self, service: Service, app: ASGIApp, answer_to: Callable[[Exception, Scope], Response]) -> None:
        self._service = service
        self._app = app
        self._answer_to = answer_to
        self._door: Door | None = None
        self._live: Live | None = None
        # What there is beside what every agtmux has, for a page to know what it may ask for.
        self.features: list[str] = []

    async def start(self) -> None:
        """If settings say so. A board that cannot be opened keeps nothing else from working."""
        if not self._service.board_settings.open:
            return
        try:
            await self._opened(BoardAsked("open"))
        except AgtmuxError as error:
            _log.warning("the board is not open: %s", error.message)

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()
        if self._door is not None:
            await self._door.close()

    async def status(self, request: Request) -> Response:
        return self._told({})

    async def change(self, request: Request) -> Response:
        asked = decoded(await read_body(request), BoardAsked)
        if asked.action == "open":
            door = await self._opened(asked)
            return self._told({"login_url": f"{door.url}#code={door.code()}"})
        if asked.action == "token":
            return self._told({"token": await self._doorway().token(self._token_file(asked))})
        if self._door is not None:
            await self._door.close()
        return self._told({})

    async def live(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._live is None:
            from agtmux.api.live import Live

            self._live = Live(self._service)
        await self._live(scope, receive, send)

    async def _opened(self, asked: BoardAsked) -> Door:
        from agtmux.api.board.door import Place

        settings = self._service.board_settings
        place = Place(asked.bind or settings.bind, asked.port, settings.port, settings.hosts)
        door = self._doorway()
        await door.open(place, self._token_file(asked), anew=asked.new_token)
        for warning in door.warnings:
            _log.warning("the board is open: %s", warning)
        return door

    def _doorway(self) -> Door:
        if self._door is None:
            from agtmux.api.board.door import Door

            def on_refused(error: AgtmuxError) -> None:
                self._service.refusals[error.code] += 1

            self._door = Door(self._app, self._answer_to, on_refused, self._service.state_directory)
        return self._door

    def _token_file(self, asked: BoardAsked) -> Path | None:
        chosen = asked.token_file or self._service.board_settings.token_file
        if not chosen:
            return None
        path = Path(chosen).expanduser()
        if not path.is_absolute() or "\0" in chosen:
            raise AgtmuxError(ErrorCode.USAGE, f"{chosen[:80]!r} is no path from the root")
        return path

    def _told(self, more: dict[str, Any]) -> Response:
        door = self._door
        url = None if door is None else door.url
        content = {
            "is_open": url is not None,
            "url": url,
            "warnings": [] if door is None else door.warnings,
            "version": __version__,
            "features": self.features,
            **more,
        }
        return as_json(envelope(self._service.clock.now(), content))
