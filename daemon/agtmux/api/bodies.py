"""What a request carries, read and checked, and an answer as it is sent."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.observe.views import SCHEMA_VERSION

T = TypeVar("T")

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
# A text of a megabyte whose every character is written as an escape.
MAX_TEXT_BYTES: Final = 8 * 1024 * 1024
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AgtmuxError(ErrorCode.USAGE, f"the request cannot be read: {error}") from None


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The whole body. How long it may take to come is the connection's business, see `protocol`."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(int(declared), limit)
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > limit:
            raise _too_large(len(chunks), limit)
    return bytes(chunks)


async def left(request: Request) -> None:
    """Returns when whoever asked is gone; its request has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def envelope(now: Timestamp, content: dict[str, Any]) -> dict[str, Any]:
    """What every answer begins with."""
    return {"schema_version": SCHEMA_VERSION, "generated_at": format_timestamp(now), **content}


def as_json(content: Any, status: int = 200) -> Response:
    return Response(_ENCODER.encode(content), status, media_type="application/json")


def _too_large(size: int, limit: int) -> AgtmuxError:
    return AgtmuxError(ErrorCode.TOO_LARGE, f"a request of {size} bytes; {limit} bytes is the limit, send it in parts")
