"""What a dialog asks: its question, what that is about in one line, its options, and a name for just this dialog."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from agtmux.agents.screen.capture import Line
from agtmux.agents.screen.composer import is_faint
from agtmux.agents.screen.layout import Layout
from agtmux.agents.screen.options import Choice

_MOST_SUMMARY: Final = 200
_MOST_DETAIL: Final = 2_000
# Beside what is asked: these change while a dialog stays the same, or say why and where.
_ASIDES: Final = re.compile(r"(?:Tip|Reason|Environment|Description|Not in (?:team )?allowlist):|[⠀-⣿◐◓◑◒] ")
# A question that any dialog of its kind asks, and that names nothing.
_USUAL: Final = re.compile(
    r"(?:do you want|would you like|allow|apply|run|write|delete|implement|proceed|continue|ready)\b[^\"'`/]*\?$", re.I
)
_NAMES_FILE: Final = re.compile(r"[\w-]\.\w{1,5}\b")
_COMMAND: Final = re.compile(r"(?:\$|Command:|Destination:|\? \w+ wants to \w+)\s+(?=\S)")
# Cursor says behind a command in which folder.
_FOLDER: Final = re.compile(r" in \.$")
_DIFF: Final = re.compile(r"\W*\d+ *[-+]? |[-+] ")
_BOX: Final = re.compile(r"^[│┃║] ?(.*?) *[│┃║]$")
_CHECK: Final = re.compile(r"^(?:\[.\]|[•◯○◉☐☑☒]) +")


@dataclass(frozen=True, slots=True)
class Asked:
    kind: str
    summary: str
    detail: str
    options: tuple[str, ...]
    # Which option Enter would take, from 0.
    selected: int | None
    # The same dialog has the same one, whichever option is marked and however wide the pane is.
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Heading:
    """The lines of a dialog above its options."""

    lines: tuple[Line, ...]

    @classmethod
    def of(cls, layout: Layout, choice: Choice) -> Heading:
        return cls(tuple(layout.capture.lines[choice.top : choice.options[0].line]))

    @property
    def texts(self) -> list[str]:
        return [line.content for line in self.lines if line.content and not line.is_rule]

    @property
    def question(self) -> str:
        """The last line that is a question, with what was wrapped before it; else the last line."""
        last = next((at for at in range(len(self.lines) - 1, -1, -1) if self.lines[at].content.endswith("?")), None)
        if last is None:
            texts = self.texts
            return texts[-1] if texts else ""
        first = last
        while first > 0 and _runs_on(self.lines[first - 1], self.lines[first]):
            first -= 1
        return " ".join(line.content for line in self.lines[first : last + 1])

    @property
    def subject(self) -> str:
        """What a yes would be for: the command, the file; the question where that says it."""
        question = self.question
        if (command := self._command()) is not None:
            return command
        is_usual = _USUAL.match(question) is not None
        if _NAMES_FILE.search(question) or not is_usual:
            return question
        body = [line for line in self._body() if line.content not in question]
        if not body:
            return question
        if _DIFF.match(_unboxed(body[0].content)):
            # Of a change, the name of the dialog has the file.
            return next((text for text in self.texts if _NAMES_FILE.search(text)), question)
        return _paragraph(body, self.lines)

    def _command(self) -> str | None:
        """What is marked as a command, or stands in a box of its own."""
        for line in self.lines:
            if (found := _COMMAND.match(line.content)) is not None:
                text = _paragraph([line], self.lines)[found.end() :]
                return _FOLDER.sub("", text.strip())
        boxed = [found[1] for line in self.lines if (found := _BOX.match(line.content)) is not None and found[1].strip()]
        if boxed and not _DIFF.match(boxed[0]):
            return " ".join(text.strip() for text in boxed)
        return None

    def _body(self) -> list[Line]:
        """Without the dialog's name, which comes first, and asides."""
        lines = [line for line in self.lines if line.content and not line.is_rule]
        return [line for line in lines[1:] if not _ASIDES.match(line.content)]


def asked(kind: str, heading: Heading, choice: Choice) -> Asked:
    options = tuple(_CHECK.sub("", label) for label in choice.labels)
    summary = heading.subject if kind == "approval" else heading.question
    lasting = [text for text in heading.texts if not _ASIDES.match(text)]
    return Asked(
        kind,
        summary[:_MOST_SUMMARY],
        "\n".join(heading.texts)[:_MOST_DETAIL],
        options,
        next((at for at, option in enumerate(choice.options) if option.is_selected), None),
        fingerprint([*lasting, *options]),
    )


def told(kind: str, line: str, choice: Choice | None = None) -> Asked:
    """What is known of a dialog by one line of it."""
    options = () if choice is None else tuple(_CHECK.sub("", label) for label in choice.labels)
    return Asked(kind, line[:_MOST_SUMMARY], "", options, None, fingerprint([line, *options]))


def fingerprint(texts: list[str]) -> str:
    # Without blanks and sides: where lines are broken depends on the pane.
    return hashlib.sha256(re.sub(r"[\s│┃║]+", "", "\0".join(texts)).encode()).hexdigest()[:16]


def _runs_on(line: Line, after: Line) -> bool:
    """Whether a line goes on in the one after it."""
    return bool(line.content) and not line.is_rule and line.start == after.start and line.content[-1] not in ".:?!…)"


def _paragraph(body: list[Line], lines: tuple[Line, ...]) -> str:
    """From that line on to a blank one, or one that is written faintly, which describes it."""
    start = next(at for at, line in enumerate(lines) if line is body[0])
    found: list[str] = []
    for line in lines[start:]:
        if line.is_blank or line.is_rule or (found and is_faint(line.look_at(line.start))):
            break
        found.append(_unboxed(line.content))
    return " ".join(found)


def _unboxed(text: str) -> str:
    found = _BOX.match(text)
    return found[1].strip() if found is not None else text
