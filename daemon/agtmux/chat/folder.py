"""What a folder brings along that its user has not agreed to.

A `.mcp.json` names programs to start. In its own terminal the agent asks before it starts them; behind the SDK it
starts them without a word, also in a folder that nobody has said to trust. So those that the user has not agreed to
in a terminal are named here, and left out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

_FILE: Final = ".mcp.json"


def unapproved_servers(cwd: str) -> list[str]:
    """Servers of the folder's own file, and of those above it, that nobody has agreed to; sorted."""
    folder = Path(cwd)
    named: set[str] = set()
    for each in (folder, *folder.parents):
        named |= set(_dict(_read(each / _FILE).get("mcpServers")))
    if not named:
        return []
    agreed: set[str] = set()
    for settings in _agreements(folder):
        if settings.get("enableAllProjectMcpServers") is True:
            return []
        names = settings.get("enabledMcpjsonServers")
        agreed |= {str(name) for name in names} if isinstance(names, list) else set()
    return sorted(named - agreed)


def _agreements(folder: Path) -> list[dict[str, Any]]:
    """Where a user's word counts. The folder's shared settings are as little the user's as the file itself, and its
    local ones may have come with it as well, unless the user has said to trust it."""
    home = Path.home()
    own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    state = own / ".claude.json" if "CLAUDE_CONFIG_DIR" in os.environ else home / ".claude.json"
    projects = _dict(_read(state).get("projects"))
    said = [_dict(projects.get(str(each))) for each in (folder, *folder.parents)]
    is_trusted = any(each.get("hasTrustDialogAccepted") is True for each in said)
    local = [_read(folder / ".claude" / "settings.local.json")] if is_trusted else []
    return [_read(own / "settings.json"), *local, *said]


def _read(path: Path) -> dict[str, Any]:
    try:
        # Of what is no file, reading may take forever.
        return _dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
