"""A server of tools (MCP over stdio): one changes something, so that agents ask before they call it, and two ask the
user something themselves, by a form and by a page to open."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {
    "name": "print_label",
    "description": "Prints the label of a parcel",
    "inputSchema": {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
    "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}

READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
NO_ARGUMENTS = {"type": "object", "properties": {}}
FORM = {
    "name": "weigh_parcel",
    "description": "Asks the user how heavy a parcel is",
    "inputSchema": NO_ARGUMENTS,
    "annotations": READ_ONLY,
}
PAGE = {
    "name": "pay_postage",
    "description": "Asks the user to pay on a page",
    "inputSchema": NO_ARGUMENTS,
    "annotations": READ_ONLY,
}
# What those two ask.
ELICITATIONS: dict[str, dict[str, Any]] = {
    FORM["name"]: {
        "message": "How heavy is the parcel?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "weight": {"type": "string", "title": "Weight", "description": "In kilograms"},
                "fragile": {"type": "boolean", "title": "Fragile"},
            },
            "required": ["weight"],
        },
    },
    PAGE["name"]: {
        "mode": "url",
        "message": "Pay the postage of parcel A-1",
        "url": "https://labels.invalid/pay?parcel=A-1",
        "elicitationId": "pay-a-1",
    },
}


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    match request.get("method"):
        case "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "parcels", "version": "1.0"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [TOOL, FORM, PAGE]}
        case "tools/call":
            if (wanted := ELICITATIONS.get(request["params"]["name"])) is not None:
                return {"content": [{"type": "text", "text": elicit(wanted)}]}
            return {"content": [{"type": "text", "text": "printed"}]}
        case "ping":
            return {}
    return None


def elicit(wanted: dict[str, Any]) -> str:
    """Asks the user through the agent and returns what they did; until then nothing else is answered."""
    print(json.dumps({"jsonrpc": "2.0", "id": "elicit", "method": "elicitation/create", "params": wanted}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "elicit" and "method" not in message:
            return json.dumps(message.get("result") or message.get("error"))
    return "gone"


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request)
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps(reply | ({"error": error} if result is None else {"result": result})), flush=True)


if __name__ == "__main__":
    main()
