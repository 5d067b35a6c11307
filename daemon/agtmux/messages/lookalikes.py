"""What a reader sees of a text: letters without marks, of whatever alphabet, and nothing of what is not drawn.

NFKD takes apart what Unicode itself calls a form of another letter, as fullwidth, bold or accented ones. The table
below has letters that are only drawn alike, as far as our own name needs it: Unicode's own has half a megabyte.
"""

from __future__ import annotations

import bisect
import itertools
import re
import unicodedata
from typing import Final

# Control characters, what joins or marks others; and letters that are drawn as nothing.
_UNSEEN: Final = ("Cc", "Cf", "Cn", "Mn", "Me", "Zs", "Zl", "Zp")
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Between letters they are seen, and the name is read all the same: emphasis, hyphens, dots.
_PASSED_OVER: Final = frozenset("*_~`'-.\u00b7\u2010\u2011\u2012\u2013\u2014\u2022\u00ad")
_ALIKE: Final = {
    "a": "\u13aa\u0430\u0251\u03b1\u1d00\uab7a\ua4ee\u15c5\u2c81\u237a\u028c\u0250\U00016f40\U000102a0@4",
    "g": "\u13c0\u0261\u0260\u0581\u0262\u050d\uab90\ua4d6\u018d\u1d83\u01e5\ua7a1\u13fb9",
    "t": (
        "\u03c4\u0442\u1d1b\uab72\ua4d4\u22a4\u27d9\u2ca7\u01ad\u0167\u0288\u01ab\u2c66\u2020\u1d75\u13a2"
        "\U00010297\U00010315\U00016f0a7"
    ),
    "m": "\u043c\u03bc\u1d0d\uab87\ua4df\u15f0\u03fb\u2c99\u16d6\u0271\u1d6f\u1d86\u13b7\U000102b0\U00010311",
    "u": (
        "\u03c5\u057d\u1d1c\u222a\ua4f4\u028b\ua79f\uab4e\uab52\u22c3\u1200\u144c\u0289\u1d7e\u1d99\u0446"
        "\u045f\u03bd\u0475v\U000104f6\U000118d8\U00016f42"
    ),
    "x": (
        "\u0445\u03c7\u00d7\ua4eb\u1541\u157d\u166e\u292b\u292c\u2a2f\u2573\uab53\u16b7\u2d5d\u2cad\u04b3"
        "\u1d8d\u2715\u2716\u2717\u2718\u2a09\u274c\U00010317\U00010322\U00010290\U000102b4"
    ),
}
# Flags and letters on black ground, which have no form of another letter in Unicode.
_ROWS: Final = (0x1F1E6, 0x1F150, 0x1F170)
_LETTERS: Final = {
    **{letter: ours for ours, letters in _ALIKE.items() for letter in letters},
    **{chr(row + number): chr(ord("a") + number) for row in _ROWS for number in range(26)},
}
# Characters of which it is remembered what is seen of them.
_MOST_KEPT: Final = 20_000
_OPENING: Final = ("Ps", "Pi")
# Brackets that have another category: halves of tall ones, and what hangs over a column of text.
_TALL: Final = frozenset("\u23a1\u23a2\u23a3\u239b\u239c\u239d\ufe35\ufe47\u2e28\ufd3e\ufd3f")
_WORDS: Final = "msgfrom|task(?:request|response|complete|failed)"
# Behind any bracket our name is ours alone, and behind anything else if it goes on as our messages do. In "rn" and
# "nn" a reader sees an m.
_HEAD: Final = re.compile(rf"(\[)agt(?:m|rn|nn)ux|(?<!quoted)agt(?:m|rn|nn)ux(?={_WORDS})")


class _Seen(dict[int, str]):
    """What is seen of each character, worked out when it first occurs: `[` of every opening bracket."""

    def __missing__(self, code: int) -> str:
        seen = _seen(chr(code))
        if len(self) < _MOST_KEPT:
            self[code] = seen
        return seen


def _seen(char: str) -> str:
    category = unicodedata.category(char)
    if category in _UNSEEN or char in _BLANK or char in _PASSED_OVER or char.isspace():
        return ""
    if char in _LETTERS:
        return _LETTERS[char]
    # Braces are code; what begins as our messages do is found behind them as behind anything else.
    if char != "{" and (category in _OPENING or char in _TALL):
        return "["
    parts = [each for each in unicodedata.normalize("NFKD", char) if unicodedata.category(each) not in _UNSEEN]
    letters = [_LETTERS.get(letter, letter) for part in parts for letter in part.casefold()]
    # ⒜ begins with a bracket by its form and is seen as the letter.
    return "".join(letter for letter in letters if letter not in "()") or ("[" if category in _OPENING else "")


_seen_of: Final = _Seen()


def heads(text: str) -> list[int]:
    """Where a reader sees what only agtmux writes: before the name, behind the bracket if there is one."""
    # Most texts lack one of the letters in every form, and the rest of this takes twenty times as long.
    drawn = "".join(map(_seen_of.__getitem__, map(ord, set(text))))
    if not all(letter in drawn for letter in "agtux"):
        return []
    seen = text.translate(_seen_of)
    found = list(_HEAD.finditer(seen))
    if not found:
        return []
    # How much is seen up to and with each character.
    ends = list(itertools.accumulate(len(_seen_of[ord(char)]) for char in text))
    return [bisect.bisect_right(ends, match.start()) + (1 if match[1] else 0) for match in found]
