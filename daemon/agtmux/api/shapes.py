"""What answers look like that are no listing, as types, for the schemas made from them.

What the parts have types for is taken from there; the rest is written down here, and tests hold every answer to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from agtmux.actions.history import ActionEvent
from agtmux.doctor.findings import Level
from agtmux.domain.states import Health
from agtmux.observe.views import EvidenceItem, PaneItem, TargetItem
from agtmux.worktrees.items import WorktreeItem


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer of the daemon begins with."""

    schema_version: Literal[1]
    generated_at: str


class Failure(msgspec.Struct, frozen=True):
    # There may be new ones at any time.
    code: Annotated[str, msgspec.Meta(pattern="^E_[A-Z_]+$")]
    message: str
    details: dict[str, Any]


class ErrorAnswer(msgspec.Struct, frozen=True):
    error: Failure


# How the daemon is


class TargetError(msgspec.Struct, frozen=True):
    target: str
    code: str
    message: str


class TargetHealth(msgspec.Struct, frozen=True):
    name: str
    health: Health
    error: TargetError | None
    # Why it is degraded although it answers.
    warning: str | None


class DatabaseHealth(msgspec.Struct, frozen=True):
    notice: str | None
    bytes: int
    commits: int
    failed_commits: int


class ClockHealth(msgspec.Struct, frozen=True):
    jumps: int
    ahead_seconds: int


class HealthAnswer(Answer, frozen=True, kw_only=True):
    status: Literal["ok", "degraded"]
    version: str
    pid: int
    uptime_seconds: int
    state_directory: str
    database: DatabaseHealth
    clock: ClockHealth
    events: dict[str, int]
    pending_bind: int
    refused: dict[str, int]
    spool: dict[str, int]
    streams: int
    waiting_hooks: int
    failures: dict[str, int]
    targets: list[TargetHealth]


class FindingItem(msgspec.Struct, frozen=True):
    group: str
    level: Level
    code: str
    message: str
    mend: str | None
    target: str | None
    agent: str | None


class DoctorSummary(msgspec.Struct, frozen=True):
    ok: int
    note: int
    warning: int
    problem: int


class DoctorAnswer(Answer, frozen=True, kw_only=True):
    summary: DoctorSummary
    items: list[FindingItem]


# Panes and targets


class WaitingHook(msgspec.Struct, frozen=True):
    event_id: str
    since: str


class ExplainAnswer(Answer, frozen=True, kw_only=True):
    item: PaneItem
    evidence: list[EvidenceItem]
    waiting_hook: WaitingHook | None


class HereAnswer(Answer, frozen=True, kw_only=True):
    target: str | None


class PreviewAnswer(Answer, frozen=True, kw_only=True):
    runtime_id: str
    output: str


class TargetAnswer(Answer, frozen=True, kw_only=True):
    item: TargetItem


class RemovedAnswer(Answer, frozen=True, kw_only=True):
    removed: str
    # What of agtmux is still on its machine.
    warnings: list[str]


class HookItem(msgspec.Struct, frozen=True):
    """What became of one agent's hooks; with an error there is nothing else."""

    agent: str
    error: Failure | None
    path: str | UnsetType = UNSET
    added: list[str] | UnsetType = UNSET
    already_there: list[str] | UnsetType = UNSET
    replaced: list[str] | UnsetType = UNSET
    removed: list[str] | UnsetType = UNSET
    missing: list[str] | UnsetType = UNSET
    stale: list[str] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    backup: str | UnsetType | None = UNSET
    left_out: list[str] | UnsetType = UNSET
    version: str | UnsetType | None = UNSET
    off: list[str] | UnsetType = UNSET
    lacking: list[str] | UnsetType = UNSET
    surplus: list[str] | UnsetType = UNSET
    changed: bool | UnsetType = UNSET


class HooksAnswer(Answer, frozen=True, kw_only=True):
    action: Literal["install", "uninstall", "status"]
    target: str
    items: list[HookItem]


class McpItem(msgspec.Struct, frozen=True):
    """What stands under the bridge's name in one agent's settings; with an error there is nothing else."""

    agent: str
    error: Failure | None
    path: str | UnsetType = UNSET
    entry: Literal["registered", "absent", "outdated", "abandoned", "other_instance", "foreign"] | UnsetType = UNSET
    changed: bool | UnsetType = UNSET
    socket: str | UnsetType | None = UNSET
    warnings: list[str] | UnsetType = UNSET
    backup: str | UnsetType | None = UNSET


class McpConsent(msgspec.Struct, frozen=True):
    """Whether the bridge may stand in agents' settings on this machine; null where the user has not decided."""

    register: bool | None
    # Where it was decided for an agent by name.
    agents: dict[str, bool]
    decided_by: Literal["config", "user"] | None


