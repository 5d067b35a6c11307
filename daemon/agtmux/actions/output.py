"""`view-output`: the last lines of a pane, if who is meant is still in it."""

from __future__ import annotations

from typing import Final
from unicodedata import category

from agtmux.actions.desk import Asked, Done, Kind, Known, PaneKey
from agtmux.actions.guards import StillThere
from agtmux.actions.reach import Reach, inhabited
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.engine.apply import Record
from agtmux.targets.messages import Output

DEFAULT_LINES: Final = 200
MOST_LINES: Final = 50_000
DONE: Final = "done"
# As much as a screen shows.
PREVIEW_LINES: Final = 100


def view_output(reach: Reach) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        lines = int(asked.parameters.get("lines", DEFAULT_LINES))
        if not 1 <= lines <= MOST_LINES:
            raise AgtmuxError(ErrorCode.USAGE, f"lines may be 1 to {MOST_LINES}")
        text = await last_lines(reach, record, lines)
        # Another may have come while the answer was on its way; then it is not known whose this is.
        still_there()
        return Done(DONE, {"lines": text.count("\n") + 1 if text else 0}, {"output": text})

    return Kind(carry_out, needs_state=False)


async def preview(reach: Reach, known: Known, key: PaneKey) -> tuple[Record, str]:
    """A glance at a pane that somebody is about to choose, and whose it is."""
    record = known.records[key]
    text = await last_lines(reach, record, PREVIEW_LINES)
    now = known.records.get(key)
    if now is None or now.runtime.runtime_id != record.runtime.runtime_id:
        raise AgtmuxError(ErrorCode.RUNTIME_STALE, "what was in that pane has ended; list the panes again")
    return record, text


async def last_lines(reach: Reach, record: Record, lines: int) -> str:
    errand = {"do": "output", "lines": lines, **inhabited(reach, record)}
    return legible_lines((await reach.run(record.runtime.target_id, errand, Output)).text)


def legible_lines(text: str) -> str:
    """tmux's own captures hold nothing that steers a terminal; another machine's answer may hold anything."""
    return "".join(char if char.isprintable() or char in "\n\t" else _instead(char) for char in text)


def _instead(char: str) -> str:
    # Agents draw their prompts with no-break spaces.
    return " " if category(char) == "Zs" else "\N{REPLACEMENT CHARACTER}"
