"""What the daemon has said so far: panes from its watch stream, and beside them targets, windows and health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2s
from typing import Any, Final

from agtmux.client import Client

Pane = Mapping[str, Any]
Letter = Mapping[str, Any]
WAITING: Final = ("waiting_approval", "waiting_input")
_MOST_LETTERS: Final = 50


@dataclass(frozen=True, slots=True)
class Snapshot:
    # By identity, as the watch stream has them; only panes with an agent.
    panes: Mapping[tuple[str, ...], Pane] = field(default_factory=dict)
    targets: tuple[Mapping[str, Any], ...] = ()
    # By target, session and window.
    window_names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    health: Mapping[str, Any] | None = None
    # What agents have written to the user and nobody has read, the oldest first.
    letters: tuple[Letter, ...] = ()
    # Whether there has been a snapshot of this daemon. Before it, an empty list of panes says nothing.
    has_begun: bool = False
    # Why there is no daemon to ask; None while one answers.
    trouble: str | None = None

    def after(self, line: Mapping[str, Any]) -> Snapshot:
        """As the stream's next line leaves it. After a `reset` what was known stands until the next snapshot."""
        if line["type"] == "snapshot":
            panes = {_identity(item["identity"]): item for item in line["items"]}
            return replace(self, panes=panes, has_begun=True, trouble=None)
        if line["type"] != "delta":
            return self
        panes = dict(self.panes)
        for change in line["changes"]:
            key = _identity(change["identity"])
            if change["op"] == "upsert":
                panes[key] = change["item"]
            else:
                panes.pop(key, None)
        return replace(self, panes=panes, trouble=None)

    @property
    def is_up(self) -> bool:
        return self.has_begun and self.trouble is None

    def waits(self) -> list[Pane]:
        """Who waits for approval or input, the longest first."""
        return sorted((pane for pane in self.panes.values() if pane["state"] in WAITING), key=_since)

    def in_state(self, *states: str) -> list[Pane]:
        return sorted((pane for pane in self.panes.values() if pane["state"] in states), key=_since)


def asked_for(daemon: Client) -> tuple[Snapshot, str]:
    """By listings instead of a stream, and the daemon's time."""
    listing = daemon.get("/v1/panes")
    panes = {_identity(pane["identity"]): pane for pane in listing["items"]}
    return replace(Snapshot(panes, has_begun=True), **beside(daemon)), listing["generated_at"]


def beside(daemon: Client) -> dict[str, Any]:
    """What the stream does not tell: targets, names of windows, how the daemon is, what was written to the user."""
    windows = daemon.get("/v1/windows")["items"]
    letters = daemon.get(f"/v1/messages?to=user&status=queued&limit={_MOST_LETTERS}")["items"]
    return {
        "targets": tuple(daemon.get("/v1/targets")["items"]),
        "window_names": {_identity(window["identity"]): window["window_name"] for window in windows},
        "health": daemon.get("/v1/health"),
        "letters": tuple(reversed(letters)),
    }


def question_of(pane: Pane) -> str:
    """What it asks, or what it is about."""
    attention = pane["attention"]
    return str(attention["summary"] if attention else pane["title"])


def fingerprint_of(pane: Pane) -> str:
    attention = pane["attention"]
    return str((attention and attention["fingerprint"]) or "")


def wait_key(pane: Pane) -> str:
    """Of one wait: the same for as long as it asks the same. In doubt it is another, which nobody has put off yet."""
    question = blake2s(question_of(pane).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{pane['runtime_id']}:{pane['state_version']}:{question}"


def since(pane: Pane) -> float:
    """When it began to be so, in seconds since the epoch."""
    return _moment(pane["updated_at"])


def sent(letter: Letter) -> float:
    return _moment(letter["sent_at"])


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _since(pane: Pane) -> tuple[str, str]:
    return pane["updated_at"], pane["ref"]


def _identity(identity: Mapping[str, str]) -> tuple[str, ...]:
    """Of a pane or a window."""
    parts = ("target", "session_name", "window_id", "pane_id")
    return tuple(identity[part] for part in parts if part in identity)
