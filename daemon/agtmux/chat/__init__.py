"""A conversation with an agent as JSON lines on a Unix socket, one process a session, on the Agent SDK."""
