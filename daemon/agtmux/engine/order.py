"""In which order events of one source count, whatever order they arrive in.

The key is a total order, so that replaying the same events in any order ends at the same place:
numbered events follow their numbers; others the time they happened, as far as the clock that says so can be
trusted; then the time they came in; then their id. An unnumbered event of a source that numbers its events cannot
be placed and never overtakes a numbered one. An event agtmux cannot read never overtakes one that it can.
"""

from __future__ import annotations

from typing import NamedTuple

from agtmux.domain.events import Event
from agtmux.domain.timestamps import Timestamp


class OrderKey(NamedTuple):
    readable: bool
    numbered: bool
    source_seq: int
    effective_event_time: Timestamp
    ingested_at: Timestamp
    event_id: str


def effective_event_time(event: Event, skew_budget: int) -> Timestamp:
    """The source's own time while its clock agrees with ours, else the time we took the event in."""
    trusted = abs(event.event_time - event.ingested_at) <= skew_budget
    return event.event_time if trusted else event.ingested_at


def order_key(event: Event, skew_budget: int) -> OrderKey:
    return OrderKey(
        readable=event.verdict is not None and not event.verdict.is_unsupported,
        numbered=event.source_seq is not None,
        source_seq=event.source_seq if event.source_seq is not None else 0,
        effective_event_time=effective_event_time(event, skew_budget),
        ingested_at=event.ingested_at,
        event_id=event.event_id,
    )
