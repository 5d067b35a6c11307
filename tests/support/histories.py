"""Settings as Claude Code writes them, with the history of every project in them."""

from __future__ import annotations

import json

_ASKED = 'please look at "größer" {} [] // no /* comment */ \\ and 😀\n'


def with_history(size: int, **members: object) -> str:
    """Some more than `size` bytes. `members` come after the history."""
    told = {"display": _ASKED * 3, "pastedContents": {"1": {"id": 1, "type": "text", "content": _ASKED * 20}}}
    project = {"allowedTools": [], "history": [told] * 100, "mcpServers": {}, "lastCost": 1.25, "isTrusted": True}
    each = len(json.dumps(project, ensure_ascii=False, indent=2).encode())
    projects = {f"/home/me/{number}": project for number in range(size // each + 1)}
    content = {"numStartups": 412, "tipsHistory": {"shift-enter": 3}, "projects": projects, **members}
    return json.dumps(content, ensure_ascii=False, indent=2)
