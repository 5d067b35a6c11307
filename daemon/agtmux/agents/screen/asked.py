"""What a dialog asks: its question, what that is about in one line and in full, its options, and a name for just this
dialog.

Whoever approves a dialog approves all that it holds. So the detail and the fingerprint have every row between the frame
and the options, and a dialog of which a part is missing says so. A model may write rows that look like any part of a
dialog: how such a row looks decides nothing but the words of the summary.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Final

from agtmux.agents.screen.capture import PLAIN, Capture, Line
from agtmux.agents.screen.composer import is_faint
from agtmux.agents.screen.frame import drawn_before, is_divider
from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.options import Choice
from agtmux.domain.events import FULL_ROW, LONGEST_DETAIL, LONGEST_SUMMARY, Incomplete, has_unreadable, shortened_text

# Beside what is asked: these say why and where.
_ASIDES: Final = re.compile(r"(?:Tip|Reason|Environment|Description|Not in (?:team )?allowlist):|[⠀-⣿◐◓◑◒] |\[… ")
# What an agent writes in place of what it leaves out.
_ELIDED: Final = re.compile(
    r"…|\.\.\. (?:first|last) \d|\b\d+ hidden\b|\.\.\. [^.]*\bhidden\b"
    r"|\b\d+ (?:more )?(?:lines?|rows?|files?) (?:hidden|omitted|truncated|more)\b"
    r"|\+ Show details|\bctrl ?[-+] ?\w (?:to )?(?:view all|show more|see more|expand)",
    re.I,
)
# A question that any dialog of its kind asks, and that names nothing.
_USUAL: Final = re.compile(
    r"(?:do you want|would you like|allow|apply|run|write|delete|implement|proceed|continue|ready)\b[^\"'`/]*\?$"
    r"|allow execution of:? '",
    re.I,
)
_LOGIN: Final = re.compile(r"\b(?:log|sign)[ -]?in\b", re.I)
_NAMES_FILE: Final = re.compile(r"[\w-]\.\w{1,5}\b")
_COMMAND: Final = re.compile(r"(?:\$|└|Command:|Destination:|\? \w+ wants to \w+)\s+(?=\S)")
# The same where the first line of a command is blank.
_SIGN: Final = re.compile(r"(?:\$|└|Command:|Destination:|\? \w+ wants to \w+)(?:\s|$)")
# Behind the name of a tool.
_CALL: Final = re.compile(r"\?\s+\w+\s+(?=\S)")
# Cursor says behind a command in which folder.
_FOLDER: Final = re.compile(r" in \.$")
_UNLISTED: Final = re.compile(r"Not in (?:team )?allowlist: (?P<command>.*)")
_DIFF: Final = re.compile(r"\W*\d+ *[-+]? |[-+] ")
_BOX: Final = re.compile(r"^[│┃║] ?(.*?) *[│┃║]$")
_INNER_SIDE: Final = re.compile(r"^( *)[│┃║]( |$)")
_OF_SERVER: Final = "(MCP)"
_DOTS: Final = "╌╍┄┅┈┉"
_CHECK: Final = re.compile(r"^(?:\[[ ✓✔xX*]\]|[•◯○◉☐☑☒]) +")
# Where a change has no name in its dialog, what was said just before has it.
_CHANGED: Final = re.compile(r"[•◦●✔] (?P<what>\w+ (?:\w+ )?\S*\.\w{1,5}\b.*)")
_OF_EDITS: Final = re.compile(r"\b(?:edits?|changes?|patch)\b", re.I)
# A dialog that asks about a plan; one that leaves a mode in which there is none has nothing more to show.
_OF_PLANS: Final = re.compile(r"\b(?:written up a|implement this|here is .{1,20}) plan\b", re.I)
_OF_ACTIONS: Final = re.compile(r"This action (?:may|will) ")
_OF_TOOLS: Final = re.compile(r"\bMCP server to run tool\b|\bMCP tool\b")
_COUNT: Final = re.compile(r"(?:Field|Question) \d+/\d+")
_CORNERS: Final = ("╭", "┌", "┏")
_ENDS: Final = ("╰", "└", "┗")
_SIDES: Final = "│┃║"
# An agent fills the room that a plan leaves.
_GAP: Final = re.compile(r"\n{4,}")
# A blank line within a command.
_BREAK: Final = " ⏎ "
# The widest margin that an agent leaves at the right.
_MARGIN: Final = 8
_DRAWN: Final = frozenset("─━═╌╍┄┅┈┉▔▁▀▄⎯╭╮╰╯┌┐└┘┏┓┗┛├┤┬┴┼│┃║ ")


@dataclass(frozen=True, slots=True)
class Asked:
    kind: str
    summary: str
    detail: str
    options: tuple[str, ...]
    # Which option Enter would take, from 0.
    selected: int | None
    # The same dialog has the same one, whichever option is marked.
    fingerprint: str
    # Why the detail is not all that a yes would be for; None if it is all.
    incomplete: Incomplete | None = Incomplete.NOT_ON_SCREEN
    # The command, the file or the plan alone, uncut, to compare with what was reported.
    subject: str = ""
    # The summary alone says it all.
    is_brief: bool = False

    @property
    def is_whole(self) -> bool:
        return self.incomplete is None


@dataclass(frozen=True)
class Heading:
    """The lines of a dialog above its options, and those of a change or plan that was drawn just before it."""

    lines: tuple[Line, ...]
    before: tuple[Line, ...]
    # The column of the frame's left side, and the columns of the pane.
    left: int
    width: int
    # The lines of the frame, by their identity: others may read the same.
    drawn: frozenset[int]
    # The first line is known to be the dialog's.
    is_certain: bool

    @classmethod
    def of(cls, layout: Layout, choice: Choice) -> Heading:
        lines = layout.capture.lines
        heading = lines[choice.top : choice.options[0].line]
        begin = drawn_before(layout.capture, choice.top)
        before = lines[begin : choice.top] if begin is not None else ()
        left, width = choice.frame.left, layout.capture.width
        return cls(
            heading, before, left, width, frozenset(map(id, _frame_of(heading, left, width))), choice.frame.is_closed
        )

    @cached_property
    def is_framed(self) -> bool:
        return bool(self.lines) and id(self.lines[0]) in self.drawn

    @cached_property
    def texts(self) -> list[str]:
        return [line.content for line in self.lines if line.content and not self._is_drawn(line)]

    @cached_property
    def detail(self) -> str:
        """Every row of text, with its indentation."""
        shown = (line for line in (*self.changes, *self.lines) if not self._is_drawn(line))
        text = textwrap.dedent("\n".join(_inner(line, self.left) for line in shown)).strip("\n")
        return _GAP.sub("\n\n\n", text)

    @cached_property
    def question(self) -> str:
        """The last line that is a question, with what was wrapped before it; else how the dialog is called."""
        rows = self._question_rows
        if rows:
            return " ".join(line.content for line in rows)
        texts = self.texts
        telling = [text for text in texts if "? " in text[2:]] or [text for text in texts if _LOGIN.search(text)]
        return (telling or texts or [""])[0]

    @cached_property
    def _question_rows(self) -> list[Line]:
        rows = range(len(self.lines))
        # A dialog without a frame asks before it says what about, and one with a frame after it.
        asking = [at for at in rows if self.lines[at].content.endswith("?")]
        last = None if not asking else asking[-1] if self.is_framed or not self.is_certain else asking[0]
        if last is None:
            return []
        first = last
        is_usual = _USUAL.match(self.lines[last].content) is not None
        while first > 0 and not is_usual and _runs_on(self.lines[first - 1], self.lines[first], self.width):
            if _is_faint(self.lines[first - 1]) and not _is_faint(self.lines[last]):
                break
            first -= 1
        return list(self.lines[first : last + 1])

    @cached_property
    def subject(self) -> str:
        """What a yes would be for: the command, the file; the question where that says it."""
        text = self.command.replace(FULL_ROW, " ")
        summary = _BREAK.join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
        # Arguments say little without the name of what they are for.
        tool = self._tool(text)
        return summary if not tool or tool in summary else f"{tool}: {summary}"

    @cached_property
    def command(self) -> str:
        """The same with the line breaks of the screen."""
        guess = self._guess()
        question = self.question
        is_named = _OF_EDITS.search(question) is not None or _NAMES_FILE.search(question) is not None
        if not self.is_certain or _USUAL.match(question) is None or is_named:
            return guess
        # Rows may imitate what the guess goes by. Whatever it leaves out has to be in it.
        rest = self._content
        shown = "".join(guess.split())
        is_all = all("".join(_FOLDER.sub("", _unsigned(_unboxed(line.content))).split()) in shown for line in rest)
        if is_all:
            return guess
        return self._rows(rest) if self._is_named else _unsigned(self._rows(rest))

    @cached_property
    def _is_named(self) -> bool:
        """Whether the first row is what a dialog with a frame is called, and not its command with a sign."""
        return self.is_framed and bool(self.texts) and _SIGN.match(self.texts[0]) is None

    @cached_property
    def is_brief(self) -> bool:
        """Whether the one line holds all of it, as it does of a command, and not of a change. Of several rows nothing
        tells which were one line, and the line breaks of a command decide what runs."""
        is_one_row = not {"\n", FULL_ROW} & set(self.command.strip())
        return is_one_row and self.command != self.question and not _OF_EDITS.search(self.question) and not self.changes

    @cached_property
    def _content(self) -> list[Line]:
        """What a model may have written: all but what the dialog is called, its question, notes and descriptions."""
        body = self._without_asides
        asks = {id(line) for line in self._question_rows}
        first = next((at for at, line in enumerate(body) if id(line) in asks), len(body))
        body = body[:first] if self.is_framed else [line for line in body if id(line) not in asks]
        named = self._is_named and len(body) > 1 and _unboxed(body[0].content) == _unboxed(self.texts[0])
        # The name of a tool stands before what it is called with.
        tools = (
            line for line in body[named : named + 2] if _CALL.match(line.content) or line.content.endswith(_OF_SERVER)
        )
        names = {id(line) for line in tools}
        body = [line for line in body[named:] if id(line) not in names] or body
        if self._is_named and self.lines[0].content[:1] not in _CORNERS and body and body[0].start >= self._edge + 2:
            # What the agent says itself stands further left, as the dialog's name does.
            body = [line for line in body if line.start >= self._edge + 2]
        while len(body) > 1 and _is_faint(body[-1]):
            body.pop()
        return body

    def _guess(self) -> str:
        signed = [line for line in self.lines if _COMMAND.match(line.content)]
        if self.is_framed:
            # There a sign is the agent's own only in the first row.
            signed = [line for line in signed if line.content == self.texts[0]][:1]
        if len(signed) > 1:
            # One of them is the agent's sign, and nothing tells which.
            return self._rows(line for line in self._body if not self._asks(line))
        if signed:
            found = _COMMAND.match(signed[0].content)
            return _FOLDER.sub("", self._from(signed[0])[found.end() if found else 0 :].strip())
        question = self.question
        if _NAMES_FILE.search(question):
            return question
        if (between := self._between) and not self._is_change(between[0]):
            return self._rows(between)
        if _USUAL.match(question) is None:
            return question
        boxed = self._boxed
        if boxed and not self._is_change(boxed[0]):
            text = self._rows(boxed)
            # Arguments say little without the name of what they are for.
            return f"{self.texts[0]}: {text}" if text.startswith(("{", "}")) else text
        lines = [line for line in self._without_asides if not self._asks(line)]
        if lines and (found := _CALL.match(lines[0].content)) is not None:
            # What it is called with stands below, whole.
            has_more = len(lines) > 1 and not self._is_change(lines[1])
            return self._from(lines[1]) if has_more else lines[0].content[found.end() :]
        # The first is what the dialog is called, unless that is the question, has left the screen, or is all there is.
        is_named = self.lines[0].is_rule and _unboxed(self.texts[0]) not in question
        body = lines[1:] if len(lines) > 1 and is_named else lines
        if body and not self._is_change(body[0]):
            return self._from(body[0])
        unlisted = next((each for text in self.texts if (each := _UNLISTED.match(text))), None)
        if not body and unlisted is not None:
            return unlisted["command"]
        changed = next((each for line in self.changes if (each := _CHANGED.match(line.content))), None)
        named = next(
            (text for text in self.texts if _NAMES_FILE.search(text) and not _DIFF.match(_unboxed(text))), None
        )
        return named or (changed["what"] if changed is not None else question)

    def _asks(self, line: Line) -> bool:
        """Whether it is the dialog's own question, or a row of it: a model's row may have the same letters."""
        return any(line is each for each in self._question_rows) or line.content == self.question

    @cached_property
    def plan(self) -> str:
        """A plan alone: what stands between dotted lines, in a box, or was drawn before the dialog."""
        if self.changes:
            return "\n".join(line.content for line in self.changes[1:] if line.content and not _is_faint(line))
        if between := self._between:
            return "\n".join(line.content for line in between)
        boxed = self._boxed
        return "\n".join(_unboxed(line.content) for line in boxed) if boxed else self.question

    @cached_property
    def changes(self) -> tuple[Line, ...]:
        """What is to be changed or done, where that was drawn before the dialog and not in it."""
        return self.before if self._is_elsewhere else ()

    @cached_property
    def _is_elsewhere(self) -> bool:
        is_boxed = bool(self.lines) and self.lines[0].content[:1] in _CORNERS
        if is_boxed or self._dotted or any(_DIFF.match(_unboxed(text)) for text in self.texts):
            return False
        return any(_OF_PLANS.search(text) for text in self.texts) or _OF_EDITS.search(self.question) is not None

    @cached_property
    def is_missing(self) -> bool:
        """What is to be changed or done is neither in the dialog nor just before it, or one of the two dotted lines
        around it has left the screen."""
        if any(_OF_ACTIONS.match(text) for text in self.texts[:3]):
            # It asks for leave to do something that it does not show.
            return True
        if _OF_TOOLS.search(self.question) and all(text in self.question or _COUNT.match(text) for text in self.texts):
            # A tool's name without what it is called with.
            return True
        return (self._is_elsewhere and not self.before) or len(self._dotted) % 2 == 1

    def _is_drawn(self, line: Line) -> bool:
        """Whether the agent drew it as a part of the frame. A model's row of the same signs stands further right."""
        return id(line) in self.drawn

    def _is_change(self, line: Line) -> bool:
        """Whether it is a line of a change, in a dialog that asks about one."""
        return _OF_EDITS.search(self.question) is not None and _DIFF.match(_unboxed(line.content)) is not None

    @cached_property
    def _body(self) -> list[Line]:
        """What is below the dialog's name."""
        lines = [line for line in self.lines if line.content and not self._is_drawn(line)]
        is_named = bool(lines) and self.lines[0].is_rule and _unboxed(lines[0].content) not in self.question
        return lines[1:] if len(lines) > 1 and is_named else lines

    @cached_property
    def _edge(self) -> int:
        """The column of the dialog's text that is furthest left."""
        return min((line.start for line in self.lines if line.content and not self._is_drawn(line)), default=0)

    @cached_property
    def _without_asides(self) -> list[Line]:
        """The lines with text in them; an aside goes on to a blank one."""
        found: list[Line] = []
        is_aside = is_below = False
        is_boxed = self.lines[0].content[:1] in _CORNERS if self.lines else False
        for line in self.lines:
            is_drawn = self._is_drawn(line)
            # Without a frame asides stand above the command, and what is below its sign may be a model's.
            is_below = is_below or (not self.is_framed and _SIGN.match(line.content) is not None)
            begins = _ASIDES.match(line.content) is not None and not is_below
            # Below a rule an agent writes its asides at the dialog's edge, with a look of their own; a box has none.
            is_own = not is_boxed and line.start <= self._edge and line.look_at(line.start) != PLAIN
            begins = begins and (not self.is_framed or is_own)
            is_aside = not line.is_blank and not is_drawn and (is_aside or begins)
            if line.content and not is_drawn and not is_aside:
                found.append(line)
        return found

    def _tool(self, arguments: str) -> str:
        """The server and the tool that these arguments are for, where the dialog names them in another row."""
        if (named := next((text for text in self.texts[:2] if text.endswith(_OF_SERVER)), None)) is not None:
            return named.removesuffix(_OF_SERVER).rstrip(" :")
        is_bare = arguments.startswith("{") and not self.texts[0].startswith("{")
        return self.texts[0] if is_bare and not self.lines[0].is_boxed else ""

    @cached_property
    def _between(self) -> list[Line]:
        """What stands between two dotted lines."""
        dotted = self._dotted
        within = self.lines[dotted[0] + 1 : dotted[-1]] if len(dotted) >= 2 else ()
        return [line for line in within if line.content]

    @cached_property
    def _boxed(self) -> list[Line]:
        """What stands in a box within the dialog."""
        drawn = [at for at, line in enumerate(self.lines) if at and self._is_drawn(line)]
        tops = [at for at in drawn if self.lines[at].content[:1] in _CORNERS]
        ends = [at for at in drawn if self.lines[at].content[:1] in _ENDS]
        within = self.lines[tops[0] + 1 : ends[-1]] if tops and ends else ()
        return [line for line in within if _unboxed(line.content)]

    @cached_property
    def _dotted(self) -> list[int]:
        return [
            at
            for at, line in enumerate(self.lines)
            if is_divider(line, self.left, self.width) and line.text.strip()[0] in _DOTS
        ]

    def _from(self, first: Line) -> str:
        """From that line on to the dialog's own question, without what the agent says of it: a note at the dialog's
        edge, and a description that is written faintly."""
        begin = next(at for at, line in enumerate(self.lines) if line is first)
        asked = self._question_rows
        asks = next((at for at, line in enumerate(self.lines) if asked and line is asked[0]), 0)
        rows = list(self.lines[begin : asks if asks > begin else None])
        if first.start >= self._edge + 2:
            rows = [line for line in rows if line.is_blank or line.start > self._edge]
        while rows and (
            rows[-1].is_blank or self._is_drawn(rows[-1]) or (rows[-1] is not first and _is_faint(rows[-1]))
        ):
            rows.pop()
        return self._rows(rows)

    def _rows(self, lines: Iterable[Line]) -> str:
        """Row by row. Where the first word of the next row has no room in a row, its end may be the agent's own."""
        text, rows = "", tuple(lines)
        for line, after in zip_longest(rows, rows[1:]):
            word = _unboxed(after.content).split(maxsplit=1)[:1] if after is not None else []
            has_room = line.columns + sum(map(len, word)) < self.width - _MARGIN
            text += _unboxed(line.content) + ("\n" if has_room or not line.content else FULL_ROW)
        return text.strip(f"\n{FULL_ROW}")


