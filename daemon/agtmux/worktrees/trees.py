"""Work trees on any target: git is asked by the probe that is there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import machine_of
from agtmux.domain.runtimes import TargetId
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import PaneKey, World
from agtmux.worktrees.answers import Added, Changes, Difference, Found, Removed, Survey, Worktree

T = TypeVar("T")

MOST_BYTES: Final = 1_000_000
# A large repository on a slow disk; and a checkout of one.
_LOOKING: Final = 20.0
_CHECKOUT: Final = 100.0
_SURVEY: Final = 8.0


@dataclass(frozen=True, slots=True)
class Inhabited:
    """A work tree, and the panes of the agents in it."""

    target_id: TargetId
    worktree: Worktree
    agents: tuple[PaneKey, ...]


class Trees:
    def __init__(self, fleet: Fleet, world: World, folder: str) -> None:
        self._fleet = fleet
        self._world = world
        # Where new ones lie; `{repository}` is the repository's own folder.
        self._folder = folder

    async def look(self, target_id: TargetId, path: str) -> Found:
        return await self._ask(target_id, {"do": "git_look", "path": path}, Found)

    async def changed(self, key: PaneKey, most: int) -> Changes:
        """What the agent in that pane has changed since the last commit."""
        return await self._ask(key[0], {"do": "git_changed", "path": self._cwd(key), "most": most}, Changes)

    async def diff(self, key: PaneKey, only: str, most: int) -> Difference:
        """The same as text; `only` is a file or folder, as git names it."""
        return await self.diff_at(key[0], self._cwd(key), only, most)

    async def diff_at(self, target_id: TargetId, path: str, only: str, most: int) -> Difference:
        if "\0" in only:
            raise AgtmuxError(ErrorCode.USAGE, "no path has a null byte in it")
        errand = {"do": "git_diff", "path": path, "only": only, "most": min(most, MOST_BYTES)}
        return await self._ask(target_id, errand, Difference)

    async def add(self, target_id: TargetId, path: str, branch: str, *, is_apart: bool, is_plain: bool) -> Added:
        """The work tree of that branch, made if there is none. With `is_plain` git runs nothing that the repository
        names for it: no filters, no hooks, no fetch."""
        errand = {"do": "git_add", "path": path, "branch": branch, "folder": self._folder, "is_apart": is_apart}
        return await self._ask(target_id, {**errand, "is_plain": is_plain}, Added, _CHECKOUT)

    async def undo(self, target_id: TargetId, added: Added) -> None:
        """Remove what was just added, with its branch if that is new too. Raises if anything was done there since."""
        branch = added.branch if added.is_new_branch else ""
        await self._ask(target_id, {"do": "git_undo", "path": added.top, "branch": branch}, Removed, _CHECKOUT)

    async def check_removable(self, key: PaneKey) -> Removed:
        """Raises if anybody else is in its work tree, or anything would be lost with it."""
        errand = {"do": "git_remove", "path": self._cwd(key), "only_check": True}
        found = await self._ask(key[0], errand, Removed)
        others = [
            pane.pane_id
            for other, pane in self._world.panes.items()
            if machine_of(other[0]) == machine_of(key[0]) and other != key and _is_within(pane.cwd, found.top)
        ]
        if others:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED, f"{', '.join(sorted(others))} is in {found.top} as well; it stays"
            )
        return found

    async def remove(self, target_id: TargetId, top: str) -> Removed:
        return await self._ask(target_id, {"do": "git_remove", "path": top, "only_check": False}, Removed, _CHECKOUT)

    async def survey(self, target: str | None) -> tuple[list[Inhabited], list[dict[str, str]]]:
        """The work trees of all repositories that agents work in, and which targets could not be asked. One that does
        not answer costs the others nothing."""
        folders: dict[TargetId, dict[str, list[PaneKey]]] = defaultdict(lambda: defaultdict(list))
        for key, record in self._world.records.items():
            pane = self._world.panes.get(key)
            if pane is not None and pane.cwd and record.runtime.has_agent and target in (None, key[0]):
                folders[machine_of(key[0])][pane.cwd].append(key)
        asked = [self._surveyed(target_id, list(found)) for target_id, found in folders.items()]
        items: list[Inhabited] = []
        errors = []
        for target_id, answer in zip(folders, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(answer, AgtmuxError):
                errors.append({"target": target_id, "code": str(answer.code), "message": answer.message})
            elif isinstance(answer, BaseException):
                raise answer
            else:
                items += _inhabited(target_id, answer, folders[target_id])
        return items, errors

    async def _surveyed(self, target_id: TargetId, paths: list[str]) -> Survey:
        if (error := self._fleet.error_of(target_id)) is not None:
            # Nobody waits for one that is known not to answer.
            raise AgtmuxError(ErrorCode(error["code"]), error["message"])
        return await self._ask(target_id, {"do": "git_survey", "paths": paths}, Survey, _SURVEY)

    def _cwd(self, key: PaneKey) -> str:
        pane = self._world.panes.get(key)
        if pane is None or not pane.cwd:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "in which folder it works is not known")
        return pane.cwd

    async def _ask(self, target_id: TargetId, errand: dict[str, Any], kind: type[T], limit: float = _LOOKING) -> T:
        return await self._fleet.run(machine_of(target_id), errand, kind, limit)


def _inhabited(target_id: TargetId, survey: Survey, folders: dict[str, list[PaneKey]]) -> list[Inhabited]:
    agents: dict[str, list[PaneKey]] = defaultdict(list)
    for folder, top in survey.places.items():
        agents[top] += folders.get(folder, [])
    return [Inhabited(target_id, each, tuple(sorted(agents[each.path]))) for each in survey.worktrees]


def _is_within(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(top + "/")
