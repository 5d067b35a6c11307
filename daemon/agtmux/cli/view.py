"""What a watch stream has said so far, in the shape of a listing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from agtmux.cli.panes import NEEDS_YOU, SIGNS, draw_groups, draw_panes

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_URGENCY: Final = {state: rank for rank, state in enumerate(SIGNS)}


class View:
    def __init__(self) -> None:
        self._scope = "panes"
        self._filters: dict[str, Any] = {}
        self._items: dict[str, dict[str, Any]] = {}
        self._summary: dict[str, Any] = {"total": 0, "by_state": {}, "needs_action": 0}
        self._said_at = datetime.now(UTC)
        self._heard_at = time.monotonic()
        self.has_begun = False

    def take(self, line: dict[str, Any]) -> None:
        self._scope, self._filters, self._summary = line["scope"], line["filters"], line["summary"]
        self._said_at = datetime.fromisoformat(line["emitted_at"])
        self._heard_at = time.monotonic()
        if line["type"] == "snapshot":
            self._items = {_key(item["identity"]): item for item in line["items"]}
            self.has_begun = True
        for change in line.get("changes", ()):
            if change["op"] == "upsert":
                self._items[_key(change["identity"])] = change["item"]
            else:
                self._items.pop(_key(change["identity"]), None)

    def now(self) -> datetime:
        """In the daemon's time, which a wall clock that is set does not change."""
        return self._said_at + timedelta(seconds=time.monotonic() - self._heard_at)

    def listing(self) -> dict[str, Any]:
        items = sorted(self._items.values(), key=_place)
        items.sort(key=lambda item: _URGENCY.get(item.get("state") or item["top_state"], len(_URGENCY)))
        return {
            "generated_at": self.now().isoformat(),
            "filters": self._filters,
            "summary": self._summary,
            "items": items,
        }

    @property
    def needs_you(self) -> int:
        """How many rows of the table do."""
        return sum((item.get("state") or item["top_state"]) in NEEDS_YOU for item in self._items.values())

    def draw(self, *, colour: bool, width: int | None) -> list[str]:
        draw = draw_panes if self._scope == "panes" else draw_groups
        return draw(self.listing(), colour=colour, width=width)


def _place(item: dict[str, Any]) -> tuple[str, int, str, str]:
    identity = item["identity"]
    number = int(identity.get("pane_id", "%0")[1:])
    return identity.get("target", ""), number, identity["session_name"], identity.get("window_id", "")


def _key(identity: dict[str, str]) -> str:
    return "\0".join(f"{name}={value}" for name, value in sorted(identity.items()))
