"""The `[mcp]` section of an agent's TOML: which of its files names MCP servers, and how one is written there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from agtmux.agents.install.sheet import settings_path, variables_in

# What the entry is called in every agent's file.
NAME: Final = "agtmux"


class McpSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    # The first of which all variables are set. `~` is the home folder.
    paths: list[str]
    # Folders that are there once somebody uses the agent, in the same form.
    folders: list[str]
    format: Literal["json", "toml"] = "json"
    # The object in the file that holds the servers by name.
    under: str = "mcpServers"
    # What an entry has beside `command` and `args`; those come first.
    members: dict[str, Any] = {}

    @property
    def wanted(self) -> list[str] | None:
        """The members of the file that have to be read, if it is one of which a part can be."""
        return [self.under] if self.format == "json" else None

    def path(self, environ: Mapping[str, str]) -> str:
        """The agent's file, for who has this environment."""
        return settings_path(self.paths, environ)

    def folder(self, environ: Mapping[str, str]) -> str:
        return settings_path(self.folders, environ)

    @property
    def variables(self) -> list[str]:
        """What decides where they are."""
        return variables_in([*self.paths, *self.folders])

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        return {"command": command, "args": arguments, **self.members}
