"""An agent's own rules: what a line in some region of its screen, or its title, says about the state.

A rule is a pattern and a place. Patterns see lines as they are drawn, with their indentation: what an agent says of
itself stands at its edge, what it quotes is indented below something. The rules are data, in `resources/agents`.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Final, Literal

import msgspec

from agtmux.agents.screen.capture import Capture, Line
from agtmux.agents.screen.layout import Layout, read_layout
from agtmux.domain.states import Reason

# `name` is the first line of a dialog, `foot` are the last below it. Of the turn, `signed` are the lines whose sign has
# a colour, `coloured` those that have one colour throughout behind it: a model's words have neither. On a screen
# without colours both are the whole turn, and what is found there is hardly sure.
Where = Literal[
    "title", "name", "heading", "options", "hints", "foot",
    "above", "last", "composer", "below", "turn", "signed", "coloured", "live", "bottom",
]  # fmt: skip
Says = Literal["running", "waiting_approval", "waiting_input", "idle", "error", "overlay"]

# A busy line has tips, a list of tasks or queued messages between itself and the composer.
_ABOVE: Final = 14
_LIVE: Final = 24
_FOOT: Final = 3


class ScreenRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    """`says` is a state, or `overlay`: something that hides the state and changes none."""

    says: Says
    where: Where
    pattern: str
    reason_code: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    # The rule holds only if nothing in the same region matches this.
    unless: str | None = None
    # Or if the pane is not known to have this many columns, for something that is missing where there is room for it.
    room: int = 0
    # False for what a model may have written as well.
    is_sure: bool = True
    kind: Literal["approval", "plan", "question", "error"] | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.MULTILINE)

    @cached_property
    def _unless(self) -> re.Pattern[str] | None:
        return None if self.unless is None else re.compile(self.unless, re.MULTILINE)

    def match(self, text: str) -> str | None:
        """The line that matches, None if none does."""
        found = self._pattern.search(text)
        if found is None or (self._unless is not None and self._unless.search(text)):
            return None
        if self.room and max(map(len, text.split("\n"))) < self.room:
            return None
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.end())
        return text[start : end if end >= 0 else len(text)].strip()


class ScreenSheet(msgspec.Struct, forbid_unknown_fields=True, frozen=True, dict=True):
    # Stand before what is typed, between rules or in a box.
    signs: list[str] = []
    # The same without either.
    bare_signs: list[str] = []
    # A bare sign is bold, and dim before what was sent earlier.
    bright: bool = True
    # What options without a number have, where they would look like lines that are typed.
    plain_option: str | None = None
    # What the agent itself writes into an empty composer, and what it writes beside anything that is in it.
    hint: str | None = None
    # A line that says of an answer that it came too late for its dialog.
    too_late: str | None = None
    beside: str | None = None
    # How a message of the user's begins, once it was sent.
    user: str = r"^[>❯›] "
    # The prompt's sign is drawn faintly while a turn is under way, whatever else is shown.
    fades_when_busy: bool = False
    # How an answer begins, if nothing but the title tells whether it is still being written; and how its end is told.
    answer: str | None = None
    answer_end: str = "$^"
    # Known by descriptions alone: nothing is said with high confidence.
    is_described: bool = False
    # Versions whose screens were looked at.
    verified: list[str] = []
    rule: list[ScreenRule] = []

    @cached_property
    def _user(self) -> re.Pattern[str]:
        return re.compile(self.user)

    @cached_property
    def _plain_option(self) -> re.Pattern[str] | None:
        return None if self.plain_option is None else re.compile(self.plain_option)

    @cached_property
    def _hint(self) -> re.Pattern[str] | None:
        return None if self.hint is None else re.compile(self.hint)

    @cached_property
    def _too_late(self) -> re.Pattern[str] | None:
        return None if self.too_late is None else re.compile(self.too_late)

    @cached_property
    def _beside(self) -> re.Pattern[str] | None:
        return None if self.beside is None else re.compile(self.beside, re.MULTILINE)

    def typed(self, text: str) -> str:
        """What of the text in the composer is the user's."""
        if self._beside is not None:
            text = self._beside.sub("", text)
        return "" if self._hint is not None and self._hint.match(text) else text

    @cached_property
    def _answer(self) -> re.Pattern[str] | None:
        return None if self.answer is None else re.compile(self.answer, re.MULTILINE)

    @cached_property
    def _answer_end(self) -> re.Pattern[str]:
        return re.compile(self.answer_end, re.MULTILINE)

    def may_be_writing(self, regions: dict[Where, str]) -> bool:
        """Whether an answer that looks finished may not be. A title is known to be the agent's own, and to tell, if
        it names a part of the folder that is shown below the composer."""
        turn = regions.get("turn", "")
        if self._answer is None or self._answer.search(turn) is None or self._answer_end.search(turn) is not None:
            return False
        title = regions["title"]
        return not title or title not in regions.get("below", "")

    def layout(self, capture: Capture) -> Layout:
        signs, bare_signs = tuple(self.signs), tuple(self.bare_signs)
        return read_layout(capture, signs, bare_signs, bright=self.bright, plain_option=self._plain_option)

    def regions(self, layout: Layout, title: str) -> dict[Where, str]:
        """The places that rules speak of, as text; empty where the screen has none."""
        lines = [line.text for line in layout.capture.lines[: layout.capture.end]]
        regions: dict[Where, str] = {"title": title, "live": "\n".join(lines[-_LIVE:])}
        if layout.choice is not None:
            choice = layout.choice
            first, last = choice.options[0].line, choice.options[-1].line
            regions["heading"] = _joined([line.content for line in layout.lines(choice.top, first)])
            texts = (line.content for line in layout.lines(choice.top, first) if not line.is_blank and not line.is_rule)
            regions["name"] = next(texts, "")
            regions["options"] = "\n".join(choice.labels)
            regions["hints"] = _joined([line.content for line in layout.lines(last + 1, choice.bottom)])
            below = [line.content for line in layout.lines(last + 1, choice.bottom) if not line.is_rule]
            regions["foot"] = "\n".join([text for text in below if text][-_FOOT:])
            regions["turn"] = "\n".join(lines[self._turn(lines, choice.top) : choice.top])
        if layout.composer is None and layout.choice is None:
            # Nothing to type and nothing to choose: only the last lines are surely of now.
            regions["bottom"] = regions["live"]
        if layout.composer is not None:
            composer = layout.composer
            # Blank lines do not count: an agent on the whole screen has many between its text and its prompt.
            above = [line for line in lines[: composer.frame] if line.strip()]
            regions["above"] = "\n".join(above[-_ABOVE:])
            regions["composer"] = "\n".join(lines[composer.top : composer.bottom])
            regions["last"] = "\n".join(_last_block(lines[: composer.frame]))
            regions["below"] = _joined(lines[composer.bottom :])
            turn = layout.lines(self._turn(lines, composer.frame), composer.frame)
            regions["turn"] = "\n".join([line.text for line in turn])
            is_plain = not layout.capture.has_colours
            regions["signed"] = "\n".join([line.text for line in turn if is_plain or _is_signed(line)])
            regions["coloured"] = "\n".join([line.text for line in turn if is_plain or _is_coloured(line)])
        return regions

    def count_stops(self, layout: Layout) -> int:
        """How many lines say that a turn was stopped, or an answer not taken, whatever came after it."""
        lines = [line.text for line in layout.capture.lines]
        stops = [rule for rule in self.rule if rule.reason_code == Reason.INTERRUPTED and rule.where != "title"]
        late = self._too_late
        return sum(
            any(rule.match(line) is not None for rule in stops) or (late is not None and late.search(line) is not None)
            for line in lines
        )

    def shows_message(self, layout: Layout) -> bool:
        """Whether what the user sent last is on the screen."""
        end = layout.capture.end if layout.composer is None else layout.composer.frame
        return any(self._user.match(line.text) for line in layout.capture.lines[:end])

    def _turn(self, lines: list[str], end: int) -> int:
        """The line of the last message that was sent."""
        return next((at for at in range(end - 1, -1, -1) if self._user.match(lines[at])), 0)


def _is_signed(line: Line) -> bool:
    """Whether what the line begins with has a colour."""
    return bool(line.look_at(len(line.text) - len(line.text.lstrip())).foreground)


def _is_coloured(line: Line) -> bool:
    """Whether all that is behind its sign has one colour."""
    colour = line.look_at(len(line.text) - 1).foreground
    parts = line.text.split(maxsplit=1) if colour else []
    if len(parts) < 2:
        return False
    begin = len(line.text) - len(parts[1])
    return all(line.look_at(at).foreground == colour for at in range(begin, len(line.text)) if line.text[at] != " ")


def _last_block(lines: list[str]) -> list[str]:
    """The lines above the end, up to a blank one."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    start = end
    while start > end - _LIVE and start and lines[start - 1].strip():
        start -= 1
    return lines[start:end]


def _joined(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line.strip())
