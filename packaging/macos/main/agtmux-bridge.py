"""`agtmux-mcp` in the bundle: what agents start as their MCP server. What starts it is bin/agtmux-mcp."""

from AgtmuxBar.mac import inside

inside.run("agtmux.bridge.main", "main")
