"""Durations as people write them: `500ms`, `2s`, `1h30m`, `7d`. The only place that parses or prints them."""

from __future__ import annotations

import re

from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MICROSECONDS: Final[dict[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
SECOND: Final = MICROSECONDS["s"]

_PART = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?(us|ms|s|m|h|d)", re.ASCII)
_LONGEST: Final = 3650 * MICROSECONDS["d"]


def parse_duration(text: str) -> int:
    """Microseconds; every number needs its unit, so that `5` is never guessed at."""
    total = position = 0
    while match := _PART.match(text, position):
        whole, fraction, unit = match.groups()
        total += int(whole) * MICROSECONDS[unit]
        if fraction:
            total += int(fraction) * MICROSECONDS[unit] // 10 ** len(fraction)
        position = match.end()
    if not text or position != len(text) or total > _LONGEST:
        raise AgtmuxError(
            ErrorCode.USAGE,
            f"{text[:40]!r} is not a duration; write a number with its unit, such as 500ms, 2s, 1h30m or 7d",
        )
    return total


def format_duration(microseconds: int) -> str:
    """The same duration in its shortest exact form; `parse_duration` reads it back."""
    if microseconds == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, microseconds = divmod(microseconds, MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_age(microseconds: int) -> str:
    """An age for people: one unit, rounded down."""
    seconds = max(0, microseconds) // SECOND
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
