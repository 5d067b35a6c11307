"""Work trees in the shape they are shown."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agtmux.domain.timestamps import Timestamp, format_timestamp
from agtmux.messages.directory import Directory
from agtmux.observe import views
from agtmux.observe.world import PaneKey, World
from agtmux.worktrees.trees import Inhabited


class WorktreeAgent(msgspec.Struct, frozen=True):
    name: str
    ref: str
    runtime_id: str
    agent_type: str
    state: str


class WorktreeItem(msgspec.Struct, frozen=True):
    target: str
    path: str
    # The folder that the repository itself is in.
    repository: str
    # None where no branch is checked out.
    branch: str | None
    commit: str
    # The repository's own, and not one beside it.
    is_main: bool
    # Its folder is not there any more.
    is_gone: bool
    # Whether anything is not committed; None if that could not be told in time, or there are no files.
    is_dirty: bool | None
    agents: list[WorktreeAgent]
    # What was said there last, to an agent or by it, in a line, and when.
    last_message: str | None
    updated_at: str | None


def worktree_item(
    world: World,
    directory: Directory,
    found: Inhabited,
    latest: Mapping[tuple[str, str], tuple[str, Timestamp]],
) -> WorktreeItem:
    """`latest` is what was said last, by target and path."""
    tree = found.worktree
    said = latest.get((found.target_id, tree.path))
    return WorktreeItem(
        target=found.target_id,
        path=tree.path,
        repository=tree.repository,
        branch=tree.branch or None,
        commit=tree.commit,
        is_main=tree.is_main,
        is_gone=tree.is_gone,
        is_dirty=tree.is_dirty,
        agents=[agent for key in found.agents if (agent := _agent(world, directory, key)) is not None],
        last_message=None if said is None else said[0],
        updated_at=None if said is None else format_timestamp(said[1]),
    )


def _agent(world: World, directory: Directory, key: PaneKey) -> WorktreeAgent | None:
    item = views.pane_item(world, key)
    if item is None:
        return None
    name = directory.name(world.records[key].runtime)
    return WorktreeAgent(name, item.ref, item.runtime_id, item.agent_type, item.state)
