"""A session and the daemon: it is told of again after whatever has ended the connection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.typing import Subprotocol

from support.chat import LIMIT, sitting

REFUSED = {"type": "refused", "error": {"code": "E_STORE", "message": "the disk is full"}}


async def test_a_daemon_that_refuses_what_it_is_told_is_told_again(short_tmp: Path, caplog: pytest.LogCaptureFixture):
    registered: asyncio.Queue[str] = asyncio.Queue()

    async def serve(session: ServerConnection) -> None:
        registered.put_nowait(json.loads(await session.recv())["type"])
        await session.send(json.dumps({"type": "registered"}))
        await session.recv()
        await session.send(json.dumps(REFUSED))

    path = short_tmp / "daemon.sock"
    async with (
        unix_serve(serve, str(path), subprotocols=[Subprotocol("agtmux.chat.v1")]),
        sitting(short_tmp, daemon=path),
        asyncio.timeout(LIMIT),
    ):
        assert [await registered.get() for _ in range(2)] == ["register", "register"]
    told = {record.message for record in caplog.records if record.name == "agtmux.chat.reporter"}
    assert told == {"the daemon has ended the connection: the disk is full"}
