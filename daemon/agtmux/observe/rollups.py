"""Panes as they are, or rolled up to windows and sessions: the most urgent state, who waits, who runs.

A scope says which panes belong together and how they look as one. A pane by itself is the simplest case of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from agtmux.domain.states import PRECEDENCE, State
from agtmux.observe.filters import GroupBy, Scope, Subject
from agtmux.observe.views import PaneIdentity, PaneItem

_WAITING: Final = (State.WAITING_APPROVAL.value, State.WAITING_INPUT.value)
# Sorts as a listing does.
Place = tuple[Any, ...]


class WindowIdentity(msgspec.Struct, frozen=True):
    target: str
    session_name: str
    window_id: str


class SessionIdentity(msgspec.Struct, frozen=True, kw_only=True):
    # Absent where sessions of one name are merged across targets.
    target: str | UnsetType = UNSET
    session_name: str


class RollUp(msgspec.Struct, frozen=True, kw_only=True):
    top_state: str
    panes: int
    waiting: int
    running: int
    by_state: dict[str, int]
    by_agent: dict[str, int]
    updated_at: str


class WindowItem(RollUp, frozen=True, kw_only=True):
    identity: WindowIdentity
    window_name: str


class SessionItem(RollUp, frozen=True, kw_only=True):
    identity: SessionIdentity
    windows: int
    by_target: dict[str, RollUp]


Identity = PaneIdentity | WindowIdentity | SessionIdentity
Item = PaneItem | WindowItem | SessionItem


class Member(NamedTuple):
    """A pane, and what only its window tells."""

    item: PaneItem
    window_name: str


class Grouping(NamedTuple):
    """`place` tells where a pane belongs, in the order of a listing; `show` makes one item of all in a place."""

    place: Callable[[PaneItem], Place]
    show: Callable[[Sequence[Member]], Item]


def grouping(subject: Subject) -> Grouping:
    if subject.scope is Scope.SESSIONS and subject.group_by is GroupBy.SESSION_NAME:
        return _ACROSS
    return _GROUPINGS[subject.scope]


def urgency(item: Item) -> int:
    return PRECEDENCE[State(item.state if isinstance(item, PaneItem) else item.top_state)]


def _pane_place(pane: PaneItem) -> Place:
    # All of the identity, as a pane that moves is another item; by its number first, as in a listing.
    where = pane.identity
    return where.target, int(where.pane_id[1:]), where.session_name, where.window_id


def _pane(members: Sequence[Member]) -> Item:
    return members[0].item


def _window_place(pane: PaneItem) -> Place:
    return pane.identity.target, pane.identity.session_name, pane.identity.window_id


def _window(members: Sequence[Member]) -> Item:
    first = members[0].item.identity
    return WindowItem(
        identity=WindowIdentity(first.target, first.session_name, first.window_id),
        window_name=members[0].window_name,
        **_figures([member.item for member in members]),
    )


def _session_place(pane: PaneItem) -> Place:
    return pane.identity.target, pane.identity.session_name


def _session(members: Sequence[Member]) -> Item:
    first = members[0].item.identity
    return _of_sessions(members, SessionIdentity(target=first.target, session_name=first.session_name))


def _name_place(pane: PaneItem) -> Place:
    return (pane.identity.session_name,)


def _name(members: Sequence[Member]) -> Item:
    return _of_sessions(members, SessionIdentity(session_name=members[0].item.identity.session_name))


def _of_sessions(members: Sequence[Member], identity: SessionIdentity) -> SessionItem:
    panes = [member.item for member in members]
    targets = sorted({pane.identity.target for pane in panes})
    return SessionItem(
        identity=identity,
        windows=len({(pane.identity.target, pane.identity.window_id) for pane in panes}),
        by_target={
            target: RollUp(**_figures([pane for pane in panes if pane.identity.target == target])) for target in targets
        },
        **_figures(panes),
    )


def _figures(panes: Sequence[PaneItem]) -> dict[str, Any]:
    states = Counter(pane.state for pane in panes)
    return {
        "top_state": min(states, key=lambda state: PRECEDENCE[State(state)]),
        "panes": len(panes),
        "waiting": sum(states[state] for state in _WAITING),
        "running": states[State.RUNNING.value],
        "by_state": {state.value: states[state.value] for state in State if states[state.value]},
        "by_agent": dict(sorted(Counter(pane.agent_type for pane in panes).items())),
        "updated_at": max(pane.updated_at for pane in panes),
    }


_GROUPINGS: Final = {
    Scope.PANES: Grouping(_pane_place, _pane),
    Scope.WINDOWS: Grouping(_window_place, _window),
    Scope.SESSIONS: Grouping(_session_place, _session),
}
_ACROSS: Final = Grouping(_name_place, _name)
