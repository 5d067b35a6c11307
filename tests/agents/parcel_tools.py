"""A server of tools (MCP over stdio) with one tool that changes something, so that agents ask before they call it."""

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


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    match request.get("method"):
        case "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "parcels", "version": "1.0"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "printed"}]}
        case "ping":
            return {}
    return None


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
