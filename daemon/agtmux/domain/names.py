"""What an agent is called where people read it."""

from __future__ import annotations


def shown_name(agent_type: str, name: str | None) -> str:
    """Its role, if it was given one, with what it is; otherwise just that, as the place stands beside it."""
    if name is None or name.startswith(f"{agent_type}-"):
        return agent_type
    return f"{name} ({agent_type})"
