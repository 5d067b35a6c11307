"""What becomes of a new work tree if the launch it was made for fails; what is far away is played."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from agtmux.actions.ledger import Ledger
from agtmux.actions.typing import Typist
from agtmux.agents.registry import Registry
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import LaunchLimits
from agtmux.domain.panes import HOST
from agtmux.messages.directory import Directory, Role
from agtmux.worktrees.answers import Added, Removed, Showing, Started
from agtmux.worktrees.launcher import Launcher
from agtmux.worktrees.launches import Launches
from agtmux.worktrees.order import THE_USER, Order
from agtmux.worktrees.trees import Trees
from unit.builders import BOOT, PANE, Core, a_core, seen

ORDER = Order("claude", HOST, "/work", is_apart=True, role=Role("reviewer"))


@dataclass
class Fleet:
    """A machine with git and tmux, where an agent comes up at once or is dead at once."""

    core: Core
    comes_up: bool
    asked: list[str] = field(default_factory=list)
    # Called when the pane is made.
    meanwhile: Any = lambda: None

    def look_at(self, target: object) -> None:
        pass

    def check_reachable(self, target: object) -> None: ...

    async def run(self, target: object, errand: dict[str, Any], kind: type, limit: float | None = None) -> Any:
        self.asked.append(errand["do"])
        match errand["do"]:
            case "git_add":
                return Added("/work/tree", "claude-1", True, True)
            case "git_undo":
                return Removed("/work/tree", "claude-1")
            case "launch":
                if self.comes_up:
                    await self.core.look(seen())
                self.meanwhile()
                return Started(BOOT, PANE, 100, "@1")
            case _:
                return Showing(not self.comes_up, "no such option")


@contextlib.asynccontextmanager
async def a_launcher(directory: Path, *, comes_up: bool) -> AsyncIterator[tuple[Launcher, Fleet, Directory]]:
    async with a_core(directory) as core:
        fleet, names = Fleet(core, comes_up), Directory(core.world, core.database)
        far = cast(Any, fleet)
        launches = Launches(core.world, core.database, LaunchLimits())
        trees, ledger = Trees(far, core.world, ""), Ledger(core.database)
        parts = (Registry.load(), names, trees, launches, ledger, cast(Typist, None), core.clock)
        yield Launcher(far, core.world, *parts, 5.0), fleet, names


async def test_the_tree_of_one_that_ended_at_once_goes_again(tmp_path: Path) -> None:
    async with a_launcher(tmp_path, comes_up=False) as (launcher, fleet, _):
        with pytest.raises(AgtmuxError, match=r"no such option.*removed again"):
            await launcher.launch("r", ORDER, THE_USER, "test")
        assert fleet.asked[-1] == "git_undo"


async def test_the_tree_of_one_that_lives_stays_whatever_else_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_launcher(tmp_path, comes_up=True) as (launcher, fleet, names):

        async def refuse(*_: object) -> None:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "another agent is called that")

        monkeypatch.setattr(names, "give", refuse)
        with pytest.raises(AgtmuxError, match="called that"):
            await launcher.launch("r", ORDER, THE_USER, "test")
        assert "launch" in fleet.asked and "git_undo" not in fleet.asked


async def test_a_name_that_is_promised_is_no_teams_and_nobody_elses(tmp_path: Path) -> None:
    refused: list[str] = []
    async with a_launcher(tmp_path, comes_up=False) as (launcher, fleet, names):

        def meanwhile() -> None:
            for take in (lambda: names.keep("review", ["reviewer"]), lambda: names.check_free("reviewer")):
                with pytest.raises(AgtmuxError, match="about to be called 'reviewer'") as error:
                    take()
                refused.append(error.value.code)
            # Its own team has it.
            names.promise(Role("reviewer", "review"))
            names.keep("review", ["reviewer"])
            names.keep("review", [])

        fleet.meanwhile = meanwhile
        with pytest.raises(AgtmuxError, match="no such option"):
            await launcher.launch("r", ORDER, THE_USER, "test")
        assert refused == [ErrorCode.PRECONDITION_FAILED] * 2
        # It did not come up: anybody may be called that.
        names.check_free("reviewer")
        names.keep("review", ["reviewer"])
