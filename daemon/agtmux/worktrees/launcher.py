"""Launching an agent: a work tree, a pane in the user's tmux server, and the agent in it until it is really up.

As every action it is written down before anything is done, and has one effect however often its request comes.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from agtmux.actions.desk import check_request_ref, result_of
from agtmux.actions.ledger import UNCERTAIN, Action, Ledger, check_same
from agtmux.actions.typing import Typist, clean
from agtmux.agents.registry import Registry
from agtmux.agents.sheet import AgentSheet
from agtmux.clock import Clock
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.runtimes import PaneId, RuntimeId
from agtmux.engine.apply import Record
from agtmux.messages.directory import Directory, Role
from agtmux.observe import views
from agtmux.observe.fleet import Fleet
from agtmux.observe.world import World
from agtmux.worktrees.answers import Added, Started
from agtmux.worktrees.launches import Launch, Launches
from agtmux.worktrees.names import session_of
from agtmux.worktrees.order import By, Launched, Order
from agtmux.worktrees.trees import Trees
from agtmux.worktrees.waiting import NothingRunsError, Waiting, instance_of

ACTION: Final = "launch"
UP: Final = "up"
# What is told of a launch, in the order of the answer.
_TOLD: Final = ("name", "state", "asks", "worktree", "branch", "is_new_worktree", "session_name", "prompt")


class Launcher:
    def __init__(
        self,
        fleet: Fleet,
        world: World,
        registry: Registry,
        directory: Directory,
        trees: Trees,
        launches: Launches,
        ledger: Ledger,
        typist: Typist,
        clock: Clock,
        start_limit: float,
    ) -> None:
        self._fleet = fleet
        self._world = world
        self._registry = registry
        self._directory = directory
        self._trees = trees
        self._launches = launches
        self._ledger = ledger
        self._typist = typist
        self._clock = clock
        self.waiting = Waiting(fleet, world, registry, typist, start_limit)
        # One at a time is let in, so that two cannot both be the last that fits.
        self._door = asyncio.Lock()
        self._under_way: dict[str, asyncio.Task[Launched]] = {}

    async def launch(self, request_ref: str, order: Order, by: By, actor: str) -> Launched:
        """Returns once it is up; raises what kept it from being so. It goes on if nobody waits for it any more."""
        check_request_ref(request_ref)
        sheet = order.checked(self._registry)
        async with self._door:
            earlier = await self._ledger.requested(ACTION, request_ref)
            if earlier is None:
                action = await self._admitted(request_ref, order, by, actor)
                task = asyncio.create_task(self._carried_out(action, order, sheet, by), name=f"launch-{order.agent}")
                self._under_way[action.action_id] = task
                task.add_done_callback(lambda _: self._under_way.pop(action.action_id, None))
        if earlier is None:
            return await asyncio.shield(task)
        check_same(earlier, order.digest(by))
        if earlier.action_id in self._under_way:
            await asyncio.wait([self._under_way[earlier.action_id]])
            earlier = await self._ledger.find(earlier)
        return Launched(earlier, _told(earlier), is_replay=True)

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _admitted(self, request_ref: str, order: Order, by: By, actor: str) -> Action:
        if order.may_start_server and not by.is_user:
            raise AgtmuxError(ErrorCode.FORBIDDEN, by.refusal("only the user starts a tmux server"))
        if order.target_id not in self._world.targets:
            raise AgtmuxError(ErrorCode.TARGET_NOT_FOUND, f"no target is called {order.target_id[:64]!r}")
        self._fleet.check_reachable(order.target_id)
        if order.role is not None:
            self._directory.check_free(order.role.role, order.role.team)
        now = self._clock.now()
        self._launches.check(by.runtime_id, now)
        action = Action(
            action_id=uuid.uuid4().hex,
            action_type=ACTION,
            request_ref=request_ref,
            target_id=order.target_id,
            pane_id=PaneId(""),
            runtime_id=RuntimeId(""),
            requested_at=now,
            metadata={"actor": actor, "by": by.name, "agent_type": order.agent},
        )
        try:
            await self._launches.begin(Launch(action.action_id, by.runtime_id, order.target_id, order.agent, now))
            return await self._ledger.begin(action, None, order.digest(by))
        except BaseException:
            # Cut off, or not written down: it would be under way for ever.
            self._launches.abandon(action.action_id)
            raise

    async def _carried_out(self, action: Action, order: Order, sheet: AgentSheet, by: By) -> Launched:
        about: dict[str, Any] = {}
        role = order.role
        if role is not None:
            self._directory.promise(role)
        try:
            action, record = await self._started(action, order, sheet, by, about)
            about |= await self._introduced(record, order, about)
        except AgtmuxError as error:
            result = result_of(error)
            await self._ledger.finish(action, self._clock.now(), result, str(error.code), about)
            told = {**error.details, **about, "action_id": action.action_id, "result_code": result}
            raise AgtmuxError(error.code, f"{sheet.name}: {error.message}", told) from None
        except BaseException:
            # Cancelled, or a fault of ours: how far it came is not known.
            code = str(ErrorCode.DELIVERY_UNCERTAIN)
            await asyncio.shield(self._ledger.finish(action, self._clock.now(), UNCERTAIN, code, about))
            raise
        finally:
            if role is not None:
                self._directory.release(role)
            await asyncio.shield(self._launches.settle(action.action_id, self._clock.now()))
        finished = await self._ledger.finish(action, self._clock.now(), UP, None, about)
        return Launched(finished, _told(finished))

    async def _started(
        self, action: Action, order: Order, sheet: AgentSheet, by: By, about: dict[str, Any]
    ) -> tuple[Action, Record]:
        """`about` is filled as it goes, so that also who is told of a failure knows what is there by now."""
        if not order.wants_worktree:
            try:
                found = await self._trees.look(order.target_id, order.cwd)
                top = found.top
                about |= {"worktree": found.top or None, "branch": found.branch or None, "is_new_worktree": False}
            except AgtmuxError as error:
                # An agent may work where no git is.
                if error.code is not ErrorCode.PRECONDITION_FAILED:
                    raise
                top = ""
                about |= {"worktree": None, "branch": None, "is_new_worktree": False}
            return await self._started_in(order.cwd, top, action, order, sheet, by, about)
        # An agent could have written a filter or a hook, and would have it run outside of its own sandbox.
        added = await self._trees.add(
            order.target_id, order.cwd, order.branch_or_new(), is_apart=order.is_apart, is_plain=not by.is_user
        )
        about |= {"worktree": added.top, "branch": added.branch, "is_new_worktree": added.is_new}
        about["unfiltered_files"] = added.unfiltered
        try:
            return await self._started_in(added.top, added.top, action, order, sheet, by, about)
        except NothingRunsError as error:
            # Whatever else failed, what was left in its pane works there.
            if not added.is_new:
                raise
            raise AgtmuxError(
                error.code, f"{error.message}; {await self._undone(order, added, about)}", error.details
            ) from None

    async def _undone(self, order: Order, added: Added, about: dict[str, Any]) -> str:
        """What became of the work tree that was made for who did not come up."""
        try:
            await self._trees.undo(order.target_id, added)
        except AgtmuxError as error:
            return f"the new worktree {added.top} stays ({error.message})"
        about |= {"worktree": None, "branch": None, "is_new_worktree": False}
        return "the worktree that was made for it is removed again"

    async def _started_in(
        self, folder: str, top: str, action: Action, order: Order, sheet: AgentSheet, by: By, about: dict[str, Any]
    ) -> tuple[Action, Record]:
        session = order.session or session_of(top or folder)
        words, is_prompted = order.words(sheet)
        about |= {"session_name": session, "prompt": "given" if is_prompted else "none"}
        errand = {
            "do": "launch",
            "session": session,
            "window": order.agent,
            "folder": folder,
            "words": words,
            "may_start": order.may_start_server,
        }
        try:
            started = await self._fleet.run(order.target_id, errand, Started)
        except AgtmuxError as error:
            if error.code is ErrorCode.PRECONDITION_FAILED:
                raise NothingRunsError(error.message, error.details) from None
            # The pane may have been made before the way there was lost.
            raise AgtmuxError(error.code, error.message, {**error.details, "result_code": UNCERTAIN}) from None
        instance = instance_of(order.target_id, started)
        await self._launches.placed(action.action_id, instance, started.pid)
        about["pane_id"] = started.pane_id
        role, seen = self._role(order, by), set[RuntimeId]()

        async def on_seen(record: Record) -> None:
            # Before it is up: it may have its prompt already, and is not to write to whom it may not.
            if role is not None:
                await self._directory.give(record.runtime.runtime_id, role, self._clock.now())
                seen.add(record.runtime.runtime_id)

        try:
            record = await self.waiting.until_up(
                instance, started, order.agent, on_seen, is_prompted=is_prompted, limit=order.start_limit
            )
        except AgtmuxError:
            # Its name is free for another. Whom it may write to holds for what is left there, too.
            for runtime_id in seen & self._world.by_runtime.keys():
                nameless = Role("", peers=None if role is None else role.peers)
                await self._directory.give(runtime_id, nameless, self._clock.now())
            raise
        return await self._ledger.place(action, instance.pane_id, record.runtime.runtime_id), record

    def _role(self, order: Order, by: By) -> Role | None:
        """Who is launched by an agent that may not write to everybody may write to whom that one may, and to it."""
        own = None if by.runtime_id is None else self._directory.role(by.runtime_id)
        if own is None or own.peers is None:
            return order.role
        return replace(order.role or Role(""), peers=(*own.peers, by.name))

    async def _introduced(self, record: Record, order: Order, about: dict[str, Any]) -> dict[str, Any]:
        """What it is called, what it was told, and how it is."""
        runtime = record.runtime
        told: dict[str, Any] = {"prompt": about["prompt"]}
        if order.prompt.strip() and about["prompt"] == "none":
            told["prompt"], told["prompt_error"] = await self._typed(record, clean(order.prompt))
        item = views.pane_item(self._world, (runtime.target_id, runtime.pane_id))
        if item is None:
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "it was up, and has ended since")
        asks = None if item.attention is None else item.attention.summary
        return told | {"name": self._directory.name(runtime), "ref": item.ref, "state": item.state, "asks": asks}

    async def _typed(self, record: Record, prompt: str) -> tuple[str, str | None]:
        """A first prompt that was no argument. One that cannot be typed, as at a dialog, is told of and not lost on."""
        try:
            async with self._typist.writer(record):
                await self._typist.type(record, prompt, self._still(record), enter=True)
        except AgtmuxError as error:
            return "not_given", f"{error.code}: {error.message}"
        return "given", None

    def _still(self, record: Record) -> Callable[..., Record]:
        runtime = record.runtime

        def still_there(*, may_have_moved: bool = False) -> Record:
            found = self._world.records.get((runtime.target_id, runtime.pane_id))
            if found is None or found.runtime.runtime_id != runtime.runtime_id:
                raise AgtmuxError(ErrorCode.RUNTIME_STALE, "what was in that pane has ended; list the panes again")
            return found

        return still_there


def _told(action: Action) -> dict[str, Any]:
    about = action.metadata or {}
    more = {"prompt_error": about.get("prompt_error"), "unfiltered_files": about.get("unfiltered_files", 0)}
    return {name: about.get(name) for name in _TOLD} | more
