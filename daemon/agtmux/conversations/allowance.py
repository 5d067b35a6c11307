"""How much of what is said on one target is kept.

A target says what it likes, and may be somebody else's by now. People and agents say a few megabytes a day; what goes
far beyond that is left where it is until there is room again, so that nothing is lost if it was meant.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from agtmux.conversations.message import Message
from agtmux.domain.runtimes import TargetId

_log = logging.getLogger(__name__)

# Characters: at once, as when a daemon meets many agents for the first time, and in the long run.
AT_ONCE: Final = 64_000_000
A_DAY: Final = 64_000_000
_DAY: Final = 86_400.0
# What a row takes beside its text.
_ROW: Final = 500


@dataclass(slots=True)
class _Account:
    left: float
    at: float
    is_spent: bool = False


class Allowance:
    """Times are of a clock that only goes forward, in seconds."""

    def __init__(self, at_once: int = AT_ONCE, a_day: int = A_DAY) -> None:
        self._at_once = at_once
        self._a_second = a_day / _DAY
        self._accounts: dict[TargetId, _Account] = {}
        # How often each was made to wait.
        self.held_back: Counter[TargetId] = Counter()

    def spend(self, target_id: TargetId, messages: list[Message], now: float) -> None:
        size = sum(len(each.content) + len(each.summary) + _ROW for each in messages)
        self._account(target_id, now).left -= size

    def spend_row(self, target_id: TargetId, now: float) -> None:
        """For a conversation that is begun, whatever is said in it."""
        self._account(target_id, now).left -= _ROW

    def rest(self, target_id: TargetId, now: float) -> float:
        """In how many seconds something may be taken in again; 0 if it may be now."""
        account = self._account(target_id, now)
        was_spent, account.is_spent = account.is_spent, account.left <= 0
        if not account.is_spent:
            return 0.0
        rest = 1.0 - account.left / self._a_second
        if not was_spent:
            self.held_back[target_id] += 1
            _log.warning(
                "%s has said %d megabytes within a short time; the rest of its conversations waits for %d minutes",
                target_id,
                self._at_once // 1_000_000,
                rest // 60 + 1,
            )
        return rest

    def _account(self, target_id: TargetId, now: float) -> _Account:
        account = self._accounts.setdefault(target_id, _Account(self._at_once, now))
        account.left = min(account.left + (now - account.at) * self._a_second, self._at_once)
        account.at = now
        return account
