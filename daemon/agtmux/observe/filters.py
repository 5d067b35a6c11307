"""What a listing or a watch is about: its scope and the filters of a request, read once and applied to any scope."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Pane
from agtmux.domain.refs import SessionRef, parse_session_ref
from agtmux.domain.runtimes import TargetId
from agtmux.domain.states import NEEDS_ACTION, State
from agtmux.engine.apply import Record

E = TypeVar("E", bound=StrEnum)

_YES: Final = ("1", "true", "yes")
_NO: Final = ("", "0", "false", "no")


class Scope(StrEnum):
    PANES = "panes"
    WINDOWS = "windows"
    SESSIONS = "sessions"


class GroupBy(StrEnum):
    """What makes a session one: its target and name, or its name across targets."""

    TARGET_SESSION = "target-session"
    SESSION_NAME = "session-name"


@dataclass(frozen=True, slots=True)
class Filters:
    target: TargetId | None = None
    target_session: SessionRef | None = None
    session: str | None = None
    state: State | None = None
    agent: str | None = None
    needs_action: bool = False
    # Panes without an agent as well.
    all: bool = False

    def admits(self, pane: Pane, record: Record) -> bool:
        if not (self.all or record.runtime.has_agent):
            return False
        if self.target is not None and pane.target_id != self.target:
            return False
        if self.session is not None and pane.session_name != self.session:
            return False
        if self.target_session is not None and (pane.target_id, pane.session_name) != (
            self.target_session.target,
            self.target_session.session_name,
        ):
            return False
        if self.agent is not None and record.runtime.agent_type != self.agent:
            return False
        if self.state is not None and record.row.state is not self.state:
            return False
        return not self.needs_action or record.row.state in NEEDS_ACTION

    def as_json(self) -> dict[str, Any]:
        """As they were asked for, so that an answer tells what it is an answer to."""
        named = {
            "target": self.target,
            "target_session": None if self.target_session is None else str(self.target_session),
            "session": self.session,
            "state": None if self.state is None else self.state.value,
            "agent": self.agent,
            "needs_action": self.needs_action,
            "all": self.all,
        }
        return {name: value for name, value in named.items() if value not in (None, False)}

    def targets(self, known: Collection[TargetId]) -> list[TargetId]:
        """The targets the listing is about."""
        wanted = self.target or (TargetId(self.target_session.target) if self.target_session else None)
        return sorted(known) if wanted is None else [wanted]


@dataclass(frozen=True, slots=True)
class Subject:
    """All that a listing or a watch was asked to show. Two that are equal are shown the same."""

    scope: Scope = Scope.PANES
    filters: Filters = Filters()
    group_by: GroupBy = GroupBy.TARGET_SESSION

    def as_json(self) -> dict[str, Any]:
        merged = self.group_by is GroupBy.SESSION_NAME
        return self.filters.as_json() | ({"group_by": self.group_by.value} if merged else {})


def read_scope(name: str) -> Scope:
    return _one_of(Scope, "scope", name)


def read_subject(
    scope: Scope, query: Mapping[str, str], targets: Collection[TargetId], agents: Collection[str]
) -> Subject:
    if scope is not Scope.SESSIONS:
        return Subject(scope, read_filters(query, targets, agents))
    rest = {name: value for name, value in query.items() if name != "group_by"}
    group_by = _one_of(GroupBy, "group_by", query.get("group_by", GroupBy.TARGET_SESSION))
    return Subject(scope, read_filters(rest, targets, agents), group_by)


def read_filters(query: Mapping[str, str], targets: Collection[TargetId], agents: Collection[str]) -> Filters:
    """A misspelt name or value is an error that names it, never a list that is silently too long or too short."""
    unknown = sorted(set(query) - set(Filters.__dataclass_fields__))
    if unknown:
        raise AgtmuxError(ErrorCode.USAGE, f"there is no filter {unknown[0][:40]!r}")
    session_ref = query.get("target_session")
    filters = Filters(
        target=TargetId(query["target"]) if "target" in query else None,
        target_session=None if session_ref is None else parse_session_ref(session_ref),
        session=query.get("session"),
        state=read_state(query["state"]) if "state" in query else None,
        agent=query.get("agent"),
        needs_action=read_flag("needs_action", query),
        all=read_flag("all", query),
    )
    for target_id in filters.targets(targets):
        if target_id not in targets:
            raise AgtmuxError(
                ErrorCode.TARGET_NOT_FOUND,
                f"no target is called {target_id[:64]!r}; known are {', '.join(sorted(targets))}",
            )
    if filters.agent is not None and filters.agent not in (*agents, "none"):
        raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {filters.agent[:64]!r}; known are {', '.join(agents)}")
    return filters


def read_state(name: str) -> State:
    try:
        return State(name)
    except ValueError:
        raise AgtmuxError(ErrorCode.USAGE, f"{name[:40]!r} is not a state; known are {', '.join(State)}") from None


def _one_of(kind: type[E], what: str, name: str) -> E:
    try:
        return kind(name)
    except ValueError:
        raise AgtmuxError(ErrorCode.USAGE, f"{what} is {' or '.join(kind)}, not {name[:40]!r}") from None


def read_flag(name: str, query: Mapping[str, str]) -> bool:
    value = query.get(name, "").lower()
    if value not in _YES + _NO:
        raise AgtmuxError(ErrorCode.USAGE, f"{name} is 1 or 0, not {value[:40]!r}")
    return value in _YES
