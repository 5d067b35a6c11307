"""Whether what an agent has reported to ask, and what its screen shows, are one question.

A yes goes to the dialog on the screen. So where this is in doubt they are two, and the screen's own words are shown.
"""

from __future__ import annotations

import re
from typing import Final

from agtmux.domain.events import Attention

_FRAME: Final = " \t│┃"
_COUNTED: Final = re.compile(r"(?:\S+ )?(\S+) \(?\+\d+ -\d+\)?")
# Letters and digits of a plan that no other is likely to have in a row.
_TELLING: Final = 10


def is_same(told: Attention | None, seen: Attention | None) -> bool:
    if told is None or seen is None:
        return True
    shown = [line for line in (each.strip(_FRAME) for each in _lines(seen)) if line]
    if told.kind == seen.kind == "plan":
        return _is_plan(told, shown)
    return _is_whole(told.summary, shown) or (told.summary.startswith("/") and _is_file(told.summary, shown))


def _lines(attention: Attention) -> list[str]:
    return [attention.summary, *(attention.detail or "").splitlines()]


def _is_whole(summary: str, shown: list[str]) -> bool:
    """Whether some lines of it, one after the other, are just that: a command that is a part of another is not it."""
    asked, is_cut = _bare(summary.removesuffix("…")), summary.endswith("…")
    for first in range(len(shown)):
        text = ""
        for line in shown[first:]:
            text += _bare(line)
            if text == asked or (is_cut and asked and text.startswith(asked)):
                return True
            if not asked.startswith(text):
                break
    return False


def _is_file(path: str, shown: list[str]) -> bool:
    """Whether a dialog asks about that file, which is often named from the project on."""
    own = path.rpartition("/")[2]
    names = [name for line in shown if own and (name := _asked_about(line)).rpartition("/")[2] == own]
    # Where more of its name stands, a file of the same name elsewhere is another.
    alone = [line for line in shown if " " not in line and line.rpartition("/")[2] == own]
    return bool(names) and all(_is_end(name, path) for name in (*names, *alone))


def _asked_about(line: str) -> str:
    """The file in "Do you want to edit src/label.py?" or "label.py (+1 -1)"."""
    if line.endswith("?") and " " in line:
        return line.removesuffix("?").split()[-1].strip("'\"`")
    found = _COUNTED.fullmatch(line)
    return "" if found is None else found[1]


def _is_end(name: str, path: str) -> bool:
    return path.endswith("/" + name.removeprefix("~/").removeprefix("./").lstrip("/"))


def _is_plan(told: Attention, shown: list[str]) -> bool:
    """A screen shows it without its markup, and often only a part, or above the dialog and nothing in it."""
    whole = _plain(f"{told.summary}{told.detail or ''}")
    drawn = [text for line in shown if not line.endswith(("?", ":")) and len(text := _plain(line)) >= _TELLING]
    return not drawn or any(text in whole for text in drawn)


def _bare(text: str) -> str:
    # Some put a shell's prompt before a command.
    return "".join(text.removeprefix("$ ").split())


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text))
