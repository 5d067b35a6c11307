"""Which of the turns that a screen shows are new. Pure.

What was told before is compared without blanks, so that a screen of another width is no news. A turn that goes on is
the same one, told again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agtmux.agents.screen.said import Turn, bare

# Of an answer, at its beginning: what follows may be drawn otherwise later.
_SAME: Final = 400


def known_part(told: Sequence[tuple[str, str]], shown: Sequence[Turn], *, has_news: bool) -> int:
    """How many of the shown turns, from the first on, are the last of those that were told. `has_news`: a turn has
    ended since, so where the same was said again and again the last of them is new."""
    most = min(len(told), len(shown))
    # All that is shown may be known. But if the next fits as well, there is one more than there was.
    for many in range(most, 0, -1):
        if _are_same(told[-many:], shown[:many]):
            fewer = many - 1
            is_periodic = has_news and many == len(shown) and _are_same(told[len(told) - fewer :], shown[:fewer])
            return fewer if is_periodic and fewer else many
    if not told:
        return 0
    # An answer may be drawn otherwise by now; the prompt is not.
    asked = [bare(turn.prompt)[:_SAME] for turn in shown]
    return len(asked) - asked[::-1].index(told[-1][0]) if told[-1][0] in asked else 0


def as_told(turn: Turn) -> tuple[str, str]:
    """What is remembered of a turn."""
    return bare(turn.prompt)[:_SAME], bare(turn.answer)[:_SAME]


def _are_same(told: Sequence[tuple[str, str]], shown: Sequence[Turn]) -> bool:
    return all(is_same(before, turn) for before, turn in zip(told, shown, strict=True))


def is_same(before: tuple[str, str], turn: Turn) -> bool:
    prompt, answer = as_told(turn)
    # The answer may have been cut short then, or its end may have scrolled away since.
    short, long = sorted((before[1], answer), key=len)
    return before[0] == prompt and long.startswith(short)
