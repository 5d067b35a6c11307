"""Decisions for hooks that wait beside their agent's dialog: who waits, about what, and how an answer gets there.

A hook asks by the id of the event it has reported. It waits for as long as that very event is what its runtime waits
on: an answer is for one question, and there is no way to give it to another. Nothing here types, and nothing here
outlives its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from agtmux.clock import Clock
from agtmux.domain.durations import SECOND
from agtmux.domain.events import Attention
from agtmux.domain.runtimes import PaneId, Runtime, RuntimeId, TargetId
from agtmux.domain.states import State
from agtmux.domain.timestamps import Timestamp
from agtmux.engine.apply import Record
from agtmux.engine.resolve import Signal
from agtmux.engine.transitions import Policy

PaneKey = tuple[TargetId, PaneId]

# Far more than dialogs that one user could have open.
MOST_WAITERS: Final = 256
# Less than the day after which an agent would end its hook.
LONGEST_WAIT: Final = 23 * 3600.0


class Known(Protocol):
    """What is known right now: which runtime is in which pane, and which events have not found theirs yet."""

    @property
    def records(self) -> Mapping[PaneKey, Record]: ...
    @property
    def by_runtime(self) -> Mapping[RuntimeId, PaneKey]: ...
    @property
    def pending(self) -> Mapping[str, Any]: ...


class Form(Protocol):
    """How an agent is told."""

    def written(self, *, allow: bool, message: str) -> str: ...


class Handed(StrEnum):
    """What became of a decision. Only after NOBODY_WAITS may it be tried in another way."""

    HANDED_OVER = "handed_over"
    NOBODY_WAITS = "nobody_waits"
    # It was on its way when the hook went.
    UNCERTAIN = "uncertain"


class Over(StrEnum):
    """Why a hook need not wait."""

    NOT_ASKED = "not_asked"
    MOVED_ON = "moved_on"
    TOO_MANY = "too_many"
    TOO_LONG = "too_long"
    STOPPING = "stopping"
    HOOK_LEFT = "hook_left"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook is told: the words for its agent, or why there are none."""

    allow: bool | None = None
    text: str | None = None
    over: Over | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that can be answered without a key."""

    runtime_id: RuntimeId
    event_id: str
    attention: Attention | None
    since: Timestamp


@dataclass(eq=False, slots=True)
class _Waiter:
    event_id: str
    told: asyncio.Future[Answer]
    # None until the event has found its runtime.
    question: Waiting | None = None
    form: Form | None = None
    # Whoever decided waits for this.
    handed: asyncio.Future[Handed] | None = None

    def tell(self, answer: Answer) -> None:
        if not self.told.done():
            self.told.set_result(answer)

    def settle(self, handed: Handed) -> None:
        if self.handed is not None and not self.handed.done():
            self.handed.set_result(handed)


class Decisions:
    def __init__(
        self, known: Known, clock: Clock, policy: Policy, form_of: Callable[[Runtime, Signal], Form | None]
    ) -> None:
        self._known = known
        self._clock = clock
        # An event that has not found its runtime by then never will.
        self._bind_limit = policy.pending_bind_ttl / SECOND + 1.0
        # How that agent is told what was decided about that; None where it cannot be.
        self._form_of = form_of
        self._waiters: dict[str, _Waiter] = {}
        self._closing = False

    @property
    def waiter_count(self) -> int:
        return len(self._waiters)

    def waiting(self, runtime_id: RuntimeId) -> Waiting | None:
        """What the runtime asks, if a hook waits there for the answer."""
        for waiter in self._waiters.values():
            question = waiter.question
            if question is not None and question.runtime_id == runtime_id and self._is_asked(waiter):
                return question
        return None

    async def decide(self, runtime_id: RuntimeId, event_id: str, *, allow: bool, message: str = "") -> Handed:
        """Answer the question that was reported with that event: once, and only while it is still asked.

        Handed over means: to the hook. What the agent makes of it, its next event tells.
        """
        waiter = self._waiters.get(event_id)
        if waiter is None or waiter.question is None or waiter.form is None:
            return Handed.NOBODY_WAITS
        if waiter.question.runtime_id != runtime_id or not self._is_asked(waiter):
            return Handed.NOBODY_WAITS
        waiter.handed = asyncio.get_running_loop().create_future()
        waiter.tell(Answer(allow, waiter.form.written(allow=allow, message=message)))
        return await waiter.handed

    async def wait(self, event_id: str, hook_left: Coroutine[Any, Any, object]) -> Answer:
        """Returns with the answer for that event's hook, or when there will be none. `hook_left` ends with the hook."""
        leaving: asyncio.Task[Any] = asyncio.create_task(hook_left)
        waiter = self._enter(event_id)
        unbound = asyncio.get_running_loop().call_later(self._bind_limit, self._look, waiter, True)
        try:
            either: set[asyncio.Future[Any]] = {waiter.told, leaving}
            await asyncio.wait(either, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return Answer(over=Over.HOOK_LEFT)
            waiter.tell(Answer(over=Over.TOO_LONG))
            # Nothing else runs between this and the first byte of the answer.
            waiter.settle(Handed.HANDED_OVER)
            return waiter.told.result()
        finally:
            unbound.cancel()
            leaving.cancel()
            waiter.settle(Handed.UNCERTAIN)
            if self._waiters.get(event_id) is waiter:
                del self._waiters[event_id]

    def changed(self, keys: set[PaneKey], _: Timestamp) -> None:
        """These panes are otherwise than before: whoever waits for nothing any more is told."""
        # A runtime that has ended is in no pane.
        touched = {None, *keys}
        for waiter in self._waiters.values():
            question = waiter.question
            if question is None or self._known.by_runtime.get(question.runtime_id) in touched:
                self._look(waiter)

    def close(self) -> None:
        """All waits end now, and those that are yet to come at once."""
        self._closing = True
        for waiter in self._waiters.values():
            waiter.tell(Answer(over=Over.STOPPING))

    def _enter(self, event_id: str) -> _Waiter:
        waiter = _Waiter(event_id, asyncio.get_running_loop().create_future())
        if self._closing:
            waiter.tell(Answer(over=Over.STOPPING))
        elif event_id in self._waiters:
            # One question, one answer, one hook that takes it.
            waiter.tell(Answer(over=Over.NOT_ASKED))
        elif len(self._waiters) >= MOST_WAITERS:
            waiter.tell(Answer(over=Over.TOO_MANY))
        else:
            self._waiters[event_id] = waiter
            self._look(waiter)
        return waiter

    def _look(self, waiter: _Waiter, for_the_last_time: bool = False) -> None:
        """Find out what it waits for, and tell it if that is nothing."""
        if waiter.question is not None:
            if not self._is_asked(waiter):
                waiter.tell(Answer(over=Over.MOVED_ON))
            return
        if waiter.event_id in self._known.pending and not for_the_last_time:
            return
        for record in self._known.records.values():
            report = _asks_because_of(record)
            if report is not None and report.key.event_id == waiter.event_id:
                waiter.form = self._form_of(record.runtime, report)
                if waiter.form is not None:
                    # As the hook reported it: what is shown may come from the screen, where another dialog may be.
                    runtime_id, attention = record.runtime.runtime_id, report.verdict.attention
                    waiter.question = Waiting(runtime_id, waiter.event_id, attention, self._clock.now())
                    return
        waiter.tell(Answer(over=Over.NOT_ASKED))

    def _is_asked(self, waiter: _Waiter) -> bool:
        """Whether that runtime still lives, still waits, and for nothing else than the event the hook reported."""
        if waiter.question is None or waiter.told.done():
            return False
        key = self._known.by_runtime.get(waiter.question.runtime_id)
        record = None if key is None else self._known.records.get(key)
        if record is None or record.runtime.runtime_id != waiter.question.runtime_id:
            return False
        report = _asks_because_of(record)
        return report is not None and report.key.event_id == waiter.event_id


def _asks_because_of(record: Record) -> Signal | None:
    """The report that makes it wait for approval; None if it does not."""
    row = record.row
    if row.state is not State.WAITING_APPROVAL or row.source is None or record.runtime.ended_at is not None:
        return None
    return record.signals.get(row.source)
