"""The lines by which it is known that a screen still shows what was seen: a prompt to type at, or just this dialog.

A key is pressed only if they are still where they were. So they must be lines that go when it goes, and that do not
change by themselves, as a footer or a busy line does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agtmux.agents.screen.layout import Layout

_MOST: Final = 10


class Anchor(NamedTuple):
    # From the top of the screen, from 1.
    number: int
    text: str


def find_anchors(layout: Layout) -> tuple[Anchor, ...]:
    """Empty if there is nothing that could be told from the rest of the screen."""
    lines = layout.capture.lines
    if layout.choice is not None:
        choice = layout.choice
        # The options, and from them upwards what they are about.
        wanted = [*choice.rows, *range(choice.options[0].line - 1, choice.top, -1)]
    elif layout.composer is not None:
        composer = layout.composer
        # Its own lines, or what is below if those are the same as others above.
        wanted = [composer.top, composer.bottom - 1] if composer.bottom - 1 > composer.top else [composer.top]
        if not any(_is_alone(layout, at) for at in wanted):
            wanted = list(range(composer.bottom, layout.capture.end))
    else:
        return ()
    found = [Anchor(at + 1, lines[at].text) for at in wanted if lines[at].content and _is_alone(layout, at)]
    return tuple(found[:_MOST])


def _is_alone(layout: Layout, at: int) -> bool:
    """Whether no other line of the screen is the same: the first that is like it is the one that would be found."""
    text = layout.capture.lines[at].text
    return sum(line.text == text for line in layout.capture.lines) == 1
