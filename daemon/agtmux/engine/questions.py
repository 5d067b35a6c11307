"""What an agent has reported to ask for, and what its screen shows: one request, or two.

A report holds what would run, from the agent itself. A key goes to the dialog on the screen. So a key is pressed only
where both are known to be one; where they differ, both are shown, and no key is pressed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import Final

from agtmux.domain.events import FULL_ROW, LONGEST_DETAIL, Attention, Incomplete, shortened
from agtmux.domain.redact import Redacted

_COUNTED: Final = re.compile(r"(?:\S+ ){0,2}(\S+) \(?\+\d+ -\d+\)?")
# A dialog's own row about a file: "Writing to a.py", "a.py: x = 1 => x = 2", "Destination: /src/a.py".
_NAMED: Final = re.compile(r"(?:Writing to |Destination: )(.+?)(?: ←)?|([^:]+): .* => .*")
_PATCH: Final = "*** Begin Patch\n"
_PATCHED: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?) *$", re.MULTILINE)
_ON_SCREEN: Final = "On its screen:"
# How dialogs name a tool and its server.
_CALLS: Final = (
    re.compile(r"^(?P<server>\S.*?) - (?P<tool>[\w.-]+)\("),
    re.compile(r'^Allow the (?P<server>.+) MCP server to run tool "(?P<tool>[^"]+)"\?$'),
    re.compile(r'^Allow execution of MCP tool "(?P<tool>[^"]+)" from server "(?P<server>[^"]+)"\?$'),
)
_USES_TOOL: Final = "Do you want to use this tool?"
# What is no part of a tool's name as agents report it.
_LOOSE: Final = re.compile(r"[^\w-]")
_LEFT_OUT: Final = re.compile(r"\[?(?:…|\.\.\.)")
# FULL_ROW is a blank to Python as well.
_BLANKS: Final = re.compile(rf"[^\S{FULL_ROW}]+")
# So much of a command no other is likely to begin or end with.
_TELLING: Final = 16


class Relation(Enum):
    # What runs is the same, to the last character.
    SAME = "same"
    # Both are about the same file, tool or plan, and nothing shows whether they would do the same to it.
    SAME_SUBJECT = "same subject"
    # The screen shows a part of what was reported, and no more than that.
    PART = "part"
    # The report does not say what would run.
    UNSAID = "unsaid"
    OTHER = "other"


def relation(reported: Attention, seen: Attention) -> Relation:
    if reported == seen:
        return Relation.SAME
    if reported.kind == seen.kind == "plan":
        return _of_plans(reported, seen)
    if reported.incomplete is Incomplete.NOT_REPORTED:
        # The screen says more than such a report.
        return Relation.UNSAID
    if same := _compared(reported.subject, seen.subject):
        return same
    if seen.incomplete is not None and _is_part(reported.subject, seen.subject):
        return Relation.PART
    if _is_tool(reported, _lines(seen)):
        return Relation.SAME_SUBJECT
    if seen.incomplete is Incomplete.NOT_ON_SCREEN and _is_end_of(reported.subject, seen.subject):
        return Relation.SAME_SUBJECT
    files = _files(reported.subject)
    if files and all(_is_file(path, _lines(seen)) for path in files):
        return Relation.SAME_SUBJECT
    return Relation.OTHER


def is_one(reported: Attention | None, seen: Attention | None) -> bool:
    """Whether an answer to what is shown may go to what is on the screen."""
    if reported is None or seen is None:
        return True
    if reported.incomplete is Incomplete.SCREEN_DIFFERS:
        return False
    return relation(reported, seen) in (Relation.SAME, Relation.SAME_SUBJECT, Relation.PART)


def both(reported: Attention, seen: Attention, incomplete: Incomplete | None) -> Attention:
    """The report with what the screen shows below it."""
    texts = [reported.detail or reported.summary, f"{_ON_SCREEN}\n{seen.detail or seen.summary}"]
    detail = shortened(Redacted("\n\n".join(texts)), LONGEST_DETAIL)
    if incomplete is None and len(detail) == LONGEST_DETAIL:
        incomplete = Incomplete.TOO_LONG
    return replace(reported, detail=detail, incomplete=incomplete, is_brief=False)


def is_shown(question: Attention | None, shown: Attention | None) -> bool:
    """Whether all of that question is in what is shown."""
    if question is None or shown is None or question == shown:
        return question == shown
    text = question.detail or question.summary
    return (question.kind, question.summary, question.subject) == (shown.kind, shown.summary, shown.subject) and (
        shown.detail or ""
    ).startswith(f"{text}\n\n{_ON_SCREEN}\n")


def _compared(reported: str, seen: str) -> Relation | None:
    """Runs of blanks count as one. Where one has a line break and the other a blank, what runs may differ, so both have
    to be shown. At the end of a full row nothing tells a line break from the agent's own."""
    wanted, is_certain, at = _spaced(reported), True, 0
    for char in re.sub(rf"\s?{FULL_ROW}\s?", FULL_ROW, _spaced(seen)):
        found = wanted[at : at + 1]
        if char == FULL_ROW:
            is_certain, at = is_certain and found.isspace(), at + found.isspace()
        elif found == char or (found.isspace() and char.isspace()):
            is_certain, at = is_certain and found == char, at + 1
        else:
            return None
    if not wanted or at != len(wanted):
        return None
    return Relation.SAME if is_certain else Relation.SAME_SUBJECT


