"""One MCP session a bridge, whatever carries its lines: a WebSocket of this machine, or the line of a probe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import ModuleType

import msgspec

from agtmux.agents.registry import Registry
from agtmux.bridge.caller import Caller, find_far_caller
from agtmux.bridge.tools import Toolbox
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Target
from agtmux.observe.world import World
from agtmux.targets.bridges import Channel

_log = logging.getLogger(__name__)


async def serve(
    receive: Callable[[], Awaitable[str | None]],
    send: Callable[[str], Awaitable[None]],
    toolbox: Toolbox,
    caller: Callable[[], Caller],
    is_gone: Callable[[BaseException], bool],
) -> bool:
    """To its end; False if it failed. `is_gone` says of an error that nobody is there any more to be told."""
    try:
        server = await asyncio.to_thread(_load)
        await server.serve(receive, send, toolbox, caller)
    except (Exception, ExceptionGroup) as error:
        if not _all(error, is_gone):
            _log.error("a bridge's session failed", exc_info=error)
            return False
    return True


class FarSessions:
    """Those of agents on other machines. Whoever is there is one of its panes, or nobody, and has no tool before its
    user has let agents there in: a machine that is only watched can tell nobody anything."""

    def __init__(
        self, world: World, registry: Registry, toolbox: Toolbox, is_registered: Callable[[Target], bool]
    ) -> None:
        self._world = world
        self._registry = registry
        self._toolbox = toolbox
        self._is_registered = is_registered

    async def serve(self, target: Target, channel: Channel) -> None:
        toolbox = _Guarded(self._toolbox, target, self._is_registered)

        async def receive() -> str | None:
            line = await channel.receive()
            return None if line is None else line.decode("utf-8", "replace")

        def caller() -> Caller:
            return find_far_caller(self._world, self._registry, target, channel.way)

        await serve(
            receive, lambda text: channel.send(text.encode()), toolbox, caller, lambda e: isinstance(e, OSError)
        )


class _Guarded(Toolbox):
    """Tools that work while the bridge is registered on that target's machine."""

    def __init__(self, toolbox: Toolbox, target: Target, is_registered: Callable[[Target], bool]) -> None:
        self._toolbox = toolbox
        self._target = target
        self._is_registered = is_registered

    async def call(self, name: str, caller: Caller, arguments: object) -> msgspec.Struct:
        if not self._is_registered(self._target):
            raise AgtmuxError(
                ErrorCode.FORBIDDEN,
                "agtmux has no tools for agents on this machine; their user can give them these with"
                f" `agtmux mcp register --target {self._target.target_id}`",
            )
        return await self._toolbox.call(name, caller, arguments)


def _load() -> ModuleType:
    # Takes longer than everything else, and is needed by those who have a bridge.
    from agtmux.bridge import server

    return server


def _all(error: BaseException, is_gone: Callable[[BaseException], bool]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_all(each, is_gone) for each in error.exceptions)
    return is_gone(error)
