"""Refs as people type them: as the table shows a pane, its number alone, or its agent's name. The daemon takes whole
ones only."""

from __future__ import annotations

from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode


def full_ref(daemon: Client, text: str) -> str:
    """The ref that is meant. What is none is left for the daemon to refuse."""
    if text.startswith(("pane:", "runtime:")):
        return text
    items = daemon.get("/v1/panes?all=1")["items"]
    if "%" not in text:
        # A name, without its target where only one has it.
        named = [item for item in items if item.get("name") == text] or [
            item for item in items if (item.get("name") or "").partition("@")[0] == text
        ]
        if len(named) > 1:
            names = ", ".join(str(item["name"]) for item in named)
            refs = [item["ref"] for item in named]
            raise AgtmuxError(
                ErrorCode.REF_AMBIGUOUS, f"{text[:64]} is an agent of several; say which: {names}", {"refs": refs}
            )
        return str(named[0]["ref"]) if named else text
    shown: dict[str, dict[str, str]] = {item["ref"]: item["identity"] for item in items}
    meant = [ref for ref, identity in shown.items() if text in (ref.removeprefix("pane:"), _as_shown(identity))]
    target, _, pane_id = text.rpartition("/")
    if "/" not in target:
        # `%3`, or `host/%3` where several targets have one.
        meant = [ref for ref, it in shown.items() if it["pane_id"] == pane_id and target in ("", it["target"])]
    if len(meant) > 1:
        raise AgtmuxError(
            ErrorCode.REF_AMBIGUOUS,
            f"{text[:64]} is a pane of several; say which: {', '.join(map(_short, meant))}",
            {"refs": meant},
        )
    if meant:
        return meant[0]
    if "/" in target:
        return f"pane:{text}"
    raise AgtmuxError(ErrorCode.REF_NOT_FOUND, f"no pane is called {text[:64]!r}; see agtmux list panes --all")


def _short(ref: str) -> str:
    parts = ref.removeprefix("pane:").split("/")
    return f"{parts[0]}/{parts[-1]}"


def _as_shown(identity: dict[str, str]) -> str:
    return "/".join(identity[part] for part in ("target", "session_name", "window_id", "pane_id"))
