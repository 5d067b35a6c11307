"""What was asked and answered, as far as a screen shows it: blocks that begin with a sign and go on below it, indented.

It is what can be seen and no more: a terminal has no word for where a line was wrapped, and agents draw Markdown
instead of writing it. Where an agent writes its conversation down, that is read instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import msgspec

from agtmux.agents.screen.capture import read_capture
from agtmux.agents.screen.classify import classify
from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.rules import ScreenSheet
from agtmux.domain.redact import redact_text
from agtmux.domain.states import State

# A scroll bar, or the side of a box that the whole screen is in.
_SIDE: Final = re.compile(r"\s*[│┃║▐]$")
_LOOKS: Final = re.compile(r"\x1b\[[0-9;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]")
# Lines of a capture that are looked at for where the user types.
_MOST_SHOWN: Final = 200
_INDENT: Final = 2
_EDGE: Final = 12
_NEVER: Final = "(?!)"
# How far a secret is looked for beyond the end of its line: back, and in lines.
_REACH: Final = 300
_MOST_PIECES: Final = 12
_SHORTEST_SECRET: Final = 16


class SpokenSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    """How a conversation looks. Without `answer` nothing is known of it."""

    # How a block of the model's own words begins, and those that begin so and are none of it.
    answer: str = _NEVER
    no_answer: str = _NEVER
    # A line below a block's first that is no part of it any more; and one that shows that the whole block is none.
    ends: str = _NEVER
    is_tool: str = _NEVER
    # What is drawn at the end of a prompt's first line, beside it.
    beside: str = _NEVER
    # Columns at the right that are left free where a line is wrapped.
    margin: int = 2

    @property
    def is_known(self) -> bool:
        return self.answer != _NEVER

    @cached_property
    def patterns(self) -> dict[str, re.Pattern[str]]:
        names = ("answer", "no_answer", "ends", "is_tool", "beside")
        return {name: re.compile(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class Turn:
    prompt: str
    # Empty as long as nothing was answered.
    answer: str
    # The line that it begins on.
    at: int = field(default=0, compare=False)


def content(screen: ScreenSheet, text: str) -> tuple[list[str], int]:
    """The lines above where the user types, or above the dialog that is open, without looks: all of them if there is
    neither; and how wide the screen is, as far as that can be seen."""
    capture = read_capture(text)
    layout = screen.layout(capture)
    end = capture.end if layout.composer is None else layout.composer.frame
    if (dialog := _dialog_top(screen, text, layout)) is not None:
        end = min(end, dialog)
    width = max((len(line.text) for line in capture.lines), default=0)
    return cleaned(line.text for line in capture.lines[:end]), width


def _dialog_top(screen: ScreenSheet, text: str, layout: Layout) -> int | None:
    """Where the dialog begins that is open. What it shows was said by nobody, and its options are marked with the sign
    that a prompt begins with. Where its beginning cannot be told from what was said before, nothing is read."""
    if layout.choice is not None:
        return layout.choice.top
    if layout.composer is not None and layout.above is None:
        return None
    if classify(text, screen).state not in (State.WAITING_APPROVAL, State.WAITING_INPUT):
        return None
    return 0 if layout.above is None else layout.above.top


def long_content(screen: ScreenSheet, text: str) -> tuple[list[str], int]:
    """The same of a screen with what has scrolled away above it."""
    lines = text.rstrip("\n").split("\n")
    shown, width = content(screen, "\n".join(lines[-_MOST_SHOWN:]))
    above = [_LOOKS.sub("", line) for line in lines[:-_MOST_SHOWN]]
    return [*(_SIDE.sub("", line.replace("\xa0", " ").rstrip()).rstrip() for line in above), *shown], width


def cleaned(lines: Iterable[str]) -> list[str]:
    found = [_SIDE.sub("", line.replace("\xa0", " ").rstrip()).rstrip() for line in lines]
    while found and not found[-1]:
        found.pop()
    return found


def read_turns(screen: ScreenSheet, spoken: SpokenSheet, lines: Sequence[str], width: int) -> list[Turn]:
    """Those that begin on these lines; what is left of an earlier one above them is not told."""
    user, patterns = re.compile(screen.user), spoken.patterns
    turns: list[tuple[int, str, list[str]]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        is_user = user.match(line) is not None
        begin = None if is_user else patterns["answer"].match(line)
        if not is_user and begin is None:
            at += 1
            continue
        first = at
        block, at = _block(lines, at, patterns)
        if is_user:
            # What stands beside it is at the right edge, on any of its lines.
            block = [patterns["beside"].sub("", each).rstrip() if len(each) > width - _EDGE else each for each in block]
            turns.append((first, _joined(block, width - spoken.margin), []))
        elif turns and not patterns["no_answer"].match(line) and not _is_tool(lines, at, patterns):
            turns[-1][2].append(_joined(block, width - spoken.margin))
    return [Turn(prompt, "\n\n".join(answers), first) for first, prompt, answers in turns]


def _block(lines: Sequence[str], at: int, patterns: dict[str, re.Pattern[str]]) -> tuple[list[str], int]:
    """The block that begins there, without its sign and indentation, and where it ends."""
    first = lines[at]
    column = len(first) - len(first.lstrip())
    # A sign and the blank behind it.
    edge = column + len(first[column:]) - len(first[column + 1 :].lstrip())
    block = [first[edge:]]
    for after in range(at + 1, len(lines)):
        line = lines[after]
        is_below = not line.strip() or len(line) - len(line.lstrip()) >= column + _INDENT
        if not is_below or patterns["ends"].match(line):
            break
        block.append(line[edge:] if not line[:edge].strip() else line.lstrip())
    end = at + len(block)
    while block and not block[-1].strip():
        block.pop()
    return block or [""], end


def _is_tool(lines: Sequence[str], after: int, patterns: dict[str, re.Pattern[str]]) -> bool:
    """Whether the line that ended the block shows that it was no answer."""
    return after < len(lines) and patterns["is_tool"].match(lines[after]) is not None


def _joined(block: Sequence[str], width: int) -> str:
    """With lines put together that were wrapped: those to which the next one's first word would not have fitted."""
    text = block[0]
    last, longest = len(block[0]), max(map(len, block))
    for at, line in enumerate(block[1:], 1):
        word = line.split(maxsplit=1)[0] if line.strip() and line == line.lstrip() else ""
        if word and text and not text.endswith("\n") and last + 1 + len(word) > width - _INDENT:
            # Where a word was broken, it filled its line.
            text += line if last == longest and _hides_a_secret(text, block[at:]) else " " + line
        else:
            text += "\n" + line
        last = len(line)
    return text.strip("\n")


def _hides_a_secret(text: str, rest: Sequence[str]) -> bool:
    """Whether what follows is the rest of a secret that was too long for its line. Taken for a word of its own it would
    not be known for one."""
    begin, end = text[-_REACH:], ""
    for line in rest[:_MOST_PIECES]:
        word, *more = line.split(maxsplit=1) or [""]
        end += word
        if more or not word:
            break
    if len(begin) - begin.rfind(" ") + len(end) < _SHORTEST_SECRET:
        return False
    return redact_text(f"{begin} {end}").endswith(end) and not redact_text(begin + end).endswith(end)


def bare(text: str) -> str:
    """Without anything that wrapping or drawing it anew may change."""
    return "".join(text.split())
