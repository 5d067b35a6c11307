"""Whether a composer holds just the text that was pasted into it, as far as a screen can tell."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Final, Literal

import msgspec

# Of a text that is taller than the composer, its end is shown; less than this could be of any other.
_LEAST_TAIL: Final = 40


class TypingSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    # How long an agent takes what comes after a paste for a part of it, in milliseconds.
    paste_window: Annotated[int, msgspec.Meta(ge=0, le=2_000)] = 250
    # What it shows in place of a long paste; a group `lines`, `more` (lines after the first), `characters` or
    # `kilobytes` has its size.
    pasted: str | None = None
    # Signs that stand in the place of the prompt's and make a command of what is typed. A text may bring one along.
    modes: list[str] = []
    # What becomes of a text that is submitted while it works: it waits for its turn, or it cuts short what is said.
    while_running: Literal["queues", "steers"] = "queues"

    @cached_property
    def _pasted(self) -> re.Pattern[str] | None:
        return None if self.pasted is None else re.compile(self.pasted)

    def holds(self, draft: str, mode: str, text: str) -> bool:
        """`draft` is what the screen shows behind the prompt's sign or that of a mode. Line ends of long lines are the
        screen's own, so blanks do not count."""
        if not text.startswith(mode):
            return False
        shown, wanted = _squeezed(draft), _squeezed(text[len(mode) :])
        if shown == wanted:
            return True
        if self._pasted is not None and (found := self._pasted.fullmatch(draft.strip())) is not None:
            return _is_of_size(found, text)
        return len(shown) >= _LEAST_TAIL and wanted.endswith(shown)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _is_of_size(found: re.Match[str], text: str) -> bool:
    lines = text.count("\n") + 1
    sizes = {
        "lines": f"{lines}",
        "more": f"{lines - 1}",
        "characters": f"{len(text)}",
        "kilobytes": f"{len(text.encode()) / 1024:.1f}",
    }
    told = {name: size for name, size in found.groupdict().items() if size is not None}
    # One long line is told of without a size.
    return all(sizes[name] == size for name, size in told.items()) and (bool(told) or lines == 1 < len(text))
