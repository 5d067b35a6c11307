"""Moments as people read them."""

from __future__ import annotations

from calendar import timegm
from time import localtime, strftime

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# Of `2026-11-16T18:32:48.173331Z`.
_PARTS: Final = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))


def local_time(moment: str) -> str:
    """When it was, by the clock on the wall."""
    year, month, day, hour, minute, second = (int(moment[at:end]) for at, end in _PARTS)
    return strftime("%Y-%m-%d %H:%M:%S", localtime(timegm((year, month, day, hour, minute, second))))


def short_time(moment: str) -> str:
    """The same for a table: without the date if it was today, without the seconds if not."""
    whole = local_time(moment)
    is_today = whole.startswith(strftime("%Y-%m-%d"))
    return whole[11:] if is_today else whole[5:16]
