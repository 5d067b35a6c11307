"""What is done to a chat session, which has no screen and no keys: it is told, and says what came of it.

Who is meant and whether anything has moved is checked as for panes. An answer names the request it is for, so the
session itself refuses one that comes too late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from agtmux import paths
from agtmux.actions.answers import check_whole
from agtmux.actions.attach import COMMAND
from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.kill import CHECKED
from agtmux.actions.ledger import DELIVERED
from agtmux.actions.output import DEFAULT_LINES, DONE, legible_lines
from agtmux.actions.typing import check_agent, clean
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.states import State
from agtmux.engine.apply import Record

_ENDED: Final = "ended"
_WAY: Final = "chat"
# Its agent may take a few seconds to write down its last words.
_PATIENCE: Final = 12.0
_SIGNALS: Final = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "KILL": signal.SIGKILL}
_INTERRUPTS: Final = ("C-c", "Escape")


class Session(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def socket(self) -> str: ...

    @property
    def gone(self) -> asyncio.Event: ...

    async def ask(self, word: str, **words: object) -> str: ...


class Sessions(Protocol):
    def of(self, record: Record) -> Session | None: ...


_Way = Callable[[Session, Record, Asked, StillThere], Awaitable[Done]]


def routed(sessions: Sessions, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """The same kinds of action, for sessions as well as for panes."""
    return {name: Kind(_either(sessions, kind, _WAYS[name]), kind.needs_state) for name, kind in kinds.items()}


def _either(sessions: Sessions, kind: Kind, way: _Way) -> Callable[[Record, Asked, StillThere], Awaitable[Done]]:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        session = sessions.of(record)
        if session is None:
            return await kind.carry_out(record, asked, still_there)
        return await way(session, record, asked, still_there)

    return carry_out


async def _approve(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    if record.row.state is State.WAITING_APPROVAL and not asked.parameters.get("partial"):
        check_whole(record.row.attention)
    return await _answer(session, record, asked, "approve")


async def _deny(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    reason = clean(str(asked.parameters.get("reason", ""))).strip()
    return await _answer(session, record, asked, "deny", reason=reason)


async def _answer(session: Session, record: Record, asked: Asked, word: str, **words: str) -> Done:
    row = record.row
    # No is an answer to a question as well.
    if row.state is not State.WAITING_APPROVAL and not (word == "deny" and row.state is State.WAITING_INPUT):
        why = f"it is {row.state} and waits for no approval"
        if row.state is State.WAITING_INPUT:
            why = "it asks a question that is no yes or no; answer it with `agtmux send --enter`, or in its chat"
        raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, why, {"expected": State.WAITING_APPROVAL, "found": row.state})
    meant = asked.parameters.get("if_dialog")
    if record.dialog is None or (meant is not None and meant != record.dialog):
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED,
            "it asks something else by now; look at it and answer that",
            {"expected": meant, "found": record.dialog},
        )
    await session.ask(word, request_id=record.dialog, **words)
    question = "" if row.attention is None else str.__str__(row.attention.summary)
    return Done(DELIVERED, {"way": _WAY, "question": question}, {"question": question or None})


async def _send(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    text, key = asked.parameters.get("text"), asked.parameters.get("key")
    check_agent(record, shell=bool(asked.parameters.get("shell")))
    if key is not None:
        if key not in _INTERRUPTS:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, "a chat session has no keys; C-c and Escape break off its turn")
        await session.ask("abort")
        return Done(DELIVERED, {"key": key, "enter": False})
    if not asked.parameters.get("enter"):
        raise AgtmuxError(ErrorCode.UNSUPPORTED, "a chat session has no prompt to type at; with --enter it is sent")
    said = clean(str(text or ""))
    if not said.strip():
        raise AgtmuxError(ErrorCode.USAGE, "there is nothing to say in that text")
    if record.row.state is State.WAITING_APPROVAL:
        raise AgtmuxError(ErrorCode.DIALOG_OPEN, "it waits for an approval, and a text is none; approve or deny first")
    still_there()
    if record.row.state is State.WAITING_INPUT and record.dialog is not None:
        await session.ask("answer", request_id=record.dialog, answers=said)
    else:
        await session.ask("message", text=said)
    return Done(DELIVERED, {"characters": len(said), "enter": True})


async def _view(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    lines = int(asked.parameters.get("lines", DEFAULT_LINES))
    text = await recent(session, lines)
    still_there()
    return Done(DONE, {"lines": text.count("\n") + 1 if text else 0}, {"output": text})


async def recent(session: Session, lines: int) -> str:
    """The last lines of the conversation."""
    text = await session.ask("recent")
    return "\n".join(legible_lines(text).split("\n")[-lines:])


async def _attach(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    program = paths.beside("agtmux")
    words = [program] if program is not None else paths.python_module("agtmux.cli.main")
    about = {"way": COMMAND}
    if asked.parameters.get("only_print"):
        about["is_printed"] = True  # type: ignore[assignment]
    still_there()
    return Done(DONE, about, {**about, "argv": [*words, "chat", "--attach", session.socket]})


async def _kill(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    mode, name = str(asked.parameters.get("mode", "key")), str(asked.parameters.get("signal", "INT"))
    still_there()
    if asked.parameters.get("only_check"):
        return Done(CHECKED, {"mode": mode})
    if mode == "key":
        await session.ask("abort")
        return Done(DELIVERED, {"mode": mode})
    # It is connected, so that process is it, or has ended just now.
    with contextlib.suppress(ProcessLookupError):
        os.kill(session.pid, _SIGNALS[name])
    return Done(DELIVERED, {"mode": mode, "signal": name, "has_ended": await _goes(session)})


async def _stop(session: Session, record: Record, asked: Asked, still_there: StillThere) -> Done:
    if asked.parameters.get("remove_worktree"):
        raise AgtmuxError(ErrorCode.UNSUPPORTED, "the work tree was not made for this session and stays")
    still_there()
    for name in ("TERM", "KILL"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(session.pid, _SIGNALS[name])
        if await _goes(session):
            return Done(_ENDED, {"ended_by": name})
    raise AgtmuxError(ErrorCode.TIMEOUT, "it still runs after SIGKILL; look at it (agtmux explain)")


async def _goes(session: Session) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE):
            await session.gone.wait()
    except TimeoutError:
        return False
    return True


_WAYS: Final[dict[str, _Way]] = {
    "view-output": _view,
    "attach": _attach,
    "send": _send,
    "kill": _kill,
    "stop": _stop,
    "approve": _approve,
    "deny": _deny,
}