def _frame_of(lines: tuple[Line, ...], left: int, width: int) -> list[Line]:
    """The edge, what divides the dialog, and the boxes within it that are drawn whole. A box's own rows are no part."""
    found = [line for line in lines if is_divider(line, left, width)]
    if not lines or lines[0].content[:1] not in _CORNERS:
        return found
    found.append(lines[0])
    inner = [(line, line.text[left + 1 :].rstrip()[:-1]) for line in lines[1:]]
    named = next((at for at, (_, text) in enumerate(inner) if text.strip()), -1)
    if 0 <= named < len(inner) - 1 and _is_across(inner[named + 1][1]):
        # Below what the dialog is called.
        found.append(inner[named + 1][0])
    top: Line | None = None
    for line, text in inner:
        first = text.strip()[:1]
        if first in _CORNERS and _is_across(text):
            top = line
        elif first in _ENDS and _is_across(text):
            found += [top, line] if top is not None else []
            top = None
        elif first not in _SIDES or not first:
            top = None
    return found


def _is_across(text: str) -> bool:
    """Whether a row is drawn from one side of the box to the other, but for an agent's margin: a model's row is not."""
    return len(text.strip()) >= max(len(text) - 2, 1) and set(text) <= _DRAWN


def asked(kind: str, layout: Layout, choice: Choice, heading: Heading) -> Asked:
    options = tuple(_CHECK.sub("", label) for label in choice.labels)
    summary, subject = heading.question, heading.plan if kind == "plan" else heading.question
    if kind == "approval":
        summary, subject = heading.subject, heading.command
    return Asked(
        kind,
        shortened_text(summary, LONGEST_SUMMARY),
        shortened_text(heading.detail, LONGEST_DETAIL),
        options,
        next((at for at, option in enumerate(choice.options) if option.is_selected), None),
        fingerprint([*(line.text for line in (*heading.changes, *heading.lines)), *options]),
        _incomplete(layout.capture, choice, heading),
        subject,
        kind == "approval" and heading.is_brief,
    )


