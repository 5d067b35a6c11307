"""Points in time: microseconds since the epoch inside, RFC 3339 in UTC at the edges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NewType

Timestamp = NewType("Timestamp", int)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Without an offset that would have to be asked for, written and cut off again.
_PLAIN_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
# Year 9999; beyond it neither datetime nor any client can follow.
_LATEST: Final = 253_402_300_799_999_999


def format_timestamp(moment: Timestamp) -> str:
    shown = _PLAIN_EPOCH + timedelta(microseconds=min(max(moment, 0), _LATEST))
    # Each line of each stream has two of these, and strftime takes several times as long.
    return shown.isoformat("T", "microseconds") + "Z"


def parse_timestamp(text: str) -> Timestamp:
    """Raises ValueError on anything but a date and time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no UTC offset")
    microseconds = (moment - _EPOCH) // _MICROSECOND
    if microseconds < 0:
        raise ValueError(f"{text!r} is before 1970")
    return Timestamp(microseconds)
