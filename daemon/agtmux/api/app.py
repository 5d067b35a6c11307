"""API v1: which request asks what of the service, and one shape for every answer that is an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.events import Event
from agtmux.domain.timestamps import format_timestamp
from agtmux.engine.apply import Outcome
from agtmux.observe import views
from agtmux.observe.ingest import Receipt
from agtmux.service import Service

_log = logging.getLogger(__name__)

HOOK_TYPE: Final = "application/vnd.agtmux.hook"
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
# A request is small and comes over a local socket: what takes longer than this will not come.
READ_TIME_LIMIT: Final = 5.0

Endpoint = Callable[[Request], Awaitable[Response]]
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_HTTP_ERRORS: Final = {404: ErrorCode.NOT_FOUND, 405: ErrorCode.NOT_FOUND}


class NewTarget(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    kind: str = "local"
    tmux_socket: str = ""
    ephemeral: bool = False


def build_app(service: Service) -> Starlette:
    api = _Api(service)
    app = Starlette(
        routes=[
            Route("/v1/health", api.health),
            Route("/v1/events", api.events, methods=["POST"]),
            Route("/v1/panes", api.panes),
            Route("/v1/targets", api.targets, methods=["GET"]),
            Route("/v1/targets", api.add_target, methods=["POST"]),
            Route("/v1/targets/{name}", api.remove_target, methods=["DELETE"]),
            Route("/v1/watch", api.watch),
        ],
        exception_handlers={
            AgtmuxError: api.on_error,
            HTTPException: api.on_http_error,
            Exception: api.on_crash,
        },
    )
    # A path with a slash too many is not found, like any other.
    app.router.redirect_slashes = False
    return app


class _Api:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def health(self, request: Request) -> Response:
        return _json(self._service.health())

    async def events(self, request: Request) -> Response:
        body = await _body(request)
        if request.headers.get("content-type", "").startswith(HOOK_TYPE):
            receipt = (await self._service.take([self._service.intake.hook(body)]))[0]
            return _json(self._envelope(_told(receipt)))
        taken, is_batch = self._service.intake.envelopes(body)
        receipts = iter(await self._service.take([each for each in taken if isinstance(each, Event)]))
        results = [each if isinstance(each, AgtmuxError) else _outcome(next(receipts)) for each in taken]
        if not is_batch:
            only = results[0]
            if isinstance(only, AgtmuxError):
                raise only
            return _json(self._envelope(only))
        for error in results:
            if isinstance(error, AgtmuxError):
                self._count(error)
        told = [each.as_json() | {"status": "refused"} if isinstance(each, AgtmuxError) else each for each in results]
        return _json(self._envelope({"results": told}))

    async def panes(self, request: Request) -> Response:
        with_agentless = request.query_params.get("all") in ("1", "true")
        items = views.pane_items(self._service.world, with_agentless=with_agentless)
        return _json(
            self._envelope({"filters": {"all": with_agentless}, "summary": views.summarise(items), "items": items})
        )

    async def targets(self, request: Request) -> Response:
        world = self._service.world
        items = [views.target_item(world, target) for target in world.targets.values()]
        return _json(self._envelope({"filters": {}, "summary": {"total": len(items)}, "items": items}))

    async def add_target(self, request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await _body(request), type=NewTarget)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise AgtmuxError(ErrorCode.USAGE, f"the request cannot be read: {error}") from None
        target = await self._service.add_target(asked.name, asked.kind, asked.tmux_socket, asked.ephemeral)
        return _json(self._envelope({"item": views.target_item(self._service.world, target)}))

    async def remove_target(self, request: Request) -> Response:
        await self._service.remove_target(request.path_params["name"])
        return _json(self._envelope({"removed": request.path_params["name"]}))

    async def watch(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="application/x-ndjson")
        return StreamingResponse(self._service.hub.watch(), media_type="application/x-ndjson")

    async def on_error(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, AgtmuxError):
            raise error
        self._count(error)
        return _json(error.as_json(), error.http_status)

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        code = _HTTP_ERRORS.get(status, ErrorCode.USAGE)
        reported = AgtmuxError(code, f"there is no {request.method} {request.url.path}")
        self._count(reported)
        return _json(reported.as_json(), status)

    async def on_crash(self, request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        reported = AgtmuxError(ErrorCode.INTERNAL, "agtmuxd failed at this; its log says more")
        self._count(reported)
        return _json(reported.as_json(), reported.http_status)

    def _count(self, error: AgtmuxError) -> None:
        self._service.refusals[error.code] += 1

    def _envelope(self, content: dict[str, Any]) -> dict[str, Any]:
        now = format_timestamp(self._service.clock.now())
        return {"schema_version": views.SCHEMA_VERSION, "generated_at": now, **content}


async def _body(request: Request) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
        raise _too_large(int(declared))
    try:
        async with asyncio.timeout(READ_TIME_LIMIT):
            chunks = bytearray()
            async for chunk in request.stream():
                chunks += chunk
                if len(chunks) > MAX_BODY_BYTES:
                    raise _too_large(len(chunks))
    except TimeoutError:
        raise AgtmuxError(
            ErrorCode.TIMEOUT, f"the request did not arrive within {READ_TIME_LIMIT:.0f} seconds"
        ) from None
    except ClientDisconnect:
        raise AgtmuxError(ErrorCode.USAGE, "the request ended too early") from None
    return bytes(chunks)


def _too_large(size: int) -> AgtmuxError:
    return AgtmuxError(
        ErrorCode.TOO_LARGE, f"a request of {size} bytes; {MAX_BODY_BYTES} bytes is the limit, send it in parts"
    )


def _outcome(receipt: Receipt) -> dict[str, Any] | AgtmuxError:
    if receipt.status == Outcome.STALE_RUNTIME:
        return AgtmuxError(ErrorCode.RUNTIME_STALE, "that runtime has ended or never was; list the panes again")
    return _told(receipt)


def _told(receipt: Receipt) -> dict[str, Any]:
    return {
        "event_id": receipt.event_id,
        "status": receipt.status,
        "runtime_id": receipt.runtime_id,
        "reason_code": receipt.reason_code,
    }


def _json(content: Any, status: int = 200) -> Response:
    return Response(_ENCODER.encode(content), status, media_type="application/json")
