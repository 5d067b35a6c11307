"""Text of others for people's eyes: agents, screens and machines say what they like, and may not steer a terminal."""

from __future__ import annotations

# Strong from left to right, drawn as nothing.
LEFT_TO_RIGHT = "\u200e"
# Letters and digits of scripts that are written from right to left, and what marks that direction.
_RIGHT_TO_LEFT = "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]+"


def legible(text: str, keep: str = "") -> str:
    """Commands, paths and names: with a space for whatever does not print, and in the order in which they are written.
    `keep` is what may stand all the same, as newlines where lines are printed."""
    return in_order(printable(text, keep))


def printable(text: str, keep: str = "") -> str:
    """The same for prose, which is read in the direction of its script."""
    return text if text.isprintable() else "".join(char if char.isprintable() or char in keep else " " for char in text)


def in_order(text: str) -> str:
    """Every word of a right-to-left script for itself: otherwise `a > b` is drawn as `b < a` where both are such words,
    and another command is read than the one that is run. Nothing else is changed, and twice is as once."""
    if text.isascii():
        return text
    import re

    mark = LEFT_TO_RIGHT
    return re.sub(f"{mark}?({_RIGHT_TO_LEFT}){mark}?", rf"{mark}\1{mark}", text)


def legible_json(line: bytes) -> bytes:
    """The same JSON, with an escape for whatever does not print: a terminal may be where it goes."""
    if line.isascii() and b"\x7f" not in line:
        # JSON has no other control characters than escaped ones, but for line ends and tabs between its parts.
        return line
    text = line.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char in "\n\r\t" else _escaped(char) for char in text).encode()


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
