"""The app's own switches, and the file they are kept in.

They lie in the state directory: `config.toml` is the user's, and what a click in a menu changes is not written there.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from agtmux import paths

FILE: Final = "bar.json"
# Of a pause or a snooze that ends when the user, or the agent, says so. A number that JSON can hold.
FOR_EVER: Final = 253_402_300_799.0


@dataclass(frozen=True, slots=True)
class Settings:
    # Which terminal attaches; empty for the one that the desktop prefers.
    terminal: str = ""
    has_sound: bool = True
    notifies_completed: bool = False
    notifies_errors: bool = False
    # Seconds since the epoch until which no notification is shown; 0 for none.
    paused_until: float = 0.0
    # By `wait_key`: seconds since the epoch until which that wait does not count.
    snoozed: Mapping[str, float] = field(default_factory=dict)

    def is_paused(self, now: float) -> bool:
        return now < self.paused_until

    def is_snoozed(self, key: str, now: float) -> bool:
        return now < self.snoozed.get(key, 0.0)

    def with_snoozed(self, key: str, until: float, now: float) -> Settings:
        """What has passed is forgotten on the way."""
        kept = {each: moment for each, moment in self.snoozed.items() if moment > now and each != key}
        return replace(self, snoozed=kept | ({key: until} if until > now else {}))

    def with_switched(self, name: str) -> Settings:
        """One of those that are on or off, the other way."""
        switch: dict[str, Any] = {name: not getattr(self, name)} if isinstance(getattr(self, name, None), bool) else {}
        return replace(self, **switch)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the desktop is like and what it can do. None is for what it cannot tell: the menu is silent about it."""

    # The terminals that were found, by the name that settings keep and the one that people know.
    terminals: tuple[tuple[str, str], ...] = ()
    is_launched_at_login: bool | None = None
    # Whether `agtmux` in PATH is this one's.
    has_command_line_tool: bool | None = None
    # By agent: whether the MCP bridge is registered there.
    bridges: Mapping[str, bool] | None = None
    has_board: bool = False


def read_settings(path: Path | None = None) -> Settings:
    """What cannot be read counts as not set: a switch is not worth an app that does not start."""
    try:
        found = json.loads((path or settings_file()).read_text("utf-8"))
    except (OSError, ValueError):
        return Settings()
    return _of(found) if isinstance(found, dict) else Settings()


def write_settings(settings: Settings, path: Path | None = None) -> None:
    write_json(path or settings_file(), asdict(settings))


def write_json(file: Path, content: object) -> None:
    """Whole or not at all, and for its owner alone."""
    paths.private_directory(str(file.parent))
    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            json.dump(content, opened, indent=2)
            opened.write("\n")
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def settings_file() -> Path:
    return Path(paths.state_directory(), FILE)


def _of(found: dict[str, Any]) -> Settings:
    known = {}
    for each in fields(Settings):
        default = getattr(Settings(), each.name)
        value = found.get(each.name, default)
        if each.name == "snoozed":
            value = _moments(value)
        elif isinstance(default, float) and _is_number(value):
            value = float(value)
        known[each.name] = value if type(value) is type(default) else default
    return Settings(**known)


def _moments(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    return {str(key): float(moment) for key, moment in value.items() if _is_number(moment)}


def _is_number(value: object) -> bool:
    # NaN compares as neither earlier nor later, and true is no moment.
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
