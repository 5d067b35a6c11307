"""The lines by which it is known that a screen still shows what was seen: a prompt to type at, or just this dialog.

A key is pressed only if they are still where they were. Of a dialog that is all it says, as another may differ in one
word. Of a prompt it is the prompt itself: what is around it may stay when a dialog takes its place, and changes by
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from agtmux.agents.screen.asked import Heading
from agtmux.agents.screen.capture import Capture
from agtmux.agents.screen.layout import Layout

# An option that is marked, as dialogs have one: no line may fit this when a key is pressed that is not for a dialog.
# The same to Python and to tmux, within a format of which it has no sign that means anything there.
MARKED_OPTION: Final = "^[ │┃║▌]*([❯›●▶▸→»◉➤] *[0-9]+[.)]|[❯›●▶▸→»◉➤] (Yes|No|Allow|Approve|Run))"
MARKED: Final = re.compile(MARKED_OPTION)
_MOST_TELLING: Final = 3
# A line of a change, with its number or its sign.
_CODE: Final = re.compile(r"\W*\d+ *(?:[-+]|$| )|[ │┃║]*[-+] ?")


class Anchor(NamedTuple):
    # From the top of the screen, from 1.
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Hold:
    """What has to be there, and what must not be."""

    anchors: tuple[Anchor, ...] = ()
    # An expression that no line may fit; empty where one does already.
    absent: str = ""
    # Of a dialog: all that it says is among the anchors, so that no other can be taken for it.
    is_whole: bool = False
    # Those by which it differs from others of its kind. To compare all takes tmux a moment, and these are compared
    # again after it.
    telling: tuple[Anchor, ...] = ()


NO_HOLD: Final = Hold()


def find_hold(layout: Layout) -> Hold:
    """Nothing to hold on to means that no key can be pressed."""
    if layout.choice is not None:
        return _of_dialog(layout)
    composer = layout.composer
    if composer is None:
        return NO_HOLD
    absent = _absent(layout.capture)
    anchors = _alone(layout.capture, dict.fromkeys((composer.top, composer.bottom - 1)))
    if not anchors and absent:
        # The same was sent before and stands above. That no dialog is there has to do, and what is below the prompt.
        anchors = _alone(layout.capture, range(composer.bottom, layout.capture.end))
    return Hold(anchors, absent)


def hold_of_nobody(capture: Capture) -> Hold:
    """Of a screen that is no known agent's: its last line, where one types."""
    return Hold(_alone(capture, [capture.end - 1] if capture.end else []), _absent(capture))


def _of_dialog(layout: Layout) -> Hold:
    choice = layout.choice
    if choice is None:
        return NO_HOLD
    lines = layout.capture.lines
    # The options, and from them upwards what they are about, with the changes that were drawn before it.
    first = choice.top - len(Heading.of(layout, choice).changes)
    wanted = [*choice.rows, *range(choice.options[0].line - 1, first - 1, -1)]
    telling = [at for at in wanted if _tells(lines[at].text)]
    anchors = _alone(layout.capture, telling)
    held = {anchor.number - 1 for anchor in anchors}
    # Lines of code repeat themselves; which file they are for does not.
    is_whole = all(at in held or _CODE.match(lines[at].text) for at in telling)
    about = [anchor for anchor in anchors if anchor.number - 1 not in choice.rows]
    own = [anchor for anchor in about if not anchor.text.rstrip(" │┃║").endswith("?")]
    return Hold(anchors, is_whole=is_whole, telling=tuple(own[:_MOST_TELLING]))


def _absent(capture: Capture) -> str:
    return "" if any(MARKED.match(line.text) for line in capture.lines) else MARKED_OPTION


def _alone(capture: Capture, wanted: Iterable[int]) -> tuple[Anchor, ...]:
    """Those that no other line of the screen is like: it is the first like it that would be found."""
    texts = [line.text for line in capture.lines]
    return tuple(Anchor(at + 1, texts[at]) for at in wanted if texts[at].strip() and texts.count(texts[at]) == 1)


def _tells(text: str) -> bool:
    """Whether there is anything in it but frames and blanks."""
    return any(char.isalnum() for char in text)
