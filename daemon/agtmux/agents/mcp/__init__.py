"""Naming agtmux's MCP server in the agents' own settings files, and taking that out again to the byte."""
