"""Two witnesses of one agent: what its screen shows and what its session file says.

The screen is what the user sees, and knows what is asked; the file sees through menus and viewers and is there while
the screen is between two looks. Where both say the same, nobody has to look twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from agtmux.agents.screen.classify import Seen
from agtmux.agents.sessions import Status
from agtmux.domain.states import Confidence, Reason, State

ERROR, APPROVAL, INPUT, RUNNING, COMPLETED, IDLE, UNKNOWN = State

# What the screen shows → what the file may say instead, and then it counts. A dialog on the screen is there whatever
# the file says, and so is a busy line. A prompt may be all there is to see while an answer streams in, and nothing is
# worth a wait that was missed.
FILE_COUNTS: Final[dict[State, frozenset[State]]] = {
    ERROR: frozenset({APPROVAL, INPUT}),
    APPROVAL: frozenset(),
    INPUT: frozenset(),
    RUNNING: frozenset({APPROVAL, INPUT}),
    COMPLETED: frozenset({APPROVAL, INPUT, RUNNING}),
    IDLE: frozenset({APPROVAL, INPUT, RUNNING}),
    # Not that the agent is at rest: a screen that no rule reads may show a dialog that the file does not know of.
    UNKNOWN: frozenset({APPROVAL, INPUT, RUNNING, ERROR}),
}
# What it may say instead of a menu of the user's own.
FILE_COUNTS_BEHIND_OVERLAY: Final = frozenset({APPROVAL, INPUT, RUNNING, COMPLETED, IDLE, ERROR})

_AT_REST: Final = frozenset({COMPLETED, IDLE, ERROR})
_WAITING: Final = frozenset({APPROVAL, INPUT})


@dataclass(frozen=True, slots=True)
class Reading:
    """What is made of both."""

    seen: Seen
    # Whether both say so.
    is_confirmed: bool = False
    # Whether only the file does, against the screen.
    is_by_file: bool = False
    # Whether the file speaks for a screen that something covers.
    is_behind_overlay: bool = False

    @property
    def is_covered(self) -> bool:
        """Whether something is drawn over what the agent does: a menu, a viewer."""
        return self.seen.is_overlay or self.is_behind_overlay

    @property
    def meaning(self) -> object:
        """What would be news if it were another."""
        asked = self.seen.asked
        return self.seen.state, self.seen.reason_code, None if asked is None else asked.fingerprint


def read_both(seen: Seen, status: Status | None) -> Reading:
    if status is None:
        return Reading(seen)
    # That a turn was stopped is written on the screen, and stays there until the next one.
    is_stopped = seen.reason_code == Reason.INTERRUPTED and status.state is RUNNING
    counts = FILE_COUNTS_BEHIND_OVERLAY if seen.is_overlay else FILE_COUNTS[seen.state]
    if status.state in counts and not is_stopped:
        # Some files say that the agent works while it asks, and a screen that no rule reads may show what it asks.
        is_doubtful = seen.state is UNKNOWN and not seen.is_overlay and status.state not in _WAITING
        told = replace(
            seen,
            state=status.state,
            reason_code=status.reason_code,
            confidence=Confidence.LOW if is_doubtful else Confidence.MEDIUM,
            evidence=(status.note, *seen.evidence),
            asked=None,
            is_overlay=False,
        )
        return Reading(told, is_by_file=True, is_behind_overlay=seen.is_overlay)
    is_same = any(seen.state in each and status.state in each for each in (_AT_REST, _WAITING, {RUNNING}))
    if not is_same:
        return Reading(seen)
    # The screen may be too small to say so.
    was_stopped = seen.state is status.state is IDLE and status.reason_code == Reason.INTERRUPTED
    reason_code = Reason.INTERRUPTED if was_stopped else seen.reason_code
    return Reading(replace(seen, reason_code=reason_code, evidence=(*seen.evidence, status.note)), is_confirmed=True)
