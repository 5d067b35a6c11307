"""What the bridge answers by itself where no daemon is to be had: who it is, which tools there are, why none works."""

from __future__ import annotations

import json
import os

import agtmux
from agtmux.domain.errors import ErrorCode

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

METHOD_NOT_FOUND: Final = -32601
PARSE_ERROR: Final = -32700
# What results have since agents need not greet any more.
_MODERN: Final = ("resultType", "cacheScope", "ttlMs", "_meta")
_AWAY: Final = (
    f"{ErrorCode.DAEMON_UNAVAILABLE}: agtmux is not running, so it cannot be told what other agents do."
    " Go on without it, or ask the user to run `agtmux up` and call the tool again."
)
_UNCERTAIN: Final = (
    f"{ErrorCode.DELIVERY_UNCERTAIN}: agtmux was restarted during this call, and whether it was done is not known."
    " Look before you call it again."
)


class Packaged:
    """The daemon's own words, as they were when this was packaged."""

    def __init__(self) -> None:
        path = os.path.join(os.path.dirname(agtmux.__file__), "resources", "mcp", "tools.json")
        with open(path, "rb") as file:
            self._content: dict[str, Any] = json.load(file)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """To a request, while nobody else answers it."""
        method, params = request["method"], request.get("params")
        if method == "tools/call":
            return result(request, refused(_AWAY))
        if method == "ping":
            return result(request, {"resultType": "complete"})
        if method not in self._content["results"]:
            return error(request.get("id"), METHOD_NOT_FOUND, f"there is no method {str(method)[:80]!r}")
        content = {**self._content["results"][method]}
        if method == "initialize":
            asked = params.get("protocolVersion") if isinstance(params, dict) else None
            if asked in self._content["protocol_versions"]:
                content["protocolVersion"] = asked
        return result(request, content)

    def is_harmless(self, request: dict[str, Any]) -> bool:
        """Whether it may be asked twice without anything being done twice."""
        if request["method"] != "tools/call":
            return True
        params = request.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        tools = self._content["results"]["tools/list"]["tools"]
        return any(tool["name"] == name and tool["annotations"].get("readOnlyHint") for tool in tools)


def uncertain(request: dict[str, Any]) -> dict[str, Any]:
    return result(request, refused(_UNCERTAIN))


def refused(text: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True}


def result(request: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    if not _is_modern(request):
        content = {key: value for key, value in content.items() if key not in _MODERN}
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": content}


def _is_modern(request: dict[str, Any]) -> bool:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta


def error(request_id: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
