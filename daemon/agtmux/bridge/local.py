"""What the bridge answers by itself where no daemon is to be had: who it is, which tools there are, why none works."""

from __future__ import annotations

import json
import os

# `typing` costs milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
PARSE_ERROR: Final = -32700
# What results have since agents need not greet any more.
_MODERN: Final = ("resultType", "cacheScope", "ttlMs", "_meta")
# Codes of every agtmux error, by their names: what they are defined by is not there on other machines.
AWAY: Final = (
    "E_DAEMON_UNAVAILABLE: agtmux is not running, so it cannot be told what other agents do."
    " Go on without it, or ask the user to run `agtmux up` and call the tool again."
)
OUT_OF_REACH: Final = (
    "E_DAEMON_UNAVAILABLE: the machine that agtmux runs on is not connected to this one, so it cannot be told what"
    " other agents do. Go on without it, and call the tool again later."
)
_UNCERTAIN: Final = (
    "E_DELIVERY_UNCERTAIN: agtmux was restarted during this call, and whether it was done is not known."
    " Look before you call it again; messages that you had come to fetch are in read_messages with include_delivered."
)
# Their numbers as JSON-RPC errors; `domain/errors.py`, which has them all, is not there on other machines.
NUMBERS: Final = {
    "E_DAEMON_UNAVAILABLE": (-32022, "Daemon unavailable"),
    "E_DELIVERY_UNCERTAIN": (-32012, "Delivery uncertain"),
    "E_TOO_LARGE": (-32602, "Invalid params"),
}
_UNANSWERED: Final = (
    "E_DELIVERY_UNCERTAIN: agtmux did not answer before this session ended, and whether the call was done is not known."
    " Look before you call it again; messages that you had come to fetch are in read_messages with include_delivered."
)
_TOO_LONG: Final = "E_TOO_LARGE: a call may have %d bytes in all, and this has more. Say it in less, or in parts."


class Packaged:
    """The daemon's own words, as they were when this was packaged."""

    def __init__(self, content: dict[str, Any] | None = None, away: str = AWAY) -> None:
        """`away` is what is said of tools while nobody is there."""
        self._content = _shipped() if content is None else content
        self._away = away

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """To a request, while nobody else answers it."""
        method, params = request["method"], request.get("params")
        if method == "tools/call":
            return result(request, refused(self._away))
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


def _shipped() -> dict[str, Any]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(package, "resources", "mcp", "tools.json"), "rb") as file:
        content: dict[str, Any] = json.load(file)
    return content


def uncertain(request: dict[str, Any]) -> dict[str, Any]:
    return result(request, refused(_UNCERTAIN))


def unanswered(request: dict[str, Any]) -> dict[str, Any]:
    return result(request, refused(_UNANSWERED))


def too_long(request: dict[str, Any], limit: int) -> dict[str, Any]:
    if request.get("method") != "tools/call":
        return error(request.get("id"), INVALID_REQUEST, _TOO_LONG % limit)
    return result(request, refused(_TOO_LONG % limit))


def refused(text: str) -> dict[str, Any]:
    """As the daemon refuses a call; `text` begins with the code of the error."""
    code = text.partition(":")[0]
    number, name = NUMBERS[code]
    about = {"code": number, "message": name, "data": {"code": code, "details": {}}}
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {"dev.agtmux/error": about},
    }


def result(request: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    if not _is_modern(request):
        content = {
            key: value
            for key, value in content.items()
            if key not in _MODERN or (key == "_meta" and "isError" in content)
        }
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": content}


def _is_modern(request: dict[str, Any]) -> bool:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta


def error(request_id: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
