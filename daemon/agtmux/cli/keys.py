"""Keys as a terminal sends them, by name: `j`, `up`, `enter`. What is no key of ours is none."""

from __future__ import annotations

import re

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_NAMES: Final = {
    **{b"\x1b[A": "up", b"\x1bOA": "up", b"\x10": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x0e": "down"},
    **{b"\x1b[5~": "page up", b"\x1b[6~": "page down"},
    **{b"\x1b[H": "home", b"\x1bOH": "home", b"\x1b[1~": "home", b"\x1b[F": "end", b"\x1bOF": "end", b"\x1b[4~": "end"},
    **{b"\r": "enter", b"\n": "enter", b"\x7f": "backspace", b"\x08": "backspace", b"\x1b": "escape"},
    **{b"\x04": "end of input"},
}


def is_unfinished(chunk: bytes) -> bool:
    """Whether the rest of a key may be on its way."""
    return re.search(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z", chunk) is not None or _cut_short(chunk) > 0


def read_keys(chunk: bytes) -> list[str]:
    """Nothing at all means that the terminal is gone."""
    if not chunk:
        return ["end of input"]
    keys: list[str] = []
    while chunk:
        found = _SEQUENCE.match(chunk)
        size = len(found[0]) if found else _length(chunk[0])
        key, chunk = chunk[:size], chunk[size:]
        name = _NAMES.get(key)
        if name is None and not found:
            text = key.decode("utf-8", "ignore")
            name = text if text and text.isprintable() else None
        if name is not None:
            keys.append(name)
    return keys


def _length(first: int) -> int:
    """Of a character in UTF-8; what begins none is one by itself."""
    return 1 if first >= 0xF8 else 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1


def _cut_short(chunk: bytes) -> int:
    """How many bytes the last character lacks."""
    for back in range(1, min(4, len(chunk) + 1)):
        if chunk[-back] & 0xC0 != 0x80:
            return max(_length(chunk[-back]) - back, 0)
    return 0
