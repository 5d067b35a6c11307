"""Which of the turns that a screen shows are new. Pure.

What was told before is compared redacted, as it is remembered on the disk, and without blanks, so that a screen of
another width is no news. A turn that goes on is the same one, told again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from agtmux.agents.screen.said import Turn, bare
from agtmux.conversations.message import digest
from agtmux.domain.redact import redact_text

# Turns that are remembered. A screen with what has scrolled away above it may show more.
MOST_TOLD: Final = 40
# Of an answer, at its beginning: for when less of it is shown than there was.
_SAME: Final = 400
# With so much in common two answers to the same prompt are one that is drawn otherwise by now.
_ALIKE: Final = 8


@dataclass(frozen=True, slots=True)
class Told:
    """What is remembered of a turn."""

    # A digest.
    prompt: str
    # Its beginning, how long it is, and a digest of it.
    answer: str
    length: int
    mark: str


@dataclass(frozen=True, slots=True)
class _Shown:
    prompt: str
    answer: str

    def is_same(self, before: Told, *, is_last: bool) -> bool:
        """Whether it is as it was or goes on. Of the last one on a screen the end may not be shown any more."""
        if self.prompt != before.prompt:
            return False
        if len(self.answer) >= before.length:
            return digest(self.answer[: before.length]) == before.mark
        return is_last and before.answer.startswith(self.answer[:_SAME])

    @property
    def told(self) -> Told:
        return Told(self.prompt, self.answer[:_SAME], len(self.answer), digest(self.answer))

    def is_alike(self, before: Told) -> bool:
        most = min(_ALIKE, len(self.answer), len(before.answer))
        return self.answer[:most] == before.answer[:most]


def as_told(turn: Turn) -> Told:
    return _bare(turn).told


def goes_on(before: Told, turn: Turn) -> bool:
    """Whether more of it is shown than was told."""
    shown = _bare(turn)
    return len(shown.answer) > before.length and shown.is_alike(before)


def known_part(told: Sequence[Told], turns: Sequence[Turn], *, has_news: bool) -> tuple[Sequence[Told], int]:
    """How many of the shown turns, from the first on, are the last of those that were told; and these, without the last
    of them where the screen has gone back behind them, as agents do on demand. `has_news`: a turn has ended since, so
    where the same was said again and again the last of them is new."""
    shown = [_bare(turn) for turn in turns]
    if known := _known(told, shown, has_news=has_news):
        return told, known
    now = [turn.told for turn in shown]
    many, end = 0, len(told)
    for first in range(len(told)):
        row = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(told[first:], now, strict=False)))
        # If it has worked, and shows nothing that was never told, then that was said again.
        if row and row >= many and not (has_news and row == len(now)):
            many, end = row, first + row
    return told[:end], many


def _known(told: Sequence[Told], shown: Sequence[_Shown], *, has_news: bool) -> int:
    # What is shown above all that is remembered was told before that.
    most = len(shown) if len(told) >= MOST_TOLD else min(len(told), len(shown))

    def are_same(many: int) -> bool:
        pairs = zip(reversed(told), range(many - 1, -1, -1), strict=False)
        return all(shown[at].is_same(before, is_last=at == len(shown) - 1) for before, at in pairs)

    def are_same_prompts(many: int) -> bool:
        pairs = zip(reversed(told), reversed(shown[:many]), strict=False)
        is_another = has_news and not shown[many - 1].is_alike(told[-1])
        return not is_another and all(turn.prompt == before.prompt for before, turn in pairs)

    # All that is shown may be known. But if the next fits as well, there is one more than there was.
    for many in range(most, 0, -1):
        if are_same(many):
            fewer = many - 1
            is_periodic = has_news and many == len(shown) and fewer > 0 and are_same(fewer)
            return fewer if is_periodic else many
    # An answer may be drawn otherwise by now; the prompt is not.
    return next((many for many in range(most, 0, -1) if are_same_prompts(many)), 0)


def drawn_anew(before: Sequence[Turn], after: Sequence[Turn]) -> int:
    """How many of the last turns before are the first ones after, whatever their lines look like."""
    shown = [_bare(turn) for turn in after]
    told = [as_told(turn) for turn in before]

    def are_same(many: int) -> bool:
        pairs = zip(told[-many:], shown, strict=False)
        return all(turn.prompt == known.prompt and turn.is_alike(known) for known, turn in pairs)

    return next((many for many in range(min(len(told), len(shown)), 0, -1) if are_same(many)), 0)


def _bare(turn: Turn) -> _Shown:
    return _Shown(digest(bare(redact_text(turn.prompt))), bare(redact_text(turn.answer)))
