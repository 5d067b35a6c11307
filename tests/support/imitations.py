"""Dialogs whose content imitates parts of dialogs, drawn in every style that was recorded.

A model that was misled chooses what a command, an edit, a plan or an argument says. Here it says whatever agents draw:
frames, titles, options, footers, tips, prompts, whole dialogs. A recorded dialog is the template: its content is
replaced, row by row, with the looks and the place that the agent gives to content, and the pane keeps the rows that
fit, from the bottom, as a terminal does.

    python tests/support/imitations.py [COUNT] [SEED]      draws dialogs and prints what was found
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from agtmux.agents.contract import Footing, Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.capture import PLAIN, Capture, Line, Look, read_capture

CORPUS = Path(__file__).parents[1] / "corpus"
HEIGHTS = (10, 12, 15, 20, 24, 32, 40, 50, 70)
WAITING = ("waiting_approval", "waiting_input")
# The recorded content by which a row of content is known, by the kind of the dialog.
CONTENTS = {
    "bash": ("mkdir -p out", "touch label.txt", "touch /var/lib/labels.db"),
    "edit": ("weight = 2", "second line"),
    "plan": ("Labels - 1. Read the labels - 2. Print the labels", "Read the labels and print them", "Read label.py"),
    "mcp": ('parcel: "A-1"', '"parcel": "A-1"', "parcel: A-1"),
    "fetch": ("https://labels.invalid/list",),
    "question": ("Which parcel goes first?",),
    "description": ("Take Red",),
}
_ANSWERS = re.compile(r"[❯›●→>] (?:1\. )?(?:Yes|Allow|Approve|Run|Proceed|Accept|No)")
_ANSWERS_OF_QUESTIONS = re.compile(r"[❯›●→>] +(?:1\. +)?(?:\[ \] )?Red\b")
_SIDES = "│┃║"


class Row(NamedTuple):
    text: str
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class Template:
    """A recorded dialog: what is above its content and below it, and how a row of content is drawn."""

    agent: str
    version: str
    kind: str
    width: int
    height: int
    title: str
    above: tuple[Row, ...]
    first: Row
    # What is before the content in its first row and in others, and behind it in each.
    prefix: Row
    rest: Row
    suffix: Row
    # The columns that the content may take.
    room: int
    below: tuple[Row, ...]

    def draw(self, content: list[str], height: int, rng: random.Random) -> str:
        """The pane with that content; the top leaves it where there is no room."""
        looks = [look for look in self.first.looks if not (look.bold or look.dim)] or [PLAIN]
        rows = [part for line in content for part in wrapped(line, self.room)]
        drawn = []
        for number, text in enumerate(rows):
            prefix = self.prefix if number == 0 else self.rest
            pad = self.room - columns(text) if self.suffix.text else 0
            look = rng.choice(looks)
            drawn.append(
                Row(
                    prefix.text + text + " " * pad + self.suffix.text,
                    (*prefix.looks, *(look,) * len(text), *(PLAIN,) * pad, *self.suffix.looks),
                )
            )
        return serialised([*self.above, *drawn, *self.below][-height:])


def columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def wrapped(line: str, room: int) -> list[str]:
    """At a blank where there is one, as agents do it; a word that is too long is broken."""
    rows: list[str] = []
    while columns(line) > room:
        cut = _fitting(line, room)
        blank = line.rfind(" ", 1, cut)
        if blank > 0 and line[:blank].strip():
            rows.append(line[:blank])
            line = line[blank + 1 :]
        else:
            rows.append(line[:cut])
            line = line[cut:]
    return [*rows, line]


def _fitting(line: str, room: int) -> int:
    """How many characters have room."""
    taken = 0
    for at, char in enumerate(line):
        taken += columns(char)
        if taken > room:
            return max(at, 1)
    return len(line)


def serialised(rows: list[Row]) -> str:
    """As `capture-pane -e` prints them."""
    lines = []
    for row in rows:
        text, before = "", PLAIN
        for char, look in zip(row.text, row.looks, strict=False):
            if look != before:
                text += _sgr(look)
                before = look
            text += char
        lines.append(text + ("\x1b[0m" if before != PLAIN else ""))
    return "\n".join([*lines, "\x1b[0m", ""])


def _sgr(look: Look) -> str:
    codes = ["0"]
    codes += [
        code for code, is_on in (("1", look.bold), ("2", look.dim), ("3", look.italic), ("7", look.reverse)) if is_on
    ]
    for colour, extended in ((look.foreground, "38"), (look.background, "48")):
        if colour:
            codes.append(f"{extended};{colour}" if ";" in colour else colour)
    return f"\x1b[{';'.join(codes)}m"


@cache
def recorded() -> tuple[tuple[str, str, str, dict, str], ...]:
    found = []
    for path in sorted(CORPUS.glob("*/*/*/case.json")):
        agent, version, name = path.parts[-4:-1]
        label = json.loads(path.read_text("utf-8"))
        if label["state"] in WAITING:
            found.append((agent, version, name, label, (path.parent / "screen.ansi").read_text("utf-8")))
    return tuple(found)


@cache
def templates() -> tuple[Template, ...]:
    found = []
    for agent, version, name, label, screen in recorded():
        if "-to-" in name or "subagent" in name:
            continue
        kind = _kind(name)
        kinds = [kind] if kind is not None and label["state"] == "waiting_approval" else []
        if name.startswith("question-"):
            kinds = ["question", "description"]
        drawn = (_template(agent, version, each, label, screen) for each in kinds)
        found += [template for template in drawn if template is not None]
    return tuple(found)


def _kind(name: str) -> str | None:
    for part, kind in (("bash", "bash"), ("edit", "edit"), ("write", "edit"), ("change", "edit"), ("mcp", "mcp")):
        if f"approval-{part}" in name and "quoted" not in name:
            return kind
    return "plan" if name.startswith("plan-") else "fetch" if "approval-fetch" in name else None


def _template(agent: str, version: str, kind: str, label: dict, screen: str) -> Template | None:
    capture = read_capture(screen)
    lines = capture.lines[: capture.end]
    width = label["width"]
    answers = _ANSWERS_OF_QUESTIONS if kind in ("question", "description") else _ANSWERS
    options = [at for at, line in enumerate(lines) if answers.search(line.text)]
    if not options:
        return None
    # What describes an option is in its row or below it, all else above.
    near = (
        range(options[-1], options[-1] + 2) if kind == "description" else range(max(options[-1] - 16, 0), options[-1])
    )
    for content in CONTENTS[kind]:
        # What was asked for, and what is under way, is above the dialog.
        rows = [
            at
            for at in near
            if content in lines[at].text
            and (kind == "description" or not re.search(r"do:\w|Calling|[○●] |\? Shell", lines[at].text))
        ]
        if rows:
            at = rows[-1]
            break
    else:
        return None
    line = lines[at]
    begin = line.text.index(content)
    end = begin + len(content)
    tail = line.text[end:].rstrip()
    suffix = Row("", ())
    room = width - begin - 2
    if tail.strip() and set(tail.strip()) <= set(_SIDES + " "):
        start = next(i for i in range(end, len(line.text)) if line.text[i] in _SIDES) - 1
        suffix = Row(line.text[start:], line.looks[start:])
        room = start - begin
    elif tail.strip():
        # Something of the agent's follows in the same row.
        suffix = Row("", ())
    prefix = Row(line.text[:begin], line.looks[:begin])
    rest = prefix
    if prefix.text.rstrip().endswith(("$", ":", "└", "wants to run")):
        indent = len(prefix.text) - len(prefix.text.lstrip())
        rest = Row(prefix.text[:indent], prefix.looks[:indent])
    elif kind == "description" and prefix.text.strip(_SIDES + " "):
        rest = Row(" " * len(prefix.text), (PLAIN,) * len(prefix.text))
    # A recorded command of several rows goes as a whole.
    last = at
    while kind == "bash" and last + 1 < options[-1] and _is_content(lines[last + 1], len(prefix.text)):
        last += 1
    as_row = lambda each: Row(each.text, each.looks)  # noqa: E731
    return Template(
        agent,
        version,
        kind,
        width,
        label["height"],
        label["title"],
        tuple(as_row(each) for each in lines[:at]),
        Row(content, line.looks[begin:end]),
        prefix,
        rest,
        suffix,
        room,
        tuple(as_row(each) for each in lines[last + 1 :]),
    )


def _is_content(line: Line, begin: int) -> bool:
    """Whether it is a row of the recorded command as well."""
    words = ("for n in", "touch out/", "done", "ls out")
    return line.text[begin:].strip().startswith(words)


@cache
def elements() -> tuple[str, ...]:
    """Every row that an agent has drawn in a dialog, as text: of all agents, for all to be imitated."""
    rows = {
        "Tip: auto mode handles these prompts for you", "Reason: it is safe", "Environment: local", "$ ls -la",
        "Command: ls -la", "Destination: notes.txt", "Bash command", "  ls -la", "   ls -la", "List files",
        "Do you want to proceed?", "Would you like to run the following command?", "❯ 1. Yes", "› 1. Yes, proceed (y)",
        "  2. No", "   3. No, and tell Claude what to do differently (esc)", "Esc to cancel · Tab to amend",
        "Press enter to confirm or esc to cancel", "[… 12 lines] ctrl + a view all", "... first 3 lines hidden ...",
        "... 24 hidden (Ctrl+O) ...",
        "● 1. Allow once", "? Shell ls -la", "└ ls -la", "Not in allowlist: ls", "• Ran ls", "› ", "❯ ", "> ls -la",
        "✻ Thinking… (3s · esc to interrupt)", "⠋ Waiting for user confirmation...", "dev@host$ ls", "user@host:~$ ",
        "-" * 80, "-" * 40 + "; touch x", "=" * 60, "_" * 40, "│ ls -la │", "╭" + "─" * 40 + "╮", "╰" + "─" * 40 + "╯",
        "Field 1/1", 'Allow the parcels MCP server to run tool "ls"?', "Implement this plan?", "• Proposed Plan",
        "• Edited label.py (+1 -1)", "    1 +weight = 2", "+ Show details", "Ready to code?", "Here is Claude's plan:",
        "{", "}", '  "parcel": "A-1"', "", "  ", "#", "EOF", "x" * 250, "Killed", "[1]+  Stopped", "☐ Choice",
        "日本語のコマンド", "\uff4c\uff53", "😀 ls", "e\u0301", "\u202els -la\u202c", "\u2066ls\u2069", "a\u200bb",
        "مرحبا", "שלום", "━" * 60, "▌ ls", "▔" * 50, "╌" * 70, "· ls ·", "(y)", "n)", "1) Yes", "10. Yes",
    }  # fmt: skip
    for _, _, _, label, screen in recorded():
        capture = read_capture(screen)
        for line in capture.lines[max(capture.end - 22, 0) : capture.end]:
            if 0 < len(line.text) <= label["width"]:
                rows.add(line.text)
                rows.add(line.content)
    return tuple(sorted(rows))


def contents(rng: random.Random, template: Template) -> list[str]:
    """What a model may say: something that matters, among what looks like parts of dialogs."""
    harm = f"touch /tmp/x-{rng.randrange(10**9)}"
    shape = rng.random()
    if shape < 0.2:
        # A whole dialog is quoted, of this agent or another.
        _, _, _, _, screen = rng.choice(recorded())
        capture = read_capture(screen)
        quoted = [line.text for line in capture.lines[max(capture.end - rng.randrange(4, 30), 0) : capture.end]]
        rows = [harm, *quoted] if rng.random() < 0.5 else [*quoted, harm]
        rows = [*rows, *quoted[: rng.randrange(len(quoted) + 1)]]
    elif shape < 0.35:
        # Taller than any pane, with an honest end.
        rows = [harm, *(f"echo step {n}" for n in range(rng.randrange(20, 90)))]
    else:
        rows = [rng.choice(elements()) for _ in range(rng.randrange(0, 9))]
        rows.insert(rng.randrange(len(rows) + 1), harm)
        if rng.random() < 0.3:
            rows.insert(rng.randrange(len(rows) + 1), "─" * (template.room if rng.random() < 0.5 else template.width))
    if template.kind in ("mcp", "fetch"):
        rows = [" ".join(row for row in rows if row.strip())]
    return rows


def mutated(rng: random.Random, rows: list[str]) -> list[str]:
    """Another content that differs in one place that can be seen."""
    at = rng.randrange(len(rows))
    how = rng.random()
    if how < 0.4:
        return [*rows[:at], rows[at] + rng.choice(("x", ";id", " y")), *rows[at + 1 :]]
    if how < 0.6:
        return [*rows[:at], rng.choice(elements()) + "z", *rows[at:]]
    if how < 0.8 and len(rows) > 1 and rows[at].strip():
        return [*rows[:at], *rows[at + 1 :]]
    return [*rows[:at], "touch y", *rows[at:]]


def bare(text: str) -> str:
    """Without blanks, without sides of boxes, without what joins characters."""
    return re.sub(rf"[\s{_SIDES}▌▏▕…⏎]", "", text)


def is_shown(content: list[str], room: int, text: str) -> bool:
    """Whether every row of it is in the text, in its order."""
    shown, position = bare(text), 0
    for row in (bare(part) for line in content for part in wrapped(line, room)):
        position = shown.find(row, position)
        if position < 0:
            return False
        position += len(row)
    return True


@dataclass
class Found:
    drawn: int = 0
    # Of these, those that ask for an approval: a question is never approved.
    approvals: int = 0
    approvable: int = 0
    # Read as anything but a wait; as unknown only where plain text in as many rows is read as a wait.
    missed: list[str] = field(default_factory=list)
    # Approvable, and something that would run is not shown.
    hidden: list[str] = field(default_factory=list)
    # Approvable, two that differ, and one fingerprint.
    colliding: list[str] = field(default_factory=list)
    # Approvable, and the one line does not name what would run.
    misleading: list[str] = field(default_factory=list)
    styles: set[tuple[str, str, str]] = field(default_factory=set)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    agents: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.drawn} dialogs drawn in {len(self.styles)} styles of {len(self.agents)} agents at {len(self.sizes)}"
            f" sizes; {self.approvable} approvable with one step; hidden {len(self.hidden)}, colliding"
            f" {len(self.colliding)}, misleading {len(self.misleading)}, missed waits {len(self.missed)}"
        )


@cache
def registry() -> Registry:
    return Registry.load()


def is_whole(asked: object) -> bool:
    return getattr(asked, "incomplete", None) is None


def attempts(count: int, seed: str) -> Iterator[tuple[random.Random, Template, int]]:
    every = templates()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield rng, every[number % len(every)], rng.choice(HEIGHTS)


def search(count: int, seed: str) -> Found:
    found = Found()
    for rng, template, height in attempts(count, seed):
        rows = contents(rng, template)
        names: dict[str, list[list[str]]] = {}
        for content in (rows, mutated(rng, rows)):
            fingerprint = examine(found, template, height, content)
            if fingerprint is not None:
                names.setdefault(fingerprint, []).append(content)
        for same in names.values():
            if len(same) > 1 and bare("\n".join(same[0])) != bare("\n".join(same[1])):
                found.colliding.append(f"{template.agent} {template.version}: {same!r}")
    return found


def footing_of(template: Template, screen: str) -> Footing:
    footing = registry().footing(
        template.agent, Glance(screen, template.title, is_alive=True, **_width(template.width))
    )
    assert footing is not None
    return footing


def _is_read_when_plain(template: Template, height: int, content: list[str]) -> bool:
    rows = sum(len(wrapped(line, template.room)) for line in content)
    if template.kind == "description" and rows + len(template.below) >= height:
        # The marked option has left the screen.
        return False
    screen = template.draw([f"echo step {row}" for row in range(rows)], height, random.Random(0))
    return footing_of(template, screen).reading.seen.state in WAITING


def examine(found: Found, template: Template, height: int, content: list[str]) -> str | None:
    """Adds what is wrong with one dialog; its fingerprint, if it can be approved with one step."""
    screen = template.draw(content, height, random.Random(0))
    footing = footing_of(template, screen)
    seen = footing.reading.seen
    found.drawn += 1
    found.approvals += template.kind not in ("question", "description")
    found.styles.add((template.agent, template.version, template.kind))
    found.sizes.add((template.width, height))
    found.agents[template.agent] += 1
    what = f"{template.agent} {template.version} {template.kind} {template.width}x{height} {content!r}"
    if seen.state not in WAITING and (seen.state != "unknown" or _is_read_when_plain(template, height, content)):
        found.missed.append(f"{what}: {seen.state}")
    asked = seen.asked
    if seen.state not in WAITING or asked is None or not is_whole(asked) or footing.replies.approve is None:
        return None
    found.approvable += 1
    drawn = bare("".join(content))
    if not is_shown(content, template.room, f"{asked.summary}\n{asked.detail}"):
        found.hidden.append(f"{what}: {asked.detail!r}")
    if template.kind == "bash" and asked.kind == "approval":
        # It holds the content from its beginning on, whatever is before it, and says so where it ends before its end.
        summary = bare(asked.summary)
        begins = [0, *(found_at.start() for found_at in re.finditer(re.escape(drawn[:12]), summary))]
        is_cut = asked.summary.endswith("…")
        if not any((is_cut and drawn.startswith(summary[at:])) or summary[at:].startswith(drawn) for at in begins):
            found.misleading.append(f"{what}: {asked.summary!r}")
    return str(asked.fingerprint)


def quotations(count: int, seed: str) -> list[str]:
    """Dialogs quoted in the text above a prompt that are read as a wait."""
    cases = sorted(CORPUS.glob("*/*/*/case.json"))
    found = []
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        path, label, capture, frame = _with_prompt(rng, cases)
        _, _, _, _, screen = rng.choice(recorded())
        dialog = read_capture(screen)
        texts = [line.text for line in dialog.lines[max(dialog.end - rng.randrange(4, 30), 0) : dialog.end]]
        indent = " " * rng.choice((2, 2, 3, 4))
        quoted = [Row(text, (PLAIN,) * len(text)) for text in ((indent + each)[: label["width"]] for each in texts)]
        rows = [Row(line.text, line.looks) for line in capture.lines[: capture.end]]
        drawn = serialised([*rows[:frame], *quoted, *rows[frame:]][-label["height"] :])
        glance = Glance(drawn, label["title"], is_alive=True, **_width(label["width"]))
        footing = registry().footing(path.parts[-4], glance)
        assert footing is not None
        if footing.reading.seen.state in WAITING:
            found.append(f"{'/'.join(path.parts[-4:-1])}: {texts!r}")
    return found


def _with_prompt(rng: random.Random, cases: list[Path]) -> tuple[Path, dict, Capture, int]:
    """A recorded screen with a prompt, at which nothing is typed, and the row in which the prompt begins."""
    while True:
        path = rng.choice(cases)
        label = json.loads(path.read_text("utf-8"))
        # What is known of Cursor's screens is described, not recorded.
        if label["state"] not in ("idle", "running") or "draft" in path.parts[-2] or path.parts[-4] == "cursor":
            continue
        capture = read_capture((path.parent / "screen.ansi").read_text("utf-8"), label["width"])
        composer = registry().sheet(path.parts[-4]).screen.layout(capture).composer
        if composer is not None and composer.frame > 2:
            return path, label, capture, composer.frame


def _width(width: int) -> dict[str, int]:
    return {"width": width} if hasattr(Glance("").__class__, "width") or "width" in Glance.__slots__ else {}


if __name__ == "__main__":
    result = search(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, sys.argv[2] if len(sys.argv) > 2 else "1")
    print(result)
    for name in ("hidden", "colliding", "misleading", "missed"):
        for each in getattr(result, name)[:4]:
            print(name, each[:500], "…", each[-200:])
