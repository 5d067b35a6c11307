"""Text of others for people's eyes: agents, screens and machines say what they like, and may not steer a terminal."""

from __future__ import annotations


def legible(text: str, keep: str = "") -> str:
    """With a space for whatever does not print. `keep` is what may stand all the same, as newlines where lines are
    printed."""
    return text if text.isprintable() else "".join(char if char.isprintable() or char in keep else " " for char in text)
