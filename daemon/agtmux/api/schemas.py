"""What listings and watch lines look like, as types, and the JSON Schema documents of every answer (`shapes`).

`python -m agtmux.api.schemas FOLDER` writes the documents. They are shipped in `resources/schemas`, and a field that
was in one stays, with its type, for as long as `schema_version` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from agtmux.api import shapes
from agtmux.api.conversations import ConversationListing, MarkdownAnswer, SaidListing
from agtmux.api.messages import MessagesAnswer
from agtmux.api.shapes import TargetError, Total
from agtmux.api.teams import TeamsAnswer
from agtmux.observe.feeds import Change
from agtmux.observe.rollups import SessionIdentity, SessionItem, WindowIdentity, WindowItem
from agtmux.observe.views import PaneIdentity, PaneItem, Summary, TargetItem

ItemT = TypeVar("ItemT")
IdentityT = TypeVar("IdentityT")
ScopeT = TypeVar("ScopeT")

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class FiltersShown(msgspec.Struct, frozen=True):
    """As they were asked for; those that were not are absent."""

    target: str | UnsetType = UNSET
    target_session: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    needs_action: bool | UnsetType = UNSET
    all: bool | UnsetType = UNSET
    # Of a watch over sessions that are merged across targets.
    group_by: str | UnsetType = UNSET


class Listing(msgspec.Struct, Generic[ItemT], frozen=True, kw_only=True):
    schema_version: Literal[1]
    generated_at: str
    filters: FiltersShown
    summary: Summary
    partial: bool
    requested_targets: list[str]
    responded_targets: list[str]
    target_errors: list[TargetError]
    items: list[ItemT]


class SessionListing(Listing[SessionItem], frozen=True, kw_only=True):
    group_by: Literal["target-session", "session-name"]


class NoFilters(msgspec.Struct, frozen=True):
    pass


class TargetListing(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    generated_at: str
    filters: NoFilters
    summary: Total
    items: list[TargetItem]


class WatchLine(msgspec.Struct, Generic[ScopeT, IdentityT, ItemT], frozen=True, kw_only=True):
    schema_version: Literal[1]
    generated_at: str
    emitted_at: str
    stream_id: str
    cursor: str
    scope: ScopeT
    type: Literal["snapshot", "delta", "reset"]
    sequence: int
    filters: FiltersShown
    summary: Summary
    # As of a listing; a line with no changes tells that they are others.
    partial: bool
    requested_targets: list[str]
    responded_targets: list[str]
    target_errors: list[TargetError]
    # Of a snapshot.
    items: list[ItemT] | UnsetType = UNSET
    # Of a delta.
    changes: list[Change[IdentityT, ItemT]] | UnsetType = UNSET


# Document → (the type it describes, its title)
DOCUMENTS: Final[dict[str, tuple[Any, str]]] = {
    "panes": (Listing[PaneItem], "GET /v1/panes, agtmux list panes --json"),
    "windows": (Listing[WindowItem], "GET /v1/windows, agtmux list windows --json"),
    "sessions": (SessionListing, "GET /v1/sessions, agtmux list sessions --json"),
    "targets": (TargetListing, "GET /v1/targets, agtmux target list --json"),
    "watch-panes": (WatchLine[Literal["panes"], PaneIdentity, PaneItem], "a line of GET /v1/watch?scope=panes"),
    "watch-windows": (
        WatchLine[Literal["windows"], WindowIdentity, WindowItem],
        "a line of GET /v1/watch?scope=windows",
    ),
    "watch-sessions": (
        WatchLine[Literal["sessions"], SessionIdentity, SessionItem],
        "a line of GET /v1/watch?scope=sessions",
    ),
    "health": (shapes.HealthAnswer, "GET /v1/health, agtmux status --json"),
    "doctor": (shapes.DoctorAnswer, "GET /v1/doctor, agtmux doctor --json"),
    "explain": (shapes.ExplainAnswer, "GET /v1/explain, agtmux explain --json"),
    "here": (shapes.HereAnswer, "GET /v1/here"),
    "preview": (shapes.PreviewAnswer, "GET /v1/preview"),
    "target": (
        shapes.TargetAnswer,
        "POST /v1/targets and /v1/targets/{name}/connect, agtmux target add|connect --json",
    ),
    "target-removed": (shapes.RemovedAnswer, "DELETE /v1/targets/{name}, agtmux target remove --json"),
    "hooks": (shapes.HooksAnswer, "POST /v1/hooks, agtmux hooks install|uninstall|status --json"),
    "mcp": (shapes.McpAnswer, "POST /v1/mcp, agtmux mcp register|unregister|status --json"),
    "receipt": (shapes.ReceiptAnswer, "POST /v1/events with one event"),
    "receipts": (shapes.BatchAnswer, "POST /v1/events with several events"),
    "decision": (shapes.DecisionAnswer, "POST /v1/decisions/wait"),
    "action": (shapes.ActionAnswer, "POST /v1/actions/{type}, agtmux approve --json and every other action"),
    "actions": (shapes.ActionListing, "GET /v1/actions, agtmux log actions --json"),
    "conversations": (ConversationListing, "GET /v1/conversations, agtmux log --conversations --json"),
    "logs": (MarkdownAnswer, "POST /v1/conversations/markdown, agtmux log <ref> --markdown --json"),
    "said": (SaidListing, "GET /v1/conversations/messages, agtmux log <ref> --json"),
    "messages": (MessagesAnswer, "every answer of /v1/messages and /v1/inbox, agtmux message … --json"),
    "worktrees": (shapes.WorktreeListing, "GET /v1/worktrees"),
    "worktree-diff": (shapes.DiffAnswer, "GET /v1/worktrees/diff"),
    "board": (shapes.BoardAnswer, "GET and POST /v1/board, agtmux board --json"),
    "board-login": (shapes.BoardLogin, "POST /v1/board/login and /v1/board/logout, which only the board's door has"),
    "teams": (TeamsAnswer, "every answer of /v1/teams but a launch, agtmux team … --json"),
    "error": (shapes.ErrorAnswer, "every answer that is an error, and every command's with --json"),
    "wait": (shapes.WaitAnswer, "agtmux wait --json"),
    "bar": (shapes.BarAnswer, "agtmux bar --json"),
    "menu": (shapes.MenuAnswer, "agtmux menu --json"),
    "classify": (shapes.ClassifyAnswer, "agtmux classify"),
    "down": (shapes.DownAnswer, "agtmux down --json"),
    "demo-started": (shapes.DemoStarted, "agtmux demo --json"),
    "demo-stopped": (shapes.DemoStopped, "agtmux demo --stop --json"),
}

# Which documents an answer of a route may follow. Every action has the same.
ROUTES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("GET", "/v1/health"): ("health",),
    ("GET", "/v1/panes"): ("panes",),
    ("GET", "/v1/windows"): ("windows",),
    ("GET", "/v1/sessions"): ("sessions",),
    ("GET", "/v1/targets"): ("targets",),
    ("POST", "/v1/targets"): ("target",),
    ("POST", "/v1/targets/{name}/connect"): ("target",),
    ("DELETE", "/v1/targets/{name}"): ("target-removed",),
    ("GET", "/v1/watch"): ("watch-panes", "watch-windows", "watch-sessions"),
    ("GET", "/v1/explain"): ("explain",),
    ("GET", "/v1/here"): ("here",),
    ("GET", "/v1/preview"): ("preview",),
    ("GET", "/v1/doctor"): ("doctor",),
    ("POST", "/v1/hooks"): ("hooks",),
    ("POST", "/v1/mcp"): ("mcp",),
    ("POST", "/v1/events"): ("receipt", "receipts"),
    ("POST", "/v1/decisions/wait"): ("decision",),
    ("GET", "/v1/worktrees"): ("worktrees",),
    ("GET", "/v1/worktrees/diff"): ("worktree-diff",),
    ("GET", "/v1/board"): ("board",),
    ("POST", "/v1/board"): ("board",),
    ("GET", "/v1/actions"): ("actions",),
    ("POST", "/v1/actions/{type}"): ("action",),
    ("GET", "/v1/teams"): ("teams",),
    ("POST", "/v1/teams"): ("teams",),
    ("POST", "/v1/teams/{name}/launch"): ("action",),
    ("DELETE", "/v1/teams/{name}"): ("teams",),
    ("GET", "/v1/conversations"): ("conversations",),
    ("GET", "/v1/conversations/messages"): ("said",),
    ("POST", "/v1/conversations/markdown"): ("logs",),
    ("GET", "/v1/messages"): ("messages",),
    ("POST", "/v1/messages"): ("messages",),
    ("POST", "/v1/inbox"): ("messages",),
    ("DELETE", "/v1/messages/{message_id}"): ("messages",),
}
# What may have fields that no type knows.
_OPEN: Final = {"ActionAnswer"}


def document(name: str) -> str:
    kind, title = DOCUMENTS[name]
    schema = msgspec.json.schema(kind)
    if name.startswith("watch-"):
        schema |= {"allOf": [_has(line, content) for line, content in (("snapshot", "items"), ("delta", "changes"))]}
    for title_of, definition in schema["$defs"].items():
        if title_of in _OPEN:
            definition["additionalProperties"] = True
    text = json.dumps({"$schema": DIALECT, "title": title, **schema}, indent=2, ensure_ascii=False)
    # A generic type is called after all of its parameters, which tells nobody anything.
    for long, definition in schema["$defs"].items():
        short = definition["title"].partition("[")[0]
        text = text.replace(json.dumps(definition["title"]), json.dumps(short))
        text = text.replace(f'#/$defs/{long}"', f'#/$defs/{short}"').replace(f'"{long}":', f'"{short}":')
    return text + "\n"


def _has(line: str, content: str) -> dict[str, Any]:
    return {"if": {"properties": {"type": {"const": line}}}, "then": {"required": [content]}}


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENTS:
        (folder / f"{name}.json").write_text(document(name), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
