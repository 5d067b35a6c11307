"""Snapshots for the tests of the model and of everything that draws it."""

from datetime import UTC, datetime
from typing import Any

from AgtmuxBar.snapshot import Snapshot

# The moment at which everything in these tests is looked at.
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
HEALTH = {"version": "0.1.0", "pid": 4711, "status": "ok"}


def pane(
    number: int = 1,
    state: str = "waiting_approval",
    *,
    asks: str | None = "make deploy",
    agent: str = "claude",
    target: str = "host",
    session: str = "work",
    window: str = "@1",
    age: float = 30.0,
    version: int = 3,
    fingerprint: str | None = "f00d",
    title: str = "deploy it",
    runtime: str | None = None,
    detail: str | None = None,
    options: tuple[str, ...] = (),
    whole: bool = True,
    brief: bool = True,
) -> dict[str, Any]:
    quoted = session.replace("%", "%25").replace("/", "%2F")
    kind = {"waiting_input": "question", "error": "error"}.get(state, "approval")
    attention = {
        "kind": kind,
        "summary": asks,
        "detail": detail,
        "options": list(options),
        "fingerprint": fingerprint,
        "whole": whole,
        "incomplete_reason": None if whole else "not_on_screen",
        "brief": whole and brief,
    }
    asking = asks is not None and state in ("waiting_approval", "waiting_input", "error")
    return {
        "identity": {"target": target, "session_name": session, "window_id": window, "pane_id": f"%{number}"},
        "ref": f"pane:{target}/{quoted}/{window}/%{number}",
        "runtime_id": runtime or f"{number:064x}",
        "agent_type": agent,
        "agent_version": None,
        "state": state,
        "reason_code": "told",
        "confidence": "high",
        "state_version": version,
        "source": "hook",
        "updated_at": (updated_at := datetime.fromtimestamp(NOW - age, UTC).isoformat()),
        "state_since": updated_at,
        "remembered": None,
        "title": title,
        "cwd": "/src/shop",
        "branch": None,
        "worktree_path": None,
        "session_id": None,
        "capabilities": None,
        "attention": attention if asking else None,
    }


def letter(number: int = 1, *, text: str = "the labels are printed", age: float = 30.0) -> dict[str, Any]:
    """What an agent has written to the user; as much of it as is shown."""
    return {
        "message_id": f"{number:016x}",
        "from_agent": "claude-3",
        "type": "info",
        "priority": "normal",
        "content": text,
        "sent_at": datetime.fromtimestamp(NOW - age, UTC).isoformat(),
    }


def target(name: str = "host", error: str | None = None) -> dict[str, Any]:
    told = None if error is None else {"target": name, "code": "E_TARGET_UNREACHABLE", "message": error}
    return {
        "name": name,
        "kind": "ssh" if error else "local",
        "ssh_target": name if error else None,
        "tmux_socket": "",
        "health": "down" if error else "ok",
        "is_default": name == "host",
        "panes": 0,
        "error": told,
        "warning": None,
    }


def snapshot(*panes: dict[str, Any], **more: Any) -> Snapshot:
    by_identity = {tuple(each["identity"].values()): each for each in panes}
    return Snapshot(by_identity, **{"targets": (target(),), "health": HEALTH, "has_begun": True} | more)


def some_panes() -> tuple[dict[str, Any], ...]:
    """A working day: two who wait, one who has failed, several at work, one of them elsewhere."""
    return (
        pane(1, "waiting_approval", asks="make deploy", age=250, detail="Ships it", options=("Yes", "No")),
        pane(2, "waiting_input", asks="Which database?", agent="codex", age=30, window="@2"),
        pane(3, "running", agent="gemini", title="fix the cart", window="@2"),
        pane(4, "error", asks="Too many requests", agent="copilot", session="api", age=4000),
        pane(5, "idle", agent="codex", session="api", title="metrics"),
        pane(6, "completed", target="vm1", session="train", title="evaluate"),
        pane(7, "unknown", agent="cursor", target="vm1", session="train", title=""),
    )


def some_snapshot(**more: Any) -> Snapshot:
    names = {("host", "work", "@1"): "shop", ("host", "work", "@2"): "cart", ("host", "api", "@1"): "api"}
    targets = (target(), target("vm1"), target("vm2", "ssh: connect to host vm2: connection refused"))
    return snapshot(*some_panes(), window_names=names, targets=targets, **more)
