"""Holds every answer that a test gets to its JSON Schema document.

Documents leave room for fields to come. Here they do not: an answer may have nothing in it that its document does not
name, or the document would fall behind without anyone noticing.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from agtmux.api.schemas import ROUTES

SHIPPED = Path(__file__).resolve().parents[2] / "resources" / "schemas"
WATCH = ("watch-panes", "watch-windows", "watch-sessions")
# Command, or command and its first word → the documents that its JSON may follow.
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("list", "panes"): ("panes",),
    ("list", "windows"): ("windows",),
    ("list", "sessions"): ("sessions",),
    ("target", "list"): ("targets",),
    ("target", "add"): ("target",),
    ("target", "connect"): ("target",),
    ("target", "remove"): ("target-removed",),
    ("log", "actions"): ("actions",),
    ("log",): ("said", "conversations", "logs"),
    ("team",): ("teams",),
    **{("message", name): ("messages",) for name in ("send", "broadcast", "list", "show", "reply", "read", "cancel")},
    ("demo",): ("demo-started", "demo-stopped"),
    ("status",): ("health",),
    ("watch",): WATCH,
    **{
        (name,): (name,)
        for name in ("wait", "bar", "hooks", "mcp", "explain", "doctor", "classify", "down", "menu", "board")
    },
    **{(name,): ("action",) for name in ("approve", "deny", "view-output", "attach", "send", "kill", "launch", "stop")},
}


def check_answer(method: str, path: str | None, status: int, content_type: str, body: bytes) -> None:
    """An answer of the daemon; `path` is None where the test has sent something that is no request."""
    if method == "HEAD" or not body:
        return
    if status >= 400:
        check(json.loads(body), ("error",))
    elif path is not None:
        lines = body.splitlines() if content_type == "application/x-ndjson" else [body]
        for line in lines:
            check(json.loads(line), _documents(method, path.partition("?")[0]))


def check_line(line: dict[str, Any]) -> None:
    check(line, WATCH)


def check_output(words: tuple[str, ...], output: str) -> None:
    """What a command has printed, if that was JSON."""
    is_json = bool({"--json", "json", "jsonl"} & set(words)) or words[:1] == ("classify",)
    if not is_json or "--help" in words:
        return
    for line in output.splitlines():
        content = json.loads(line)
        if content.keys() == {"error"}:
            check(content, ("error",))
        else:
            documents = COMMANDS.get(words[:2]) or COMMANDS.get(words[:1])
            assert documents is not None, f"which document is that of `agtmux {' '.join(words)}`? Add it to COMMANDS"
            check(content, documents)


def check(content: Any, documents: tuple[str, ...]) -> None:
    if any(_validator(name).is_valid(content) for name in documents):
        return
    for name in documents:
        why = best_match(_validator(name).iter_errors(content))
        assert why is None, f"not as {name}.json says, at {why.json_path}: {why.message[:500]}"


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    for definition in schema["$defs"].values():
        if "properties" in definition:
            definition.setdefault("additionalProperties", False)
    return schema


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(closed(json.loads((SHIPPED / f"{name}.json").read_text("utf-8"))))


def _documents(method: str, path: str) -> tuple[str, ...]:
    for (known, template), documents in ROUTES.items():
        if known == method and fits(path, template):
            return documents
    raise AssertionError(f"which document is that of {method} {path}? Add it to ROUTES")


def fits(path: str, template: str) -> bool:
    parts, wanted = path.split("/"), template.split("/")
    return len(parts) == len(wanted) and all(
        want in (part, "{name}", "{type}") for part, want in zip(parts, wanted, strict=True)
    )