def _incomplete(capture: Capture, choice: Choice, heading: Heading) -> Incomplete | None:
    if not choice.frame.is_closed:
        return Incomplete.NOT_ON_SCREEN
    rows = (*heading.changes, *heading.lines)
    below = capture.lines[choice.options[-1].line + 1 : capture.end]
    # A name that is cut says nothing that is not said again below it.
    named = next((line for line in heading.lines if line.content.startswith("? ")), None)
    if any(line is not named and _ELIDED.search(line.content) for line in rows) or any(
        _ELIDED.search(line.content) and "more lines" in line.content for line in below
    ):
        return Incomplete.LEFT_OUT
    if heading.is_missing:
        return Incomplete.NOT_ON_SCREEN
    if capture.is_cut or len(heading.detail) > LONGEST_DETAIL:
        return Incomplete.TOO_LONG
    if any(has_unreadable(line.text) for line in rows):
        return Incomplete.UNREADABLE
    return None


def told(kind: str, line: str, live: str, choice: Choice | None = None) -> Asked:
    """What is known of a dialog by one line of it, and by what is there of the screen."""
    options = () if choice is None else tuple(_CHECK.sub("", label) for label in choice.labels)
    asks = (text.strip(" │┃║") for text in reversed(live.split("\n")))
    question = next((text for text in asks if text.endswith("?")), line) if kind == "question" else line
    summary = shortened_text(question, LONGEST_SUMMARY)
    return Asked(kind, summary, "", options, None, fingerprint([question, *options]))


