"""The MCP server's refusals: in words for agents, and with the number that programs sort errors by."""

import asyncio
import json
from typing import Any, cast

import pytest

from agtmux.bridge.caller import Caller
from agtmux.bridge.server import serve
from agtmux.bridge.tools import Toolbox
from agtmux.domain.errors import AgtmuxError, ErrorCode

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE = 10.0


class Failing:
    """In place of the tools: every call ends like this."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, name: str, caller: Caller, arguments: object) -> None:
        raise self._error


async def refused(error: Exception) -> Any:
    """The result of a call that fails so."""
    params = {"name": "send_message", "arguments": {}, "_meta": META}
    asked = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})]
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def receive() -> str | None:
        if asked:
            return asked.pop()
        await told
        return None

    async def send(text: str) -> None:
        told.set_result(text)

    async with asyncio.timeout(PATIENCE):
        await serve(receive, send, cast(Toolbox, Failing(error)), lambda: Caller(None))
    return json.loads(told.result())["result"]


@pytest.mark.parametrize(
    ("code", "number", "name"),
    [
        (ErrorCode.REF_NOT_FOUND, -32000, "Agent not found"),
        (ErrorCode.RUNTIME_STALE, -32000, "Agent not found"),
        (ErrorCode.TIMEOUT, -32001, "Timeout"),
        (ErrorCode.TARGET_UNREACHABLE, -32001, "Timeout"),
        (ErrorCode.LIMIT_RATE, -32002, "Rate limit"),
        (ErrorCode.LIMIT_PANES, -32002, "Rate limit"),
        (ErrorCode.USAGE, -32602, "Invalid params"),
        (ErrorCode.TOO_LARGE, -32602, "Invalid params"),
        (ErrorCode.STORE, -32603, "Internal error"),
    ],
)
async def test_every_refusal_has_its_number_its_name_and_its_details(code: ErrorCode, number: int, name: str) -> None:
    """orchestrator: error codes."""
    result = await refused(AgtmuxError(code, "wait for a while", {"retry_after_seconds": 7}))
    assert result["isError"] and result["content"][0]["text"] == f"{code}: wait for a while"
    about = {"code": number, "message": name, "data": {"code": code, "details": {"retry_after_seconds": 7}}}
    assert result["_meta"]["dev.agtmux/error"] == about


async def test_what_nobody_foresaw_is_an_internal_error() -> None:
    """orchestrator: error codes."""
    result = await refused(ZeroDivisionError("of ours"))
    assert result["isError"] and result["content"][0]["text"].startswith("E_INTERNAL")
    assert "of ours" not in json.dumps(result)
    assert result["_meta"]["dev.agtmux/error"]["code"] == -32603