class McpAnswer(Answer, frozen=True, kw_only=True):
    action: Literal["register", "unregister", "status"]
    target: str
    items: list[McpItem]
    consent: McpConsent


# Events and decisions


class ReceiptAnswer(Answer, frozen=True, kw_only=True):
    event_id: str
    status: str
    runtime_id: str | None
    reason_code: str | None


class BatchItem(msgspec.Struct, frozen=True):
    """A receipt, or with the status `refused` an error and nothing else."""

    status: str
    event_id: str | UnsetType = UNSET
    runtime_id: str | UnsetType | None = UNSET
    reason_code: str | UnsetType | None = UNSET
    error: Failure | UnsetType = UNSET


class BatchAnswer(Answer, frozen=True, kw_only=True):
    results: list[BatchItem]


class DecisionAnswer(Answer, frozen=True, kw_only=True):
    event_id: str
    decision: Literal["allow", "deny"] | None
    answer: str | None
    over: str | None


# Actions


class ActionShown(msgspec.Struct, frozen=True, kw_only=True):
    action_id: str
    action_type: str
    request_ref: str
    target: str
    pane_id: str
    runtime_id: str
    agent_type: str | None
    ref: str | None
    requested_at: str
    completed_at: str | None
    result_code: str
    error_code: str | None
    # What each type of action writes down of itself, and who asked.
    about: dict[str, Any]


class ActionItem(ActionShown, frozen=True, kw_only=True):
    # Only if it was asked for by its id.
    events: list[ActionEvent] | UnsetType = UNSET


class ActionAnswer(ActionShown, frozen=True, kw_only=True):
    """What each type of action was asked for comes beside these: `output`, `question` and others."""

    schema_version: Literal[1]
    generated_at: str
    is_replay: bool


class ActionFilters(msgspec.Struct, frozen=True):
    action_id: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    since: str | UnsetType = UNSET


class Total(msgspec.Struct, frozen=True):
    total: int


class ActionListing(Answer, frozen=True, kw_only=True):
    filters: ActionFilters
    summary: Total
    items: list[ActionItem]


class WorktreeFilters(msgspec.Struct, frozen=True):
    target: str | UnsetType = UNSET


class WorktreeListing(Answer, frozen=True, kw_only=True):
    filters: WorktreeFilters
    summary: Total
    partial: bool
    target_errors: list[TargetError]
    items: list[WorktreeItem]


class DiffAnswer(Answer, frozen=True, kw_only=True):
    target: str
    path: str
    branch: str | None
    diff: str
    # It is longer than that.
    is_cut: bool
    untracked: list[str]


# The board


class BoardAnswer(Answer, frozen=True, kw_only=True):
    is_open: bool
    url: str | None
    warnings: list[str]
    version: str
    # What may be asked for beside what every agtmux has.
    features: list[str]
    # Of `open`: it signs a browser in, once and within a minute.
    login_url: str | UnsetType = UNSET
    # Of `token` alone.
    token: str | UnsetType = UNSET


class BoardLogin(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    # The half of the session that is no cookie; None after a logout.
    key: str | None


# What commands say by themselves


class WaitAnswer(Answer, frozen=True, kw_only=True):
    result: Literal["reached", "other_needs_you", "timed_out"]
    states: list[str]
    items: list[PaneItem]
    needs_you: list[PaneItem]


class BarAnswer(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    is_running: bool
    text: str
    total: int
    needs_action: int
    by_state: dict[str, int]
    needs_you: list[PaneItem]


class MenuAction(msgspec.Struct, frozen=True):
    name: str
    parameters: dict[str, str]


class MenuItem(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    label: str
    kind: Literal["item", "separator", "header"]
    glyph: str
    action: MenuAction | None
    is_enabled: bool
    is_checked: bool | None
    # Items again, as deep as the menu is.
    children: list[dict[str, Any]]
    is_alternate: bool
    hint: str


class MenuAnswer(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    title: str
    icon: Literal["idle", "running", "waiting", "down"]
    description: str
    items: list[MenuItem]


class ScreenAttention(msgspec.Struct, frozen=True):
    kind: str
    summary: str
    detail: str | None
    options: list[str]
    whole: bool
    incomplete_reason: str | None
    brief: bool


class ClassifyAnswer(msgspec.Struct, frozen=True):
    state: str
    reason_code: str
    confidence: str
    evidence: list[str]
    attention: ScreenAttention | None
    composer: str | None
    fingerprint: str | None
    is_overlay: bool


class DownAnswer(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    # The processes that have ended: the daemon's, and that of the app in the menu bar or the tray.
    stopped: int | None
    stopped_app: int | None


class DemoStarted(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    started: bool
    target: str
    tmux_socket: str
    panes: int
    attach: str


class DemoStopped(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: Literal[1]
    stopped: bool
