"""Typing into a pane, for whoever has something to type: one writer a pane, and nothing that is not read back.

A look shows what a key would meet. The key goes with the lines of that look, and the tmux server presses it only if
they are still there (`probe/keyboard.py`): a dialog that opens in between meets no key. If the screen has merely moved,
there is another look. Text goes as a paste, must stand in the prompt as it was meant, and Enter is a key of its own
after it.
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from agtmux.actions.guards import StillThere
from agtmux.actions.ledger import DELIVERED, TYPED_IN_SHELL, TYPED_NOT_SUBMITTED, UNCERTAIN
from agtmux.actions.reach import Reach, front_process, inhabited
from agtmux.agents.contract import Footing, Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen
from agtmux.agents.screen.typed import TypingSheet
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.redact import redact_text
from agtmux.domain.runtimes import PaneId, Runtime, TargetId
from agtmux.domain.states import State
from agtmux.engine.apply import Record
from agtmux.targets.messages import Did, Glanced

MOST_BYTES: Final = 1_000_000
WAITING: Final = frozenset({State.WAITING_APPROVAL, State.WAITING_INPUT})
# How long a screen may go on moving before a key is given up, and an agent may take to show what it was given.
_PATIENCE: Final = 3.0
_LOOK_EVERY: Final = 0.04
_PLAIN: Final = TypingSheet()
# C0 without tab and newline, DEL, C1.
_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
# The probe says so before anything is done.
_SURELY_NOT_DONE: Final = frozenset({ErrorCode.RUNTIME_STALE, ErrorCode.PRECONDITION_FAILED})


@dataclass(frozen=True, slots=True)
class Sight:
    """One look, with what is needed to press a key on the strength of it."""

    errand: dict[str, Any]
    footing: Footing
    text: str

    @property
    def seen(self) -> Seen:
        return self.footing.reading.seen


def clean(text: str) -> str:
    """As it may be typed: line ends are newlines, and nothing is left that would steer a terminal."""
    return _STEERING.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class Typist:
    def __init__(self, reach: Reach, registry: Registry) -> None:
        self._reach = reach
        self._registry = registry
        self._writers: weakref.WeakValueDictionary[tuple[TargetId, PaneId], asyncio.Lock] = (
            weakref.WeakValueDictionary()
        )

    @asynccontextmanager
    async def writer(self, record: Record) -> AsyncGenerator[None]:
        """One at a time for each pane."""
        key = (record.runtime.target_id, record.runtime.pane_id)
        lock = self._writers.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    def check_reachable(self, record: Record) -> None:
        """Raises AgtmuxError(E_TARGET_UNREACHABLE) while no key would get there."""
        self._reach.check_reachable(record.runtime.target_id)

    async def look(self, record: Record, *, shell: bool = False) -> Sight:
        """What keys would meet; raises if they would not meet that agent at all.

        Keys are for agents. `shell` says that they are meant for a program that is no agent, and for that alone.
        """
        check_agent(record, shell=shell)
        runtime = record.runtime
        who, front = inhabited(self._reach, record), front_process(self._reach, record)
        if front is None:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "its process is not in front in that pane; list the panes again")
        glanced = await self._reach.run(runtime.target_id, {"do": "glance", **who, "agent": front}, Glanced)
        if not glanced.is_in_front:
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "something else has that pane's terminal; list the panes again")
        if not runtime.has_agent and not self._is_same_program(runtime, glanced):
            raise AgtmuxError(ErrorCode.RUNTIME_STALE, "another program has begun in that pane; list the panes again")
        if glanced.hindrance:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                f"{glanced.hindrance}, so what is typed would not reach it, or not it alone; leave that and try again",
            )
        footing = self._footing(runtime.agent_type, glanced)
        hold = footing.hold
        errand = {
            **who,
            "agent": front,
            "group": glanced.group,
            "command": glanced.command,
            "lines": hold.anchors,
            # What has scrolled away grows while an agent works, and not while it waits for an answer.
            "history": glanced.history if hold.is_whole else None,
            "absent": hold.absent,
            "is_whole": hold.is_whole,
            "telling": hold.telling,
        }
        return Sight(errand, footing, glanced.text)

    async def press(self, record: Record, sight: Sight, key: str) -> bool:
        """Whether it was pressed; it was not if the screen shows something else by now."""
        return await self._run(record, {"do": "press", **sight.errand, "key": key})

    async def type(
        self,
        record: Record,
        text: str,
        still_there: StillThere,
        *,
        enter: bool,
        may_join: bool = False,
        shell: bool = False,
        before_enter: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """Types it, and submits it if that is wanted. Returns `delivered`, or `typed_not_submitted` if that was wanted,
        or `typed_in_shell` for what an agent cannot have taken; raises whatever else came of it, with the result among
        the details."""
        check_agent(record, shell=shell)
        if shell and "\n" in text and not enter:
            raise AgtmuxError(
                ErrorCode.UNSUPPORTED, "a program that is no agent may run each line as it comes; add --enter if it may"
            )
        sight = await self.prompt(record, still_there, may_join, shell=shell)
        # What was there before belongs to what must be there afterwards.
        whole = sight.seen.draft + text
        deadline = _now() + _PATIENCE
        while not await self._run(record, {"do": "paste", **sight.errand, "text": text}):
            if _now() > deadline:
                raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "its screen does not hold still; nothing was typed")
            sight = await self.prompt(record, still_there, may_join, shell=shell)
            whole = sight.seen.draft + text
        pasted_at = _now()
        try:
            sight = await self._read_back(record, whole, still_there, shell=shell)
            if not enter:
                return TYPED_NOT_SUBMITTED
            await asyncio.sleep(max(pasted_at + self._sheet(record).paste_window / 1_000 - _now(), 0))
            if before_enter is not None:
                await before_enter()
            return await self.submit(record, sight, whole, still_there, shell=shell)
        except AgtmuxError as error:
            if "result_code" in error.details:
                raise
            # The pane, or the way to it, was lost on the way. What tmux has handed to an agent that ends before it
            # reads it, the kernel gives to the shell below. Nothing can call it back, but without Enter it is not run.
            where = "at the prompt of what is there now" if error.code is ErrorCode.RUNTIME_STALE else "in its prompt"
            raise _told(
                error.code, f"{error.message}; the text may stand {where}, and Enter was not pressed", UNCERTAIN
            ) from None

    async def prompt(
        self, record: Record, still_there: StillThere, may_join: bool = False, *, shell: bool = False
    ) -> Sight:
        """A look at a prompt that takes a text; raises if it shows anything else."""
        sight = await self.look(record, shell=shell)
        check_no_dialog(still_there(), sight.seen)
        seen = sight.seen
        if record.runtime.has_agent:
            if seen.composer == "none" or not sight.footing.hold.anchors:
                raise AgtmuxError(
                    ErrorCode.PRECONDITION_FAILED, "its screen shows no prompt to type at; look at it and try again"
                )
            if sight.footing.mode:
                raise AgtmuxError(
                    ErrorCode.DRAFT_PRESENT,
                    f"its prompt is in the mode of {sight.footing.mode!r} and would run what is typed",
                )
            if seen.composer == "draft" and not may_join:
                raise AgtmuxError(
                    ErrorCode.DRAFT_PRESENT,
                    "somebody has begun to type there; send it when that is gone, or add to it with --append",
                )
        return sight

    async def _read_back(self, record: Record, whole: str, still_there: StillThere, *, shell: bool) -> Sight:
        """Until the prompt holds just that."""
        deadline = _now() + _PATIENCE
        while True:
            sight = await self.look(record, shell=shell)
            if _has_dialog(still_there(may_have_moved=True), sight.seen):
                raise _told(ErrorCode.DIALOG_OPEN, "a dialog opened while it was typed; Enter was not pressed")
            if self.holds(record, sight, whole):
                return sight
            if _now() > deadline:
                raise _told(
                    ErrorCode.DELIVERY_UNCERTAIN,
                    "what its prompt shows is not what was typed; Enter was not pressed, look at it",
                    UNCERTAIN,
                )
            await asyncio.sleep(_LOOK_EVERY)

    async def submit(
        self, record: Record, sight: Sight, whole: str, still_there: StillThere, *, shell: bool = False
    ) -> str:
        """Presses Enter where the prompt holds just that, and looks whether it was taken."""
        try:
            await self._enter(record, sight, whole, still_there, shell=shell)
        except AgtmuxError as error:
            if "result_code" in error.details:
                raise
            # It was lost before a key that the tmux server would have pressed.
            raise _not_entered(error.code, f"{error.message}; the text may be in its prompt", UNCERTAIN) from None
        if shell:
            # A shell shows what it likes, and what it runs has its terminal by now.
            return TYPED_IN_SHELL
        try:
            return await self._taken(record, whole)
        except AgtmuxError as error:
            if "result_code" in error.details:
                raise
            why = f"Enter was pressed, and whether it was taken is not known: {error.message}"
            raise _told(ErrorCode.DELIVERY_UNCERTAIN, why, UNCERTAIN) from None

    async def _enter(self, record: Record, sight: Sight, whole: str, still_there: StillThere, *, shell: bool) -> None:
        deadline = _now() + _PATIENCE
        while True:
            if _has_dialog(still_there(may_have_moved=True), sight.seen):
                raise _not_entered(ErrorCode.DIALOG_OPEN, "a dialog has opened, and the text is typed")
            if not self.holds(record, sight, whole):
                raise _not_entered(ErrorCode.DELIVERY_UNCERTAIN, "somebody else types there", UNCERTAIN)
            if await self.press(record, sight, "Enter"):
                return
            if _now() > deadline:
                raise _not_entered(ErrorCode.PRECONDITION_FAILED, "its screen does not hold still")
            sight = await self.look(record, shell=shell)

    async def _taken(self, record: Record, whole: str) -> str:
        """Whether what was submitted has left the prompt."""
        deadline = _now() + _PATIENCE
        while True:
            sight = await self.look(record)
            seen = sight.seen
            is_prompt = seen.composer != "none"
            if seen.is_overlay:
                # A command may have opened a menu.
                return DELIVERED
            if is_prompt and not begins_with(seen.draft, sight.footing.mode, whole):
                return DELIVERED
            if not is_prompt and is_shown(whole, sight.text):
                return DELIVERED
            if _now() > deadline:
                if is_prompt:
                    still = "the text is still in its prompt, or was made into something else there"
                    raise _told(ErrorCode.DELIVERY_UNCERTAIN, f"Enter was pressed, and {still}; look at it")
                raise _told(ErrorCode.DELIVERY_UNCERTAIN, "Enter was pressed, and its prompt is gone", UNCERTAIN)
            await asyncio.sleep(_LOOK_EVERY)

    async def _run(self, record: Record, errand: dict[str, Any]) -> bool:
        """Whether it was done; raises if it was not, or with the result `uncertain` if nobody can tell."""
        try:
            return (await self._reach.run(record.runtime.target_id, errand, Did)).is_done
        except AgtmuxError as error:
            if error.code in _SURELY_NOT_DONE:
                raise
            raise _told(error.code, error.message, UNCERTAIN) from None

    def holds(self, record: Record, sight: Sight, whole: str) -> bool:
        """Whether the prompt shows just that."""
        if not record.runtime.has_agent:
            return True
        return self._sheet(record).holds(sight.seen.draft, sight.footing.mode, whole)

    def _sheet(self, record: Record) -> TypingSheet:
        agent_type = record.runtime.agent_type
        return self._registry.sheet(agent_type).typing if self._registry.knows(agent_type) else _PLAIN

    def _is_same_program(self, runtime: Runtime, glanced: Glanced) -> bool:
        """Whether what is in front is still called what it was when it was seen to be no agent: a process may become
        one."""
        pane = self._reach.pane(runtime.target_id, runtime.pane_id)
        return pane is not None and pane.command == glanced.command

    def _footing(self, agent_type: str, glanced: Glanced) -> Footing:
        glance = Glance(glanced.text, glanced.title, glanced.command, is_alive=True, width=glanced.width)
        if self._registry.knows(agent_type):
            footing = self._registry.footing(agent_type, glance)
            if footing is None:
                raise AgtmuxError(ErrorCode.UNSUPPORTED, f"the adapter of {agent_type} does not know how to type")
            return footing
        return self._registry.footing_of_nobody(glance)


def check_agent(record: Record, *, shell: bool) -> None:
    """Raises if what would be typed is meant for an agent and none is in that pane, or the other way round."""
    if not record.runtime.has_agent and not shell:
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED,
            "no agent is in that pane, so a shell or another program would run what is typed; add --shell if that is"
            " what you want",
            {"expected": "agent", "found": "none"},
        )
    if record.runtime.has_agent and shell:
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED,
            f"{record.runtime.agent_type} is in that pane and not a shell; leave --shell out to write to it",
            {"expected": "none", "found": record.runtime.agent_type},
        )


def check_no_dialog(record: Record, seen: Seen) -> None:
    """Raises if a key would answer something."""
    if _has_dialog(record, seen):
        about = f" ({question})" if (question := what_it_asks(record, seen)) else ""
        is_question = State.WAITING_INPUT in (record.row.state, seen.state)
        first = "answer it" if is_question else "approve or deny that first, or answer it"
        raise AgtmuxError(
            ErrorCode.DIALOG_OPEN,
            f"it asks something{about}, and what is typed would answer it; {first} in its pane (agtmux attach)",
        )


def what_it_asks(record: Record, seen: Seen) -> str:
    """As people are shown it, or else as its screen has it."""
    attention = record.row.attention
    if record.row.state in WAITING and attention is not None:
        return str.__str__(attention.summary)
    return "" if seen.asked is None else str.__str__(redact_text(seen.asked.summary))


def _has_dialog(record: Record, seen: Seen) -> bool:
    return seen.state in WAITING or record.row.state in WAITING


def _told(code: ErrorCode, message: str, result_code: str = TYPED_NOT_SUBMITTED) -> AgtmuxError:
    return AgtmuxError(code, message, {"result_code": result_code})


def _not_entered(code: ErrorCode, why: str, result_code: str = TYPED_NOT_SUBMITTED) -> AgtmuxError:
    return AgtmuxError(code, f"{why}; Enter was not pressed", {"result_code": result_code, "entered": False})


def begins_with(draft: str, mode: str, text: str) -> bool:
    """Whether what was typed is still there, also if something was added to it."""
    shown, wanted = "".join(draft.split()), "".join(text.removeprefix(mode).split())
    if not shown:
        return False
    # Enter after a backslash takes that away, and an agent may complete the last word.
    begin = wanted[: max(min(len(wanted) - 4, 24), 1)]
    return shown.startswith((begin, "[Paste", "[Saved")) or begin.startswith(shown)


def is_shown(text: str, screen: str) -> bool:
    """Whether the beginning of a text is to be seen."""
    begin = "".join(text.split())[:40]
    return begin in "".join(screen.split())


def _now() -> float:
    return asyncio.get_running_loop().time()
