"""Who may write to whom, and how often. Pure: what was sent is told to it, and so is the time."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from agtmux.domain.durations import SECOND
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.limits import MailLimits
from agtmux.domain.timestamps import Timestamp
from agtmux.messages.directory import OUTSIDE, USER, Role

WINDOW: Final = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Rule:
    """Names, or patterns of names."""

    sender: str
    receiver: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """`reviewer -> *`; the checks of the settings have let it pass."""
        sender, _, receiver = text.partition("->")
        return cls(sender.strip(), receiver.strip())

    def is_about(self, sender: str, receiver: str) -> bool:
        return fnmatchcase(sender, self.sender) and fnmatchcase(receiver, self.receiver)


class Policy:
    def __init__(self, limits: MailLimits, denied: Iterable[str] = ()) -> None:
        self.limits = limits
        self._denied = [Rule.parse(text) for text in denied]
        self._by_pair: dict[tuple[str, str], deque[Timestamp]] = defaultdict(deque)
        self._by_sender: dict[str, deque[Timestamp]] = defaultdict(deque)
        self._forgot_at = Timestamp(0)

    def check_may(self, sender: str, role: Role | None, receiver: str) -> None:
        """Raises if that sender must not write to that receiver."""
        if sender in (USER, OUTSIDE) and receiver == USER:
            raise AgtmuxError(ErrorCode.USAGE, "that would be a message to yourself; name an agent")
        denied = next((rule for rule in self._denied if rule.is_about(sender, receiver)), None)
        if denied is not None:
            raise AgtmuxError(
                ErrorCode.FORBIDDEN,
                f"{sender} may not write to {receiver}: the settings deny {denied.sender} -> {denied.receiver}",
            )
        if role is not None and role.peers is not None and receiver not in role.peers:
            allowed = ", ".join(role.peers) or "nobody"
            raise AgtmuxError(
                ErrorCode.FORBIDDEN, f"{sender} may not write to {receiver}: its team lets it write to {allowed}"
            )

    def count(self, sender: str, receivers: Iterable[str], now: Timestamp) -> None:
        """One message from it, to so many; raises if that is one too many, and counts it otherwise."""
        receivers = list(receivers)
        own = _recent(self._by_sender[sender], now)
        if len(own) >= self.limits.per_sender:
            raise _too_many(f"{sender} has sent {len(own)} messages within a minute", own[0], now)
        pairs = [(receiver, _recent(self._by_pair[sender, receiver], now)) for receiver in receivers]
        for receiver, sent in pairs:
            if len(sent) >= self.limits.per_pair:
                raise _too_many(f"{sender} has sent {len(sent)} messages to {receiver} within a minute", sent[0], now)
        own.append(now)
        for _, sent in pairs:
            sent.append(now)
        self._forget(now)

    def recall(self, sender: str, receiver: str, sent_at: Timestamp) -> None:
        """What was sent before a restart counts too."""
        own = self._by_sender[sender]
        # What was sent to several in one moment was one message.
        if not own or own[-1] != sent_at:
            own.append(sent_at)
        self._by_pair[sender, receiver].append(sent_at)

    def _forget(self, now: Timestamp) -> None:
        """Once in a while, those who are silent."""
        if now - self._forgot_at < WINDOW:
            return
        self._forgot_at = now
        for pair in [pair for pair, sent in self._by_pair.items() if not _recent(sent, now)]:
            del self._by_pair[pair]
        for sender in [sender for sender, sent in self._by_sender.items() if not _recent(sent, now)]:
            del self._by_sender[sender]


def _recent(sent: deque[Timestamp], now: Timestamp) -> deque[Timestamp]:
    while sent and now - sent[0] >= WINDOW:
        sent.popleft()
    return sent


def _too_many(what: str, oldest: Timestamp, now: Timestamp) -> AgtmuxError:
    wait = max(1, -(-(oldest + WINDOW - now) // SECOND))
    return AgtmuxError(
        ErrorCode.LIMIT_RATE,
        f"{what}, which is the limit; wait {wait} s. If two agents answer each other, one of them should stop",
        {"retry_after_seconds": wait},
    )
