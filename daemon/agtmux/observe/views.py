"""What is known, in the shape it is shown: pane items, summaries, health of targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from agtmux.domain.events import Attention
from agtmux.domain.panes import Pane, Target
from agtmux.domain.refs import PaneRef
from agtmux.domain.states import NEEDS_ACTION, PRECEDENCE, Reason, State
from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.engine.apply import Record
from agtmux.engine.resolve import Role
from agtmux.observe.filters import Filters
from agtmux.observe.world import PaneKey, World

SCHEMA_VERSION = 1


class PaneIdentity(msgspec.Struct, frozen=True):
    target: str
    session_name: str
    window_id: str
    pane_id: str


class AttentionItem(msgspec.Struct, frozen=True):
    kind: str
    summary: str
    detail: str | None
    options: list[str]
    # Of the dialog on the screen, once it was seen; an answer may be meant for just that one.
    fingerprint: str | None
    # The summary and the detail hold all that an approval would be for. Otherwise `approve` needs `partial`.
    whole: bool
    incomplete_reason: str | None
    # The summary alone holds all of it.
    brief: bool


class RememberedItem(msgspec.Struct, frozen=True):
    state: str
    reason_code: str
    updated_at: str


class PaneItem(msgspec.Struct, frozen=True):
    identity: PaneIdentity
    ref: str
    runtime_id: str
    # What the agent is called; None where there is none.
    name: str | None
    agent_type: str
    agent_version: str | None
    state: str
    reason_code: str
    confidence: str
    state_version: int
    source: str | None
    updated_at: str
    # Since when it is so. `updated_at`, but for an agent that is idle because its turn is over: since that ended.
    state_since: str
    title: str
    cwd: str
    branch: str | None
    attention: AttentionItem | None
    # While `reason_code` is `not_observed_yet`: what was known of it before agtmuxd started.
    remembered: RememberedItem | None
    # The top of the git work tree that it is in; None where it is in none.
    worktree_path: str | None
    # What the agent calls its session; None where nothing shows it.
    session_id: str | None
    # What the agent's adapter can tell, by flag; None where there is no agent. What it does not support is not offered.
    capabilities: dict[str, bool] | None


class TargetItem(msgspec.Struct, frozen=True):
    name: str
    kind: str
    # As ssh takes it; None for a local one.
    ssh_target: str | None
    tmux_socket: str
    health: str
    is_default: bool
    panes: int
    # What keeps it from being looked at.
    error: dict[str, str] | None
    # What works less well than it could.
    warning: str | None
    # When it was last looked at with success; None if it never was.
    last_seen_at: str | None


class Summary(msgspec.Struct, frozen=True):
    total: int
    by_state: dict[str, int]
    by_agent: dict[str, int]
    by_target: dict[str, int]
    needs_action: int


def pane_item(world: World, key: PaneKey) -> PaneItem | None:
    """The item of that pane. It is made anew only when something that it is made from has changed."""
    stored, pane = world.records.get(key), world.panes.get(key)
    if stored is None or pane is None:
        return None
    runtime = stored.runtime
    # All that an item depends on. Records and panes are immutable, so most comparisons are of identity.
    made_from = (
        stored,
        world.remembers(stored),
        pane,
        world.name_of(runtime) if runtime.has_agent else None,
        world.sessions.get(runtime.runtime_id),
        world.flags.get(runtime.agent_type),
    )
    before, item = world.items.get(key, (None, None))
    if before != made_from or not isinstance(item, PaneItem):
        item = _made_item(world.shown(key) or stored, *made_from)
        world.items[key] = (made_from, item)
    return item


def _made_item(
    record: Record,
    stored: Record,
    is_remembered: bool,
    pane: Pane,
    name: str | None,
    session_id: str | None,
    flags: dict[str, bool] | None,
) -> PaneItem:
    """`record` is what is shown of `stored`."""
    row, runtime = record.row, record.runtime
    ref = PaneRef(pane.target_id, pane.session_name, pane.window_id, pane.pane_id)
    return PaneItem(
        identity=PaneIdentity(pane.target_id, pane.session_name, pane.window_id, pane.pane_id),
        ref=str(ref),
        runtime_id=runtime.runtime_id,
        name=name,
        agent_type=runtime.agent_type,
        agent_version=runtime.agent_version,
        state=row.state.value,
        reason_code=str(row.reason_code),
        confidence=row.confidence.value,
        state_version=row.state_version,
        source=None if row.source is None else row.source.value,
        updated_at=format_timestamp(row.updated_at),
        state_since=format_timestamp(_since(record)),
        title=pane.title,
        cwd=pane.cwd,
        branch=pane.branch or None,
        attention=_attention(row.attention, record.dialog),
        remembered=_remembered(stored) if is_remembered else None,
        worktree_path=pane.worktree or None,
        session_id=session_id,
        capabilities=flags,
    )


def _remembered(record: Record) -> RememberedItem:
    row = record.row
    return RememberedItem(row.state.value, str(row.reason_code), format_timestamp(row.updated_at))


def _since(record: Record) -> Timestamp:
    row = record.row
    if row.reason_code != Reason.COMPLETED_DEMOTED:
        return row.updated_at
    # An agent at rest does not begin to rest anew when time turns `completed` into `idle`.
    ended = (link.seen_at for link in row.evidence if link.role is Role.DECIDES and link.state is State.COMPLETED)
    return next(ended, row.updated_at)


class EvidenceItem(msgspec.Struct, frozen=True):
    role: str
    source: str
    event_type: str
    event_id: str
    state: str
    reason_code: str
    seen_at: str
    note: str | None


def evidence_items(record: Record) -> list[EvidenceItem]:
    """What was told and seen, and the part each played: what decides comes first."""
    return [
        EvidenceItem(
            role=link.role.value,
            source=link.source.value,
            event_type=link.event_type,
            event_id=link.event_id,
            state=link.state.value,
            reason_code=str(link.reason_code),
            seen_at=format_timestamp(link.seen_at),
            note=None if link.note is None else str.__str__(link.note),
        )
        for link in record.row.evidence
    ]


def pane_items(world: World, filters: Filters) -> list[PaneItem]:
    """Most urgent first, then by place."""
    keys = [
        key
        for key in world.records
        if (record := world.shown(key)) is not None
        and (pane := world.panes.get(key)) is not None
        and filters.admits(pane, record)
    ]
    items = [item for key in sorted(keys, key=_place) if (item := pane_item(world, key)) is not None]
    return sorted(items, key=lambda item: PRECEDENCE[State(item.state)])


def summarise(items: Iterable[PaneItem]) -> Summary:
    listed = list(items)
    states = Counter(item.state for item in listed)
    return Summary(
        total=len(listed),
        by_state={state.value: states[state.value] for state in State if states[state.value]},
        by_agent=dict(sorted(Counter(item.agent_type for item in listed).items())),
        by_target=dict(sorted(Counter(item.identity.target for item in listed).items())),
        needs_action=sum(states[state.value] for state in NEEDS_ACTION),
    )


def target_item(world: World, target: Target, error: dict[str, str] | None, warning: str | None) -> TargetItem:
    seen_at = world.seen_at.get(target.target_id, target.last_seen_at)
    return TargetItem(
        name=target.target_id,
        kind=target.kind.value,
        ssh_target=target.connection_ref or None,
        tmux_socket=target.tmux_socket,
        health=target.health.value,
        is_default=target.is_default,
        panes=sum(key[0] == target.target_id for key in world.panes),
        error=error,
        warning=warning,
        last_seen_at=None if seen_at is None else format_timestamp(seen_at),
    )


def _attention(attention: Attention | None, dialog: str | None) -> AttentionItem | None:
    if attention is None:
        return None
    return AttentionItem(
        kind=attention.kind,
        summary=str.__str__(attention.summary),
        detail=None if attention.detail is None else str.__str__(attention.detail),
        options=[str.__str__(option) for option in attention.options],
        fingerprint=dialog,
        whole=attention.is_whole,
        incomplete_reason=attention.incomplete,
        brief=attention.is_brief,
    )


def _place(key: PaneKey) -> tuple[str, int]:
    return key[0], int(key[1][1:])
