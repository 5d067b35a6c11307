"""Requests for actions: what they look like, and what comes back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from agtmux.actions.desk import Answer, Asked, PaneKey
from agtmux.actions.guards import Conditions
from agtmux.actions.history import Wanted
from agtmux.actions.ledger import Action
from agtmux.domain.durations import parse_duration
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import HOST
from agtmux.domain.refs import PaneRef, RuntimeRef
from agtmux.domain.runtimes import PaneId, RuntimeId, TargetId
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.messages.directory import Role
from agtmux.observe.filters import read_state
from agtmux.observe.lookup import resolve, resolve_ref
from agtmux.observe.world import World
from agtmux.worktrees.order import Launched, Order

MOST_ACTIONS: Final = 1_000


class ActionAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What every action takes."""

    request_ref: str
    ref: str
    if_runtime: str | None = None
    if_state: str | None = None
    if_state_version: int | None = None
    if_updated_within: Annotated[str, msgspec.Meta(max_length=32)] | None = None
    force_stale: bool = False
    actor: Annotated[str, msgspec.Meta(max_length=64)] = ""

    def as_asked(self, action_type: str, world: World, key: PaneKey | None = None) -> Asked:
        """`key` is the pane, where that is known and the ref leads nowhere any more."""
        own = (name for name in self.__struct_fields__ if name not in ActionAsked.__struct_fields__)
        parameters = {name: getattr(self, name) for name in own}
        state = None if self.if_state is None else read_state(self.if_state)
        within = None if self.if_updated_within is None else parse_duration(self.if_updated_within)
        conditions = Conditions(self.if_runtime, state, self.if_state_version, within, self.force_stale)
        if key is None:
            key = resolve(world, self.ref)
        pane = world.panes.get(key)
        ref = "" if pane is None else str(PaneRef(pane.target_id, pane.session_name, pane.window_id, pane.pane_id))
        return Asked(action_type, self.request_ref, key, conditions, parameters, self.actor, ref)


class SendAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # One of the two.
    text: str | None = None
    key: Annotated[str, msgspec.Meta(max_length=32)] | None = None
    enter: bool = False
    # Everything is pasted; the flag is there for those who say so.
    paste: bool = True
    append: bool = False
    # Meant for a shell, or another program that is no agent; without it such a pane is given nothing.
    shell: bool = False

    def __post_init__(self) -> None:
        if (self.text is None) == (self.key is None):
            raise ValueError("send takes a text or a key, and not both")


class KillAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    mode: Literal["key", "signal"] = "key"
    signal: Literal["INT", "TERM", "KILL"] = "INT"
    # Nothing is done; what would keep it from being done is the answer.
    only_check: bool = False


class OutputAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    lines: int = 200


class AttachAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # Of the caller's environment: which tmux server and which pane it is in.
    tmux: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    tmux_pane: Annotated[str, msgspec.Meta(pattern=r"\A(%[0-9]{1,18})?\Z")] = ""
    # The terminal to move, as the tmux server there calls it, or the pane's if the caller is in none; without one, the
    # terminal that shows the caller.
    client: Annotated[str, msgspec.Meta(max_length=256)] = ""
    # Also from within another tmux server.
    nested: bool = False
    # The command is only told.
    only_print: bool = False


class StopAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # With its branch left as it is, and only if nothing would be lost.
    remove_worktree: bool = False


class LaunchAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Unlike every other action it is about nobody who is there."""

    request_ref: str
    agent: str
    target: str = HOST
    cwd: str
    branch: str = ""
    worktree: bool = False
    session: str = ""
    role: str = ""
    prompt: str = ""
    start_server: bool = False
    actor: Annotated[str, msgspec.Meta(max_length=64)] = ""

    def as_order(self) -> Order:
        return Order(
            agent=self.agent,
            target_id=TargetId(self.target),
            cwd=self.cwd,
            branch=self.branch,
            is_apart=self.worktree,
            session=self.session,
            role=Role(self.role) if self.role else None,
            prompt=self.prompt,
            may_start_server=self.start_server,
        )


class AnswerAsked(ActionAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # The fingerprint of the dialog that is meant, as a listing tells it.
    if_dialog: Annotated[str, msgspec.Meta(max_length=64)] | None = None


class ApproveAsked(AnswerAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    # Approves also what is not shown whole.
    partial: bool = False


class DenyAsked(AnswerAsked, forbid_unknown_fields=True, frozen=True, kw_only=True):
    reason: str = ""


ACTIONS: Final[dict[str, type[ActionAsked]]] = {
    "attach": AttachAsked,
    "send": SendAsked,
    "view-output": OutputAsked,
    "kill": KillAsked,
    "stop": StopAsked,
    "approve": ApproveAsked,
    "deny": DenyAsked,
}


def answer_json(answer: Answer) -> dict[str, Any]:
    return {**action_json(answer.action), "is_replay": answer.is_replay, **answer.content}


def launched_json(launched: Launched) -> dict[str, Any]:
    return {**action_json(launched.action), "is_replay": launched.is_replay, **launched.content}


def action_json(action: Action) -> dict[str, Any]:
    """As it is told; a fingerprint of the request is nobody's business."""
    about = {name: value for name, value in (action.metadata or {}).items() if name != "payload_sha256"}
    # As they were then. Those that were written before these were kept have none.
    agent_type, ref = about.pop("agent_type", None), about.pop("ref", None) or None
    return {
        "action_id": action.action_id,
        "action_type": action.action_type,
        "request_ref": action.request_ref,
        "target": action.target_id,
        "pane_id": action.pane_id,
        "runtime_id": action.runtime_id,
        "agent_type": agent_type,
        "ref": ref,
        "requested_at": format_timestamp(action.requested_at),
        "completed_at": None if action.completed_at is None else format_timestamp(action.completed_at),
        "result_code": action.result_code,
        "error_code": action.error_code,
        "about": about,
    }


_ASKED: Final = ("action_id", "ref", "type", "since", "limit")


def read_query(
    query: Mapping[str, str], action_types: Collection[str], now: Timestamp, world: World
) -> tuple[str | None, Wanted, int, dict[str, str]]:
    """The one action that is asked for, or which and how many; and the filters as they were asked for."""
    if unknown := sorted(set(query) - set(_ASKED)):
        raise AgtmuxError(ErrorCode.USAGE, f"there is no filter {unknown[0][:40]!r}; known are {', '.join(_ASKED)}")
    limit = query.get("limit", "50")
    if not limit.isdecimal() or not 1 <= int(limit) <= MOST_ACTIONS:
        raise AgtmuxError(ErrorCode.USAGE, f"limit may be 1 to {MOST_ACTIONS}")
    action_type = query.get("type")
    if action_type is not None and action_type not in action_types:
        known = ", ".join(action_types)
        raise AgtmuxError(ErrorCode.USAGE, f"no action is called {action_type[:40]!r}; known are {known}")
    ref = resolve_ref(world, query["ref"]) if "ref" in query else None
    wanted = Wanted(
        runtime_id=RuntimeId(ref.runtime_id) if isinstance(ref, RuntimeRef) else None,
        # Wherever the pane is by now, or was then: its id stays with it.
        pane=(TargetId(ref.target), PaneId(ref.pane_id)) if isinstance(ref, PaneRef) else None,
        action_type=action_type,
        since=Timestamp(now - parse_duration(query["since"])) if "since" in query else None,
    )
    return query.get("action_id"), wanted, int(limit), {name: query[name] for name in _ASKED[:-1] if name in query}
