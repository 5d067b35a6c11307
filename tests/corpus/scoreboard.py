"""How right the screen rules are: every case of the corpus, by agent and state, written to docs/detection.md.

    python tests/corpus/scoreboard.py            prints the board, and what is wrong
    python tests/corpus/scoreboard.py --write    also writes it between the marks in docs/detection.md

A dangerous error is a waiting pane that is shown as anything else, or the reverse. Exit status 1 if there is one, with
colours or without.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen

CORPUS = Path(__file__).parent
PAGE = CORPUS.parents[1] / "docs" / "detection.md"
BEGIN, END = "<!-- scoreboard -->", "<!-- end of scoreboard -->"
WAITING = ("waiting_approval", "waiting_input")
_LOOKS = re.compile(r"\x1b\[[0-9;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[\x0e\x0f]")


class Case(NamedTuple):
    agent: str
    version: str
    name: str
    label: dict
    screen: str

    def __str__(self) -> str:
        return f"{self.agent} {self.version} {self.name}"


class Judged(NamedTuple):
    case: Case
    seen: Seen

    @property
    def is_right(self) -> bool:
        return self.seen.state == self.case.label["state"]

    @property
    def is_dangerous(self) -> bool:
        return (self.case.label["state"] in WAITING) != (self.seen.state in WAITING)

    @property
    def is_unknown(self) -> bool:
        """Nothing is said where something should be."""
        return self.seen.state == "unknown" != self.case.label["state"]


def cases() -> list[Case]:
    found = []
    for path in sorted(CORPUS.glob("*/*/*/case.json")):
        agent, version, name = path.parts[-4:-1]
        label = json.loads(path.read_text("utf-8"))
        found.append(Case(agent, version, name, label, (path.parent / "screen.ansi").read_text("utf-8")))
    return found


def without_looks(screen: str) -> str:
    return _LOOKS.sub("", screen)


def judge(found: list[Case], *, plain: bool = False) -> list[Judged]:
    """`plain` leaves out the colours, as a capture without -e does."""
    registry = Registry.load()
    judged = []
    for case in found:
        screen = without_looks(case.screen) if plain else case.screen
        title, command = case.label["title"], case.label["command"]
        judged.append(Judged(case, registry.read_screen(case.agent, screen, title=title, command=command)))
    return judged


def board(judged: list[Judged], plain: list[Judged]) -> list[str]:
    return [*by_agent(judged, plain), "", *by_state(judged), "", *by_class(judged)]


def by_agent(judged: list[Judged], plain: list[Judged]) -> list[str]:
    lines = [
        "| agent | versions | cases | right | dangerous | unknown | without colours | dangerous |",
        "|---|" + "---|" * 7,
    ]
    agents = sorted({each.case.agent for each in judged})
    for agent in (*agents, "all"):
        mine = [each for each in judged if agent in (each.case.agent, "all")]
        without = [each for each in plain if agent in (each.case.agent, "all")]
        cells = [agent, len({(each.case.agent, each.case.version) for each in mine}), len(mine)]
        cells += [_share(mine, "is_right"), sum(each.is_dangerous for each in mine), _share(mine, "is_unknown")]
        cells += [_share(without, "is_right"), sum(each.is_dangerous for each in without)]
        lines.append(_row(cells))
    return lines


def by_state(judged: list[Judged]) -> list[str]:
    """How much of what is said is so, and how much of what is so is said."""
    agents = sorted({each.case.agent for each in judged})
    lines = [_row(["precision / recall", *agents, "all"]), "|---|" + "---|" * (len(agents) + 1)]
    for state in sorted({each.case.label["state"] for each in judged}):
        cells = [f"`{state}`"]
        for agent in (*agents, "all"):
            mine = [each for each in judged if agent in (each.case.agent, "all")]
            so = sum(each.case.label["state"] == state for each in mine)
            said = sum(each.seen.state == state for each in mine)
            both = sum(each.is_right and each.seen.state == state for each in mine)
            cells.append(f"{both / said:.1%} / {both / so:.1%}" if so and said else "–")
        lines.append(_row(cells))
    return lines


def by_class(judged: list[Judged]) -> list[str]:
    lines = ["| what is shown | cases | right | dangerous |", "|---|---|---|---|"]
    for kind in sorted({each.case.label["class"] for each in judged}):
        mine = [each for each in judged if each.case.label["class"] == kind]
        lines.append(_row([kind, len(mine), _share(mine, "is_right"), sum(each.is_dangerous for each in mine)]))
    return lines


def _share(judged: list[Judged], what: str) -> str:
    return f"{sum(getattr(each, what) for each in judged) / len(judged):.1%}"


def _row(cells: list) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main(words: list[str]) -> int:
    found = cases()
    judged, plain = judge(found), judge(found, plain=True)
    for each in judged:
        if not each.is_right:
            danger = "DANGEROUS " if each.is_dangerous else ""
            said = f"{each.seen.state} ({each.seen.reason_code}, {each.seen.confidence})"
            print(f"{danger}{each.case}: {each.case.label['state']}, read as {said}")
    lines = board(judged, plain)
    print("\n".join(lines))
    if "--write" in words:
        page = PAGE.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
    return 1 if any(each.is_dangerous for each in (*judged, *plain)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
