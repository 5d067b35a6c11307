"""Screens of one pane, one after the other, put together to what a longer screen would show. Pure: lines in, lines out.

Programs scroll, draw the last lines anew, clear the screen. So where a screen belongs is found by the lines that it
shares with what is known, and what it shows last counts. Screens that share nothing are a gap, which is marked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

# Indented: what follows it may be the rest of what it is in.
GAP: Final = "  […]"
MOST_LINES: Final = 5_000
# Lines that are everywhere say little about where one is.
_MOST_PLACES: Final = 40
_LEAST_SHARE: Final = 0.5
# Lines in a row that are no accident, and how far back they are looked for.
_LEAST_RUN: Final = 3
_RECENT: Final = 400


def add(known: Sequence[str], shown: Sequence[str]) -> list[str]:
    """`known` with `shown` in its place, which is what counts from there on."""
    if not shown:
        return list(known)
    if not known:
        return list(shown)[-MOST_LINES:]
    if (place := _place(known, shown)) is not None:
        first = _first_alike(known, shown, place)
        found = [*known[: max(place, 0) + first], *shown[first:]]
    elif (run := _run(known, shown)) is not None:
        found = [*known[: run[0]], *shown[run[1] :]]
    else:
        found = [*known, GAP, *shown]
    return found[-MOST_LINES:]


def _place(known: Sequence[str], shown: Sequence[str]) -> int | None:
    """Where among the known lines the first of the shown ones is; less than 0 if it is above all of them."""
    places: dict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(known):
        if line.strip():
            places[line].append(at)
    votes: Counter[int] = Counter()
    for at, line in enumerate(shown):
        if line.strip():
            for place in places.get(line, ())[-_MOST_PLACES:]:
                votes[place - at] += 1
    # Most of what would then be in the same place must be the same; of equals, the latest.
    for place, count in sorted(votes.items(), key=lambda each: (each[1], each[0]), reverse=True):
        first, last = max(place, 0), min(place + len(shown), len(known))
        both = sum(bool(known[at].strip() or shown[at - place].strip()) for at in range(first, last))
        if count >= _LEAST_SHARE * both:
            return place
    return None


def _first_alike(known: Sequence[str], shown: Sequence[str], place: int) -> int:
    """The first of the shown lines that is as it was. What is above it stands over what was there, as the prompt that
    some keep at the top while its answer scrolls; what is drawn anew is below."""
    if place < 0:
        return 0
    both = range(min(len(shown), len(known) - place))
    return next((at for at in both if shown[at].strip() and shown[at] == known[place + at]), 0)


def _run(known: Sequence[str], shown: Sequence[str]) -> tuple[int, int] | None:
    """Where the longest row of lines begins that both have: in what is known, and in what is shown. What is above it
    was drawn anew, as a banner that makes room for what is said below. Of equals, the latest."""
    first = max(0, len(known) - _RECENT)
    best, where = _LEAST_RUN, None
    # By the line of `shown` that a row ends at: how many lines it has, and how many of these say something.
    rows: list[tuple[int, int]] = [(0, 0)] * len(shown)
    for at in range(first, len(known)):
        before, rows = rows, [(0, 0)] * len(shown)
        for there, line in enumerate(shown):
            if line == known[at]:
                length, telling = before[there - 1] if there else (0, 0)
                rows[there] = length + 1, telling + bool(line.strip())
                if rows[there][1] >= best:
                    best, where = rows[there][1], (at - length, there - length)
    return where
