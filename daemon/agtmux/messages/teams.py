"""The teams that are up, and what becomes of tasks, within them and outside.

Whoever gives a task to an agent hears of it when a step takes too long: not delivered, nothing heard, not done, or its
receiver sits idle. agtmux says so once, as a message of its own, and leaves it to the sender what to do. A team's file
has its times, the settings have those of all other tasks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.mail import Message, MessageType, Reason, Status
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.directory import Directory
from agtmux.messages.letters import Letter
from agtmux.messages.mailbox import Mailbox, Wanted
from agtmux.messages.post import Post
from agtmux.messages.postman import woken
from agtmux.messages.team import TeamSheet, Timeouts
from agtmux.observe.world import PaneKey, World
from agtmux.store.database import Database
from agtmux.store.writer import Transaction

_LOOK_EVERY: Final = 1.0
_DAY: Final = 24 * 3600 * SECOND
# Tasks outside teams that the next daemon goes on with. What is older was given up by who gave it.
_GONE_ON_WITH: Final = 3600 * SECOND
_OVER: Final = frozenset({MessageType.TASK_COMPLETE, MessageType.TASK_FAILED, MessageType.TASK_RESPONSE})
_NOT_DELIVERED: Final = frozenset({Status.EXPIRED, Status.REFUSED, Status.UNCERTAIN})
# None is what nobody can tell.
_WHY_NOT: Final = {
    Reason.TTL_ENDED: "was not delivered before its time was over",
    Reason.RECEIVER_ENDED: "was not delivered, as its receiver has ended",
    None: "may have been taken or not: its typing was cut short, and nobody can tell",
}
_GOES_ON: Final = "It goes on; decide whether to wait, to ask it or to give the task to another."
_ENDED: Final = "It has ended; decide whether to give the task to another."
# What can be told of a task that was delivered, each once.
_STEPS: Final = frozenset({"receive", "task", "idle"})
_AT_REST: Final = frozenset({State.IDLE, State.COMPLETED, State.ERROR})


@dataclass(frozen=True, slots=True)
class Task:
    """A task_request within a team, and what was heard of it."""

    request: Message
    heard_at: Timestamp | None = None
    is_over: bool = False


def overdue(
    task: Task, now: Timestamp, timeouts: Timeouts, *, is_at_rest: bool = False, has_ended: bool = False
) -> dict[str, str]:
    """Which time-outs have passed, each with what to say. Pure."""
    request, found = task.request, {}
    if task.is_over:
        return {}
    to = request.receiver.name
    if request.status in _NOT_DELIVERED:
        # Whoever took it back, or wanted it at once or not at all, knows.
        why = _WHY_NOT.get(request.reason if request.status is not Status.UNCERTAIN else None)
        return {} if why is None else {"lost": f"Your task for {to} {why}. Decide what becomes of it."}
    told = _ENDED if has_ended else _GOES_ON
    since = now - request.sent_at
    delivered_at = request.settled_at if request.status is Status.DELIVERED else None
    if delivered_at is None and timeouts.is_over("send", since):
        why = f" ({request.reason})" if request.reason else ""
        found["send"] = (
            f"Your task for {to} has not been delivered for {_seconds(since)}{why}. It is, as soon as it can."
        )
    if delivered_at is not None and task.heard_at is None and timeouts.is_over("receive", now - delivered_at):
        found["receive"] = (
            f"Nothing was heard from {to} for {_seconds(now - delivered_at)} since it has your task. {told}"
        )
    if timeouts.is_over("task", since):
        found["task"] = f"Your task for {to} is not done after {_seconds(since)}. {told}"
    last = max(task.heard_at or Timestamp(0), delivered_at or Timestamp(0))
    if delivered_at is not None and (is_at_rest or has_ended) and timeouts.is_over("idle", now - last):
        found["idle"] = f"{to} does nothing, and has said nothing for {_seconds(now - last)} about your task. {told}"
    return found


class Teams:
    def __init__(
        self,
        world: World,
        clock: Clock,
        database: Database,
        directory: Directory,
        post: Post,
        timeouts: Timeouts | None = None,
    ) -> None:
        """`timeouts` are those of tasks outside teams."""
        self._world = world
        self._clock = clock
        self._database = database
        self._directory = directory
        self._post = post
        self._mailbox: Mailbox = post.mailbox
        self._sheets: dict[str, TeamSheet] = {}
        self._told: set[tuple[str, str]] = set()
        # Tasks that need no looking after any more.
        self._done: set[str] = set()
        # Something was written, or a team has come up: there may be tasks.
        self._stirred = asyncio.Event()
        self._timeouts = timeouts or Timeouts()
        # Tasks that may be outside teams and need looking after, by their id.
        self._given: dict[str, None] = {}
        post.on_accept.append(self._accepted)

    def _accepted(self, message: Message) -> None:
        if message.type is MessageType.TASK_REQUEST and message.receiver.runtime_id is not None:
            self._given[message.message_id] = None
        self._stirred.set()

    async def load(self) -> None:
        rows = await self._database.read("SELECT sheet FROM teams ORDER BY brought_at")
        for row in rows:
            sheet = msgspec.json.decode(row[0], type=TeamSheet)
            self._sheets[sheet.name] = sheet
            self._directory.keep(sheet.name, sheet.roles)
        since = Timestamp(self._clock.now() - max(_GONE_ON_WITH, 2 * self._timeouts.microseconds("task")))
        for request in await self._mailbox.listing(Wanted(since=since, type=MessageType.TASK_REQUEST), 1_000):
            self._accepted(request)
        self._stirred.set()

    @property
    def sheets(self) -> list[TeamSheet]:
        return list(self._sheets.values())

    def sheet(self, name: str) -> TeamSheet:
        if name not in self._sheets:
            known = ", ".join(self._sheets) or "none"
            raise AgtmuxError(ErrorCode.NOT_FOUND, f"no team is called {name[:40]!r}; there is {known}")
        return self._sheets[name]

    async def bring(self, sheet: TeamSheet) -> None:
        """From now on it is known. Who is there already stays, with the rules that it was given."""
        for role in sheet.roles:
            other = self._directory.role_called(role)
            if other is not None and other.team != sheet.name:
                raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, f"an agent of another team is called {role!r}")
        self._directory.keep(sheet.name, sheet.roles)
        content, now = msgspec.json.encode(sheet).decode(), self._clock.now()

        def job(tx: Transaction) -> None:
            values = (sheet.name, content, now)
            tx.execute("INSERT OR REPLACE INTO teams (name, sheet, brought_at) VALUES (?, ?, ?)", values)

        await self._database.writer.write(job)
        self._sheets[sheet.name] = sheet
        self._stirred.set()

    async def forget(self, name: str) -> None:
        self.sheet(name)

        def job(tx: Transaction) -> None:
            tx.execute("DELETE FROM teams WHERE name = ?", (name,))

        await self._database.writer.write(job)
        await self._directory.disband(name)
        self._directory.keep(name, ())
        del self._sheets[name]

    def members(self, name: str) -> dict[str, PaneKey]:
        """Those who are there, by their role."""
        return {role.role: key for role, key in self._directory.members(name)}

    async def tasks(self, name: str) -> list[Task]:
        """Of the last day, the latest first."""
        return [await self._task(request) for request in await self._requests(name)]

    async def _requests(self, name: str) -> list[Message]:
        receivers = self._directory.runtimes(name)
        if not receivers:
            return []
        since = Timestamp(self._clock.now() - _DAY)
        wanted = Wanted(since=since, type=MessageType.TASK_REQUEST, receivers=receivers)
        return await self._mailbox.listing(wanted, 1_000)

    async def run(self) -> None:
        """Looks after the tasks of all teams, as long as any is open."""
        # What was to be told when this failed is looked at again.
        self._stirred.set()
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            while any(
                [
                    *[await self._look_after(sheet) for sheet in list(self._sheets.values())],
                    await self._look_after_others(),
                ]
            ):
                await woken(self._stirred, _LOOK_EVERY)
                self._stirred.clear()

    async def _look_after(self, sheet: TeamSheet) -> bool:
        """Whether any task of it is open."""
        return await self._look_at(await self._requests(sheet.name), sheet.timeouts)

    async def _look_after_others(self) -> bool:
        """The same of all tasks for agents that are in no team."""
        members = {each for name in self._sheets for each in self._directory.runtimes(name)}
        requests = [await self._mailbox.find(each) for each in list(self._given)]
        others = [each for each in requests if each.receiver.runtime_id not in members]
        is_open = await self._look_at(others, self._timeouts)
        for request in requests:
            if request.message_id in self._done:
                self._given.pop(request.message_id, None)
        return is_open

    async def _look_at(self, requests: list[Message], timeouts: Timeouts) -> bool:
        """Tell what is to be told of them; whether any is open."""
        now, is_open = self._clock.now(), False
        for request in requests:
            if request.message_id in self._done:
                continue
            task, state = await self._task(request), self._state(request)
            found = overdue(task, now, timeouts, is_at_rest=state in _AT_REST, has_ended=state is None)
            told = {*found, *(step for step in _STEPS if (step, request.message_id) in self._told)}
            # Nothing more will be told once all has been; of who has ended that is so with its task's time.
            left_out = {step for step in _STEPS if not timeouts.microseconds(step)}
            is_all_told = told >= _STEPS - left_out - ({"receive"} if task.heard_at is not None else set())
            is_done = task.is_over or request.status in _NOT_DELIVERED or (state is None and "task" in found)
            is_open |= not (is_done or is_all_told)
            for step, text in found.items():
                if (step, request.message_id) in self._told:
                    continue
                letter = Letter(
                    text,
                    MessageType.ERROR,
                    task_id=request.task_id,
                    correlation_id=request.correlation_id,
                    reply_to=request.message_id,
                    # Told once, also by the next daemon.
                    request_ref=f"{step}:{request.message_id}",
                )
                await self._post.notify(request.sender, letter)
                self._told.add((step, request.message_id))
            if is_done or is_all_told:
                self._done.add(request.message_id)
        return is_open

    async def _task(self, request: Message) -> Task:
        wanted = Wanted(correlation_id=request.correlation_id, sender_id=request.receiver.runtime_id)
        answers = [each for each in await self._mailbox.listing(wanted, 100) if each.sent_at >= request.sent_at]
        heard = max((each.sent_at for each in answers), default=None)
        return Task(request, heard, any(each.type in _OVER and each.reply_to == request.message_id for each in answers))

    def _state(self, request: Message) -> State | None:
        """Of who has the task; None if it has ended."""
        key = None if request.receiver.runtime_id is None else self._world.by_runtime.get(request.receiver.runtime_id)
        return None if key is None else self._world.records[key].row.state


def _seconds(span: int) -> str:
    return f"{span // SECOND} s"
