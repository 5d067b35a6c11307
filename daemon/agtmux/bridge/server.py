"""The MCP server: one session a connection, over whatever carries its lines. The only place that imports `mcp`.

`python -m agtmux.bridge.server FILE` writes what it says of itself and of its tools, for bridges without a daemon.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from agtmux import __version__
from agtmux.bridge.caller import Caller
from agtmux.bridge.tools import INSTRUCTIONS, TOOLS, Desk, Tool, schema
from agtmux.domain.errors import AgtmuxError, ErrorCode

_log = logging.getLogger(__name__)


def _listed(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.is_read_only,
        destructive_hint=False if tool.is_read_only else None,
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
    desk: Desk,
    caller: Callable[[], Caller],
) -> None:
    """One session, to its end. `receive` gives None when there is nothing more to come."""
    server = _server(desk, caller)
    to_server, from_bridge = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    from_server, to_bridge = anyio.create_memory_object_stream[SessionMessage](16)

    async def read() -> None:
        async with to_server:
            while (text := await receive()) is not None:
                try:
                    message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
                except ValueError as error:
                    await to_server.send(error)
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


def _server(desk: Desk, caller: Callable[[], Caller]) -> Server[Any]:
    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return _LISTED

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await _called(desk, caller, params.name, params.arguments)

    return Server(
        "agtmux", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _called(desk: Desk, caller: Callable[[], Caller], name: str, arguments: object) -> types.CallToolResult:
    try:
        if name not in TOOLS:
            raise AgtmuxError(ErrorCode.USAGE, f"there is no tool {name[:64]!r}; there are {', '.join(TOOLS)}")
        given = await TOOLS[name].call(desk, caller(), arguments)
    except AgtmuxError as error:
        return _refused(str(error))
    except Exception:
        _log.exception("the tool %s failed", name[:64])
        return _refused(f"{ErrorCode.INTERNAL}: agtmux failed at this; its log says more")
    text = msgspec.json.encode(given).decode()
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=json.loads(text))


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


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
