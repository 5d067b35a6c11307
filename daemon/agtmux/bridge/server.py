"""The MCP server: one session a connection, over whatever carries its lines. The only place that imports `mcp`.

`python -m agtmux.bridge.server FILE` writes what it says of itself and of its tools, for bridges without a daemon.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from agtmux import __version__
from agtmux.bridge.caller import Caller
from agtmux.bridge.tools import INSTRUCTIONS, TOOLS, Toolbox
from agtmux.bridge.tools.tool import Tool, schema
from agtmux.domain.errors import AgtmuxError, ErrorCode

_log = logging.getLogger(__name__)
_COMPLAIN_EVERY: Final = 60.0


def _listed(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.is_read_only,
        destructive_hint=tool.is_destructive,
        idempotent_hint=tool.is_read_only,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema(tool.takes),
        output_schema=schema(tool.gives),
        annotations=hints,
    )


_LISTED = types.ListToolsResult(tools=[_listed(tool) for tool in TOOLS.values()])


async def serve(
    receive: Callable[[], Awaitable[str | None]],
    send: Callable[[str], Awaitable[None]],
    toolbox: Toolbox,
    caller: Callable[[], Caller],
) -> None:
    """One session, to its end. `receive` gives None when there is nothing more to come."""
    server = _server(toolbox, caller)
    to_server, from_bridge = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    from_server, to_bridge = anyio.create_memory_object_stream[SessionMessage](16)
    # One at a time sends: pieces of two lines would be no line.
    complaints = from_server.clone()

    async def read() -> None:
        async with to_server, complaints:
            while (text := await receive()) is not None:
                try:
                    message = _message(text)
                except (ValueError, RecursionError):
                    _garbage.note(len(text))
                    await complaints.send(SessionMessage(_no_message(text)))
                    continue
                await to_server.send(SessionMessage(message))

    async def write() -> None:
        async with to_bridge:
            async for each in to_bridge:
                await send(each.message.model_dump_json(by_alias=True, exclude_unset=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        await server.run(from_bridge, from_server, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _message(text: str) -> types.JSONRPCMessage:
    """Raises ValueError for what is none."""
    try:
        return types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        # Half of an emoji, as where an agent has cut a text, is JSON to whoever wrote it and to nobody else.
        if "\\u" not in text:
            raise
        whole = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-16", "surrogatepass")
        return types.jsonrpc_message_adapter.validate_json(whole.decode("utf-16", "replace"), by_name=False)


def _no_message(text: str) -> types.JSONRPCMessage:
    """What is answered to it, so that nobody waits for ever: with its id, or with none where it cannot be told."""
    code, wrong, request_id = types.PARSE_ERROR, "this is no JSON", None
    try:
        content = json.loads(text)
        code, wrong = types.INVALID_REQUEST, "this is no request of MCP"
        request_id = content["id"]
        error = {"code": code, "message": wrong}
        return types.jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": request_id, "error": error})
    except (ValueError, LookupError, TypeError, RecursionError):
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=wrong))


class _Garbage:
    """One short line of the log for many lines that are no messages: whoever sends them does not fill it."""

    def __init__(self) -> None:
        self._next = 0.0
        self._count = 0

    def note(self, size: int) -> None:
        self._count += 1
        now = time.monotonic()
        if now >= self._next:
            _log.warning("%d lines of bridges were no JSON-RPC, the last of %d characters", self._count, size)
            self._next, self._count = now + _COMPLAIN_EVERY, 0


_garbage = _Garbage()


def _server(toolbox: Toolbox, caller: Callable[[], Caller]) -> Server[Any]:
    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return _LISTED

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await _called(toolbox, caller, params.name, params.arguments)

    return Server(
        "agtmux", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _called(toolbox: Toolbox, caller: Callable[[], Caller], name: str, arguments: object) -> types.CallToolResult:
    try:
        given = await toolbox.call(name, caller(), arguments)
    except AgtmuxError as error:
        return _refused(error)
    except Exception:
        _log.exception("the tool %s failed", name[:64])
        return _refused(AgtmuxError(ErrorCode.INTERNAL, "agtmux failed at this; its log says more"))
    text = msgspec.json.encode(given).decode()
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=json.loads(text))


def _refused(error: AgtmuxError) -> types.CallToolResult:
    """In words for the agent, and beside them as a JSON-RPC error, for programs that sort by its numbers."""
    code, name = error.jsonrpc
    about = {"code": code, "message": name, "data": {"code": str(error.code), "details": error.details}}
    return types.CallToolResult(
        content=[types.TextContent(text=str(error))], is_error=True, _meta={"dev.agtmux/error": about}
    )


async def packaged() -> dict[str, Any]:
    """What a bridge says in the daemon's place: the daemon's own answers, by method."""
    answers: dict[str, Any] = {}
    # Of the newest kind of client, which greets with nothing but its requests, and of all before it.
    meta = {
        "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "agtmux", "version": __version__},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    greeting = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": meta["io.modelcontextprotocol/clientInfo"],
    }
    for method, params in (
        ("initialize", greeting),
        ("server/discover", {"_meta": meta}),
        ("tools/list", {"_meta": meta}),
    ):
        asked = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})]
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def receive(asked: list[str] = asked, told: asyncio.Future[str] = told) -> str | None:
            if asked:
                return asked.pop()
            await asyncio.wait([told])
            return None

        async def send(text: str, told: asyncio.Future[str] = told) -> None:
            told.set_result(text)

        await serve(receive, send, None, None)  # type: ignore[arg-type]
        answers[method] = json.loads(told.result())["result"]
    return {"protocol_versions": list(HANDSHAKE_PROTOCOL_VERSIONS), "results": answers}


def written(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(written(asyncio.run(packaged())), "utf-8")
