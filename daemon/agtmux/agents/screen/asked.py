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
_ASIDES: Final = re.compile(r"(?:Tip|Reason|Environment|Description|Not in (?:team )?allowlist):|[⠀-⣿◐◓◑◒] |\[… ")
# A question that any dialog of its kind asks, and that names nothing.
_USUAL: Final = re.compile(
    r"(?:do you want|would you like|allow|apply|run|write|delete|implement|proceed|continue|ready)\b[^\"'`/]*\?$"
    r"|allow execution of:? '",
    re.I,
)
_LOGIN: Final = re.compile(r"\b(?:log|sign)[ -]?in\b", re.I)
_NAMES_FILE: Final = re.compile(r"[\w-]\.\w{1,5}\b")
_COMMAND: Final = re.compile(r"(?:\$|└|Command:|Destination:|\? \w+ wants to \w+)\s+(?=\S)")
# Behind the name of a tool.
_CALL: Final = re.compile(r"\?\s+\w+\s+(?=\S)")
# Cursor says behind a command in which folder.
_FOLDER: Final = re.compile(r" in \.$")
_UNLISTED: Final = re.compile(r"Not in (?:team )?allowlist: (?P<command>.*)")
_DIFF: Final = re.compile(r"\W*\d+ *[-+]? |[-+] ")
_BOX: Final = re.compile(r"^[│┃║] ?(.*?) *[│┃║]$")
_DOTS: Final = "╌╍┄┅┈┉"
_CHECK: Final = re.compile(r"^(?:\[[ ✓✔xX*]\]|[•◯○◉☐☑☒]) +")
# Where a change has no name in its dialog, what was said just before has it.
_CHANGED: Final = re.compile(r"[•◦●✔] (?P<what>\w+ (?:\w+ )?\S*\.\w{1,5}\b.*)")
_MOST_BEFORE: Final = 60
_OF_EDITS: Final = re.compile(r"\b(?:edits?|changes?|patch)\b", re.I)


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


@dataclass(frozen=True, slots=True)
class Heading:
    """The lines of a dialog above its options, and those just before it."""

    lines: tuple[Line, ...]
    before: tuple[Line, ...]

    @classmethod
    def of(cls, layout: Layout, choice: Choice) -> Heading:
        lines = layout.capture.lines
        return cls(lines[choice.top : choice.options[0].line], lines[max(choice.top - _MOST_BEFORE, 0) : choice.top])

    @property
    def texts(self) -> list[str]:
        return [line.content for line in self.lines if line.content and not line.is_rule]

    @property
    def question(self) -> str:
        """The last line that is a question, with what was wrapped before it; else how the dialog is called."""
        rows = range(len(self.lines) - 1, -1, -1)
        last = next((at for at in rows if self.lines[at].content.endswith("?")), None)
        if last is None:
            texts = self.texts
            telling = [text for text in texts if "? " in text[2:]] or [text for text in texts if _LOGIN.search(text)]
            return (telling or texts or [""])[0]
        first = last
        while first > 0 and _runs_on(self.lines[first - 1], self.lines[first]):
            first -= 1
        return " ".join(line.content for line in self.lines[first : last + 1])

    @property
    def subject(self) -> str:
        """What a yes would be for: the command, the file; the question where that says it."""
        for line in self.lines:
            if (found := _COMMAND.match(line.content)) is not None:
                return _FOLDER.sub("", self._paragraph(line)[found.end() :].strip())
        question = self.question
        if _NAMES_FILE.search(question):
            return question
        if (between := self._between()) and not _DIFF.match(between[0]):
            return " ".join(between)
        if _USUAL.match(question) is None:
            return question
        boxed = [
            found[1] for line in self.lines if (found := _BOX.match(line.content)) is not None and found[1].strip()
        ]
        if boxed and not _DIFF.match(boxed[0]):
            text = " ".join(text.strip() for text in boxed)
            # Arguments say little without the name of what they are for.
            return f"{self.texts[0]}: {text}" if text.startswith(("{", "}")) else text
        lines = [line for line in self._without_asides() if line.content not in question]
        if lines and (found := _CALL.match(lines[0].content)) is not None:
            return lines[0].content[found.end() :]
        # The first is what the dialog is called, unless that is the question, has left the screen, or is all there is.
        is_named = self.lines[0].is_rule and _unboxed(self.texts[0]) not in question
        body = lines[1:] if len(lines) > 1 and is_named else lines
        if body and not _DIFF.match(_unboxed(body[0].content)):
            return self._paragraph(body[0])
        unlisted = next((each for text in self.texts if (each := _UNLISTED.match(text))), None)
        if not body and unlisted is not None:
            return unlisted["command"]
        changed = next((each for text in self.changes if (each := _CHANGED.match(text))), None)
        named = next(
            (text for text in self.texts if _NAMES_FILE.search(text) and not _DIFF.match(_unboxed(text))), None
        )
        return named or (changed["what"] if changed is not None else question)

    @property
    def changes(self) -> list[str]:
        """What is to be changed, where that was drawn before the dialog and not in it."""
        if _OF_EDITS.search(self.question) is None or any(_DIFF.match(_unboxed(text)) for text in self.texts):
            return []
        before = [line.content for line in self.before if line.content]
        first = next((at for at in range(len(before) - 1, -1, -1) if _CHANGED.match(before[at])), 0)
        return before[first:]

    def _without_asides(self) -> list[Line]:
        """The lines with text in them; an aside goes on to a blank one."""
        found: list[Line] = []
        is_aside = False
        for line in self.lines:
            is_aside = not line.is_blank and not line.is_rule and (is_aside or _ASIDES.match(line.content) is not None)
            if line.content and not line.is_rule and not is_aside:
                found.append(line)
        return found

    def _between(self) -> list[str]:
        """What stands between two dotted lines."""
        dotted = [at for at, line in enumerate(self.lines) if line.is_rule and line.text.strip()[0] in _DOTS]
        within = self.lines[dotted[0] + 1 : dotted[1]] if len(dotted) >= 2 else ()
        return [line.content for line in within if line.content]

    def _paragraph(self, first: Line) -> str:
        """From that line on to a blank one, or one that is written faintly, which describes it."""
        found: list[str] = []
        for line in self.lines[next(at for at, line in enumerate(self.lines) if line is first) :]:
            if line.is_blank or line.is_rule or (found and is_faint(line.look_at(line.start))):
                break
            found.append(_unboxed(line.content))
        return " ".join(found)


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
        fingerprint([*heading.changes, *lasting, *options]),
    )


def told(kind: str, line: str, live: str, choice: Choice | None = None) -> Asked:
    """What is known of a dialog by one line of it, and by what is there of the screen."""
    options = () if choice is None else tuple(_CHECK.sub("", label) for label in choice.labels)
    asks = (text.strip(" │┃║") for text in reversed(live.split("\n")))
    question = next((text for text in asks if text.endswith("?")), line) if kind == "question" else line
    return Asked(kind, question[:_MOST_SUMMARY], "", options, None, fingerprint([question, *options]))


def fingerprint(texts: list[str]) -> str:
    # With its line breaks, though they change with the pane: between lines there is another command than in one.
    return hashlib.sha256("\n".join(texts).encode(errors="surrogatepass")).hexdigest()[:16]


def _runs_on(line: Line, after: Line) -> bool:
    """Whether a line goes on in the one after it."""
    return bool(line.content) and not line.is_rule and line.start == after.start and line.content[-1] not in ".:?!…)"


def _unboxed(text: str) -> str:
    found = _BOX.match(text)
    return found[1].strip() if found is not None else text
