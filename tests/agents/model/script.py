"""What the scripted model does next, decided from the conversation alone. No I/O, no protocol.

A prompt says it in directives: `do:bash{{touch a}} then:slow{{5}}`. The first is done at once, each `then:` after
one more tool result; after the last comes a closing sentence. The newest user message counts, so one without a
directive is answered with a sentence. `summary:think{{60}}` anywhere makes what is asked without tools, as a summary of
the conversation is, take that long. `$message_id` in a directive is the message that this one asks to be answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from agents.model.texts import TEXTS


class Kind(StrEnum):
    SAY = "say"  # text, at once
    SLOW = "slow"  # words for so many seconds
    THINK = "think"  # nothing for so many seconds, then a sentence
    BASH = "bash"  # a shell command
    BACKGROUND = "background"  # a shell command that does not hold the turn up
    READ = "read"  # the file of that name
    EDIT = "edit"  # a new file of that name
    CHANGE = "change"  # other contents for the file of that name, which exists
    FETCH = "fetch"  # a web page
    ASK = "ask"  # question|option|option
    ASK_MANY = "askmany"  # the same, with more than one answer allowed
    PLAN = "plan"  # a plan, for approval
    PLANFILE = "planfile"  # the same plan into the file that the program names for it, where it does
    TODO = "todo"  # a list of steps, comma-separated
    SUB = "sub"  # a subagent with that prompt (its own directives in round brackets, see _unquote)
    TOOL = "tool"  # name|json: any tool by its name
    PARALLEL = "parallel"  # shell commands, called at once (Claude only)
    ERROR = "error"  # an HTTP status; `529|final` asks not to try again


TEXT_KINDS = frozenset({Kind.SAY, Kind.SLOW, Kind.THINK})

CLOSING = "All done."
TITLE = "Parcel labels"
SUGGESTION = "run the tests again"


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind
    text: str = ""

    @property
    def is_tool(self) -> bool:
        return self.kind not in TEXT_KINDS and self.kind is not Kind.ERROR

    @property
    def status(self) -> int:
        return int(self.parts[0])

    @property
    def final(self) -> bool:
        return self.parts[-1] == "final"

    @property
    def seconds(self) -> float:
        return float(self.text or 5)

    @property
    def words(self) -> list[str]:
        """What is said, in the pieces in which it is sent."""
        if self.kind is Kind.SLOW:
            return [f"word{number} " for number in range(round(self.seconds / WORD_TIME))]
        if self.kind is Kind.THINK:
            return ["Thought ", "about ", "it."]
        return re.findall(r"\s*\S+\s*", self.text)

    @property
    def parts(self) -> list[str]:
        return [part.strip() for part in self.text.split("|")]


WORD_TIME = 0.25
# Arguments that a prompt names, for what cannot be typed into one: `do:bash{{@one}}` with "@one" in here.
NAMED: dict[str, str] = {}

_DIRECTIVE = re.compile(r"\b(?:do|then):([a-z]+)\{\{(.*?)\}\}(?!\})", re.DOTALL)
_SUGGESTION_MODE = "[SUGGESTION MODE"
_SUMMARY = re.compile(r"\bsummary:think\{\{(\d+)\}\}")
_REPLY_TO = re.compile(r'reply_to "([0-9a-f]+)"\)')


class Conversation:
    """What has been said so far. A protocol module tells it in order and asks for the next step."""

    def __init__(self) -> None:
        self._text = ""
        self._all = ""
        self._results = 0

    def user(self, text: str) -> None:
        """One message of the user, whole. What the program adds by itself, in angle brackets, is none."""
        self._all += f"{text}\n"
        if text.lstrip().startswith("<") and not _DIRECTIVE.search(text):
            return
        self._text = text
        self._results = 0

    def result(self) -> None:
        """The result of one tool call, or of several made at once."""
        self._results += 1

    def next(self, *, tools: bool) -> Step:
        """`tools`: whether the program offers any. If not, it wants a title."""
        if _SUGGESTION_MODE in self._text:
            return Step(Kind.SAY, SUGGESTION)
        if not tools:
            slow = _SUMMARY.search(self._all)
            return Step(Kind.THINK, slow[1]) if slow is not None else Step(Kind.SAY, TITLE)
        steps = directives(self._text) or [Step(Kind.SAY, "Understood.")]
        return steps[self._results] if self._results < len(steps) else Step(Kind.SAY, CLOSING)


def directives(text: str) -> list[Step]:
    steps = []
    asking = _REPLY_TO.search(text)
    for name, argument in _DIRECTIVE.findall(text):
        if asking:
            argument = argument.replace("$message_id", asking[1])
        if argument in NAMED:
            steps.append(Step(Kind(name), NAMED[argument]))
        elif name == "show":
            steps.append(Step(Kind.SAY, TEXTS[argument]))
        else:
            steps.append(Step(Kind(name), _unquote(argument)))
    return steps


def _unquote(text: str) -> str:
    """A subagent's prompt holds directives of its own: `do:sub{{do:bash((touch a))}}`."""
    return re.sub(r"\b(do|then):([a-z]+)\(\((.*?)\)\)", r"\1:\2{{\3}}", text, flags=re.DOTALL)