def _spaced(text: str) -> str:
    """With a line break for each run of blanks that has one, and a space for any other."""
    return _BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", text).strip(" \n")


def _is_part(whole: str, seen: str) -> bool:
    """Whether a screen shows the beginning or the end of it. An agent says what it leaves out in between."""
    asked, begin = _bare(whole), _bare(_LEFT_OUT.split(seen)[0])
    is_end, is_begin = asked.endswith(_bare(seen)), begin != _bare(seen) and asked.startswith(begin)
    return len(begin) >= _TELLING and (is_end or is_begin)


def _is_end_of(whole: str, seen: str) -> bool:
    """Whether what is left on a screen is no more than the end of it, if only the question and the options."""
    rows = [row for row in re.split(rf"[\n{FULL_ROW}]", seen) if not row.rstrip().endswith("?")]
    return bool(whole) and _bare(whole).endswith(_bare("".join(rows)))


def _lines(attention: Attention) -> list[str]:
    return [line.strip() for line in (attention.summary, *(attention.detail or "").splitlines()) if line.strip()]


def _is_tool(reported: Attention, shown: list[str]) -> bool:
    """Whether a dialog asks for the tool of a server that was reported. What it is called with may differ."""
    found = next((each for line in shown for calls in _CALLS if (each := calls.search(line))), None)
    if found is None:
        # One that does not name the server.
        return _USES_TOOL in shown[2:] and reported.subject.endswith(f"-{shown[1]}")
    server, tool = (_LOOSE.sub("_", found[name]) for name in ("server", "tool"))
    is_named = reported.subject == tool and server in map(str.strip, (reported.detail or "").splitlines())
    return is_named or reported.subject in (f"mcp__{server}__{tool}", f"{server}-{tool}")


def _files(subject: str) -> list[str]:
    """The files that a report is about: its subject is the path of one, or a patch of several."""
    if subject.startswith(_PATCH):
        return _PATCHED.findall(subject)
    return [subject] if "/" in subject and "\n" not in subject else []


def _is_file(path: str, shown: list[str]) -> bool:
    """Whether a dialog asks about that file, which is often named from the project on."""
    own = path.rpartition("/")[2]
    names = [name for line in shown if own and (name := _asked_about(line)).rpartition("/")[2] == own]
    # Where more of its name stands, a file of the same name elsewhere is another.
    alone = [line for line in shown if " " not in line and line.rpartition("/")[2] == own]
    return bool(names) and all(_is_end(name, path) for name in (*names, *alone))


def _asked_about(line: str) -> str:
    """The file in "Do you want to edit src/label.py?", "label.py (+1 -1)" or "Writing to label.py"."""
    if line.endswith("?") and " " in line:
        return line.removesuffix("?").split()[-1].strip("'\"`")
    found = _COUNTED.fullmatch(line) or _NAMED.fullmatch(line)
    return "" if found is None else next(filter(None, found.groups()))


def _is_end(name: str, path: str) -> bool:
    """Either may be named from the project on; one whose name has more folders than a whole path is another."""
    short = name.removeprefix("~/").removeprefix("./").lstrip("/")
    if f"/{path.lstrip('/')}".endswith(f"/{short}"):
        return True
    return not path.startswith(("/", "~")) and name.endswith(f"/{path.removeprefix('./')}")


def _of_plans(reported: Attention, seen: Attention) -> Relation:
    """A screen shows a plan without its markup, in a part of it, or not at all."""
    if reported.incomplete is Incomplete.NOT_REPORTED:
        return Relation.UNSAID
    whole = _letters(reported.subject)
    drawn = [_letters(line) for line in seen.subject.splitlines() if not line.endswith("?")]
    if all(line in whole for line in drawn):
        return Relation.SAME if "".join(drawn) == whole or not drawn else Relation.SAME_SUBJECT
    return Relation.OTHER


def _bare(text: str) -> str:
    """Without blanks, as a screen breaks lines."""
    return "".join(text.replace(FULL_ROW, "").split())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