def fingerprint(texts: list[str]) -> str:
    # With its line breaks, though they change with the pane: between lines there is another command than in one.
    return hashlib.sha256("\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def _runs_on(line: Line, after: Line, width: int) -> bool:
    """Whether a line goes on in the one after it: the first word of that has no room in it."""
    if not line.content or line.is_rule or line.start != after.start or line.content[-1] in ".:?!…)":
        return False
    return line.start + len(line.content) + 1 + len(after.content.split(maxsplit=1)[0]) >= 2 * width // 3


def _is_faint(line: Line) -> bool:
    return bool(line.content) and all(
        is_faint(line.look_at(at)) for at in range(line.start, line.start + len(line.content)) if line.text[at] != " "
    )


def _inner(line: Line, left: int) -> str:
    """Without the sides of the boxes around it."""
    text = line.text
    if line.is_boxed and len(text) - len(text.lstrip()) == left:
        text = text[left + 1 :].rstrip()[:-1].rstrip()
        if (found := _BOX.match(text.strip())) is not None:
            return " " * (len(text) - len(text.lstrip())) + found[1]
        return text
    return _INNER_SIDE.sub(r"\1", text)


def _unsigned(text: str) -> str:
    """Without the sign that an agent writes before a command."""
    found = _COMMAND.match(text)
    return text[found.end() :] if found is not None else text


def _unboxed(text: str) -> str:
    found = _BOX.match(text)
    return found[1].strip() if found is not None else text
