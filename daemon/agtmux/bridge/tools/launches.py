"""Tools by which an agent has another work beside it, and looks at what others have changed."""

from __future__ import annotations

import uuid
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from agtmux.bridge.caller import Caller
from agtmux.bridge.tools.tool import Tool
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.messages.directory import Directory, Role
from agtmux.messages.form import defused
from agtmux.observe.world import PaneKey, World
from agtmux.worktrees.launcher import Launcher
from agtmux.worktrees.order import By, Order
from agtmux.worktrees.stopper import Stopper
from agtmux.worktrees.trees import MOST_BYTES, Trees

_WHO: Final = 'a name, ref or runtime_id from list_agents, a pane id such as "%3", or "you"'
_MOST_UNTRACKED: Final = 500

AgentNamed = Annotated[str, Meta(description=_WHO, max_length=512)]


class LaunchAgent(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: Annotated[str, Meta(description="its type, such as those that list_agents tells", max_length=64)]
    branch: Annotated[
        str,
        Meta(
            description="it works in the git worktree of this branch, made beside the repository if there is none;"
            " without one it works in your own folder",
            max_length=200,
        ),
    ] = ""
    role: Annotated[str, Meta(description="what it is to be called, as reviewer", max_length=32)] = ""
    prompt: Annotated[str, Meta(description="its first task; it is told that this comes from you")] = ""


class LaunchedAgent(msgspec.Struct, frozen=True):
    name: Annotated[str, Meta(description="what it is called; other tools take it")]
    ref: str
    runtime_id: str
    agent_type: str
    state: str
    asks: Annotated[str | None, Meta(description="what it waits for its user to answer before it can begin")]
    worktree: Annotated[str | None, Meta(description="the folder of the git worktree it works in")]
    branch: str | None
    is_new_worktree: bool
    unfiltered_files: Annotated[
        int,
        Meta(
            description="files in the new worktree that are as they are committed, as the filters of the git settings"
            " (Git LFS, git-crypt) are not run for an agent"
        ),
    ]
    prompt: Annotated[
        str, Meta(description="given; none if you gave none; not_given if it could not be, and prompt_error says why")
    ]
    prompt_error: str | None


class StopAgent(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: Annotated[str, Meta(description="the name, ref or runtime_id that launch_agent gave you", max_length=512)]


class StoppedAgent(msgspec.Struct, frozen=True):
    name: str
    ended_by: Annotated[str, Meta(description="what ended it: asked, or the signal INT, TERM or KILL")]


class GetChangedFiles(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: AgentNamed
    limit: Annotated[int, Meta(description="how many files are told at most", ge=1, le=5_000)] = 500


class FileChanged(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="from the top of the worktree")]
    status: Literal["added", "modified", "deleted", "renamed", "untracked"]
    renamed_from: str | None


class ChangedFiles(msgspec.Struct, frozen=True):
    worktree: str
    branch: str | None
    files: list[FileChanged]
    total: int
    truncated: Annotated[bool, Meta(description="there are more than were told; ask with a higher limit")]


class GetWorktreeDiff(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    agent: AgentNamed
    path: Annotated[
        str, Meta(description="only this file or folder, as get_changed_files tells it", max_length=4_096)
    ] = ""
    max_bytes: Annotated[int, Meta(description="how much is told at most", ge=1_000, le=MOST_BYTES)] = 100_000


class WorktreeDiff(msgspec.Struct, frozen=True):
    worktree: str
    branch: str | None
    diff: str
    truncated: Annotated[bool, Meta(description="the diff goes on; ask for one path at a time")]
    untracked: Annotated[list[str], Meta(description="new files that git does not know yet, which are not in the diff")]


class LaunchDesk:
    def __init__(self, world: World, directory: Directory, trees: Trees, launcher: Launcher, stopper: Stopper) -> None:
        self._world = world
        self._directory = directory
        self._trees = trees
        self._launcher = launcher
        self._stopper = stopper

    async def launch_agent(self, caller: Caller, asked: LaunchAgent) -> LaunchedAgent:
        key, by = self._who_asks(caller)
        order = Order(
            agent=asked.agent,
            # Where the caller is, and nowhere else.
            target_id=key[0],
            cwd=self._world.panes[key].cwd,
            branch=asked.branch,
            role=Role(asked.role) if asked.role else None,
            prompt=_told_by(by, asked.prompt),
        )
        launched = await self._launcher.launch(uuid.uuid4().hex, order, by, by.actor)
        told = launched.content
        return LaunchedAgent(
            name=told["name"],
            ref=str((launched.action.metadata or {}).get("ref")),
            runtime_id=launched.action.runtime_id,
            agent_type=asked.agent,
            state=told["state"],
            asks=told["asks"],
            worktree=told["worktree"],
            branch=told["branch"],
            is_new_worktree=bool(told["is_new_worktree"]),
            unfiltered_files=told["unfiltered_files"],
            prompt=told["prompt"],
            prompt_error=told["prompt_error"],
        )

    async def stop_agent(self, caller: Caller, asked: StopAgent) -> StoppedAgent:
        own, by = self._who_asks(caller)
        key = self._directory.find(asked.agent, own)
        if key == own:
            raise AgtmuxError(ErrorCode.FORBIDDEN, "that is you; end your turn instead")
        name = self._directory.name(self._world.records[key].runtime)
        return StoppedAgent(name, await self._stopper.stop_agent(key, by))

    async def get_changed_files(self, caller: Caller, asked: GetChangedFiles) -> ChangedFiles:
        found = await self._trees.changed(self._seen(asked.agent, caller), asked.limit)
        return ChangedFiles(
            worktree=found.top,
            branch=found.branch or None,
            files=[FileChanged(each.path, each.status, each.before or None) for each in found.files],
            total=found.total,
            truncated=found.total > len(found.files),
        )

    async def get_worktree_diff(self, caller: Caller, asked: GetWorktreeDiff) -> WorktreeDiff:
        found = await self._trees.diff(self._seen(asked.agent, caller), asked.path, asked.max_bytes)
        return WorktreeDiff(
            worktree=found.top,
            branch=found.branch or None,
            diff=found.diff,
            truncated=found.is_cut or len(found.untracked) > _MOST_UNTRACKED,
            untracked=found.untracked[:_MOST_UNTRACKED],
        )

    def _who_asks(self, caller: Caller) -> tuple[PaneKey, By]:
        """Raises where it is not sure: limits are each caller's own, and so is who it has launched."""
        record = None if caller.key is None else self._world.records.get(caller.key)
        if caller.key is None or record is None or caller.key not in self._world.panes:
            why = caller.why_not or "your pane is gone"
            raise AgtmuxError(ErrorCode.FORBIDDEN, f"only a known agent launches and stops others: {why}")
        if not record.runtime.has_agent:
            raise AgtmuxError(ErrorCode.FORBIDDEN, "only an agent launches and stops others, and none is in your pane")
        return caller.key, By(record.runtime.runtime_id, self._directory.name(record.runtime))

    def _seen(self, text: str, caller: Caller) -> PaneKey:
        """What is asked from another machine may not see what is on this one, or on a third, whoever asks there."""
        if text.strip() == "you" and caller.key is None:
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"who you are is not known: {caller.why_not}")
        key = self._directory.find(text, caller.key)
        target = self._world.targets.get(key[0])
        if caller.machine and (target is None or target.connection_ref != caller.machine):
            raise AgtmuxError(ErrorCode.FORBIDDEN, "that agent is on another machine, whose files are not told there")
        return key


def _told_by(by: By, prompt: str) -> str:
    """Nobody takes it for the user's word, and it is no command of the agent's own."""
    if not prompt.strip():
        return ""
    return f"[agtmux msg from {by.name}]: {defused(prompt)}"


TOOLS: Final = (
    Tool(
        "launch_agent",
        "Launch an agent",
        "Start another coding agent in a tmux pane of its own, and return once it is up. Give a branch, so that it has"
        " a git worktree of its own and does not change the files you work on. How many may be launched is limited;"
        " stop_agent those that are done.",
        LaunchAgent,
        LaunchedAgent,
        LaunchDesk.launch_agent,
        LaunchDesk,
    ),
    Tool(
        "stop_agent",
        "Stop an agent",
        "End an agent that you have launched. Its worktree and its branch stay.",
        StopAgent,
        StoppedAgent,
        LaunchDesk.stop_agent,
        LaunchDesk,
        is_destructive=True,
    ),
    Tool(
        "get_changed_files",
        "Get changed files",
        "List the files in an agent's git worktree that differ from its last commit, untracked ones included.",
        GetChangedFiles,
        ChangedFiles,
        LaunchDesk.get_changed_files,
        LaunchDesk,
        is_read_only=True,
    ),
    Tool(
        "get_worktree_diff",
        "Get a worktree's diff",
        "Get what an agent has changed in its git worktree since its last commit, as a diff.",
        GetWorktreeDiff,
        WorktreeDiff,
        LaunchDesk.get_worktree_diff,
        LaunchDesk,
        is_read_only=True,
    ),
)
