"""The MCP bridge. `main`, `relay`, `local` and `wire` are the process that agents start; all else is the daemon's."""
