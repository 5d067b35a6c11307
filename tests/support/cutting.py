"""A stream as it may arrive: in parts of any size."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import strategies as st

# Shares of the whole, and places right behind its beginning or before its end. To draw one place for each part, when
# the one before is known, would take far longer.
CUTS = st.lists(st.floats(0, 1) | st.integers(-40, 40), max_size=16)


def parts(stream: bytes, cuts: Iterable[float]) -> list[bytes]:
    exact = [cut % (len(stream) + 1) if isinstance(cut, int) else round(cut * len(stream)) for cut in cuts]
    return [stream[begin:end] for begin, end in pairwise([0, *sorted(exact), len(stream)]) if begin < end]
