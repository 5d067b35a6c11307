"""`send`: text or a key for an agent, typed as its user would type it."""

from __future__ import annotations

import re
from typing import Final

from agtmux.actions.desk import Asked, Done, Kind
from agtmux.actions.guards import StillThere
from agtmux.actions.ledger import DELIVERED, TYPED_IN_SHELL, TYPED_NOT_SUBMITTED
from agtmux.actions.typing import MOST_BYTES, Sight, Typist, check_no_dialog, clean
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.engine.apply import Record

# Names of keys as tmux knows them. Anything else it would type letter by letter.
KEY: Final = re.compile(
    r"(?:[CMS]-){0,3}(?:[!-~]|Enter|Escape|Tab|BTab|Space|BSpace|DC|IC|Up|Down|Left|Right|Home|End|PageUp|PageDown|PgUp"
    r"|PgDn|PPage|NPage|F(?:[1-9]|1[0-2]))"
)
_TRIES: Final = 20


def send(typist: Typist) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        text, key = asked.parameters.get("text"), asked.parameters.get("key")
        enter, shell = bool(asked.parameters.get("enter")), bool(asked.parameters.get("shell"))
        async with typist.writer(record):
            if key is not None:
                await press_key(typist, record, key, still_there, shell=shell)
                if enter:
                    await _press_enter_too(typist, record, still_there, shell=shell)
                return Done(TYPED_IN_SHELL if shell else DELIVERED, {"key": key, "enter": enter})
            typed = _checked(text)
            may_join = bool(asked.parameters.get("append"))
            result = await typist.type(record, typed, still_there, enter=enter, may_join=may_join, shell=shell)
        return Done(result, {"characters": len(typed), "enter": enter})

    return Kind(carry_out, needs_state=True)


async def _press_enter_too(typist: Typist, record: Record, still_there: StillThere, *, shell: bool) -> None:
    """After another key, which may have changed the state, and was pressed whatever comes of this one."""

    def is_same(*, may_have_moved: bool = False) -> Record:
        return still_there(may_have_moved=True)

    try:
        await press_key(typist, record, "Enter", is_same, shell=shell)
    except AgtmuxError as error:
        result = error.details.get("result_code", TYPED_NOT_SUBMITTED)
        told = f"the key was pressed, and Enter was not: {error.message}"
        raise AgtmuxError(error.code, told, {**error.details, "result_code": result}) from None


async def press_key(typist: Typist, record: Record, key: str, still_there: StillThere, *, shell: bool = False) -> None:
    """One key, where no dialog is open and the screen is known; raises otherwise."""
    if KEY.fullmatch(key) is None:
        raise AgtmuxError(ErrorCode.USAGE, f"{key[:32]!r} is no key; keys are named as in tmux, C-c or Escape")
    for _ in range(_TRIES):
        sight = await _key_may_go(typist, record, still_there, shell=shell)
        if await typist.press(record, sight, key):
            return
    raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "its screen does not hold still; no key was pressed")


async def check_key(typist: Typist, record: Record, still_there: StillThere, *, shell: bool = False) -> None:
    """Raises what would keep a key from being pressed now."""
    await _key_may_go(typist, record, still_there, shell=shell)


async def _key_may_go(typist: Typist, record: Record, still_there: StillThere, *, shell: bool) -> Sight:
    sight = await typist.look(record, shell=shell)
    check_no_dialog(still_there(), sight.seen)
    if record.runtime.has_agent and not sight.footing.hold.anchors:
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED,
            "its screen shows nothing that is known, so no key is pressed; press it there (agtmux attach)",
        )
    return sight


def _checked(text: str | None) -> str:
    if text is None:
        raise AgtmuxError(ErrorCode.USAGE, "say what to send: a text or a key")
    typed = clean(text)
    if not typed.strip():
        raise AgtmuxError(ErrorCode.USAGE, "there is nothing to type in that text")
    if len(typed.encode("utf-8", "replace")) > MOST_BYTES:
        raise AgtmuxError(
            ErrorCode.TOO_LARGE, f"a text may have {MOST_BYTES} bytes; write it to a file and send its name"
        )
    return typed
