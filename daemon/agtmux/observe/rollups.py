"""Panes rolled up to windows and sessions: the most urgent state, who waits, who runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import PRECEDENCE, State
from agtmux.observe.views import PaneItem

_WAITING = (State.WAITING_APPROVAL.value, State.WAITING_INPUT.value)


def window_items(panes: Sequence[PaneItem], names: dict[tuple[str, str], str]) -> list[dict[str, Any]]:
    """`names` has the name of a window by its target and id."""

    def place(pane: PaneItem) -> tuple[str, ...]:
        return pane.identity.target, pane.identity.session_name, pane.identity.window_id

    def show(key: tuple[str, ...], members: list[PaneItem]) -> dict[str, Any]:
        target, session_name, window_id = key
        identity = {"target": target, "session_name": session_name, "window_id": window_id}
        return {"identity": identity, "window_name": names.get((target, window_id), ""), **_roll_up(members)}

    return _grouped(panes, place, show)


def session_items(panes: Sequence[PaneItem], group_by: str) -> list[dict[str, Any]]:
    """By target and session, or across targets by the name alone where that was asked for."""
    if group_by not in ("target-session", "session-name"):
        raise AgtmuxError(ErrorCode.USAGE, f"group_by is target-session or session-name, not {group_by[:40]!r}")
    across = group_by == "session-name"

    def place(pane: PaneItem) -> tuple[str, ...]:
        session = pane.identity.session_name
        return (session,) if across else (pane.identity.target, session)

    def show(key: tuple[str, ...], members: list[PaneItem]) -> dict[str, Any]:
        targets = Counter(pane.identity.target for pane in members)
        by_target = {
            target: _roll_up([pane for pane in members if pane.identity.target == target]) for target in sorted(targets)
        }
        identity = {"session_name": key[0]} if across else {"target": key[0], "session_name": key[1]}
        windows = len({(pane.identity.target, pane.identity.window_id) for pane in members})
        return {"identity": identity, "windows": windows, **_roll_up(members), "by_target": by_target}

    return _grouped(panes, place, show)


def _grouped(
    panes: Sequence[PaneItem],
    place: Callable[[PaneItem], tuple[str, ...]],
    show: Callable[[tuple[str, ...], list[PaneItem]], dict[str, Any]],
) -> list[dict[str, Any]]:
    groups: dict[tuple[str, ...], list[PaneItem]] = {}
    for pane in panes:
        groups.setdefault(place(pane), []).append(pane)
    items = [show(key, groups[key]) for key in sorted(groups)]
    return sorted(items, key=lambda item: PRECEDENCE[State(item["top_state"])])


def _roll_up(members: Sequence[PaneItem]) -> dict[str, Any]:
    states = Counter(pane.state for pane in members)
    return {
        "top_state": min(states, key=lambda state: PRECEDENCE[State(state)]),
        "panes": len(members),
        "waiting": sum(states[state] for state in _WAITING),
        "running": states[State.RUNNING.value],
        "by_state": {state.value: states[state.value] for state in State if states[state.value]},
        "by_agent": dict(sorted(Counter(pane.agent_type for pane in members).items())),
        "updated_at": max(pane.updated_at for pane in members),
    }
