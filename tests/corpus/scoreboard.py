"""How right the screen rules are: every case of the corpus, by agent and state, written to docs/detection.md.

    python tests/corpus/scoreboard.py            prints the board, and what is wrong
    python tests/corpus/scoreboard.py --write    also writes it between the marks in docs/detection.md

A dangerous error is a waiting pane that is shown as anything else, or the reverse. Exit status 1 if there is one.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from agtmux.agents.registry import Registry
from agtmux.agents.screen.classify import Seen

CORPUS = Path(__file__).parent
PAGE = CORPUS.parents[1] / "docs" / "detection.md"
BEGIN, END = "<!-- scoreboard -->", "<!-- end of scoreboard -->"
WAITING = ("waiting_approval", "waiting_input")


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


def cases() -> list[Case]:
    found = []
    for path in sorted(CORPUS.glob("*/*/*/case.json")):
        agent, version, name = path.parts[-4:-1]
        label = json.loads(path.read_text("utf-8"))
        found.append(Case(agent, version, name, label, (path.parent / "screen.ansi").read_text("utf-8")))
    return found


def judge(found: list[Case]) -> list[Judged]:
    registry = Registry.load()
    return [
        Judged(
            case,
            registry.read_screen(case.agent, case.screen, title=case.label["title"], command=case.label["command"]),
        )
        for case in found
    ]


def board(judged: list[Judged]) -> list[str]:
    lines = ["| agent | versions | cases | right | dangerous | unknown |", "|---|---|---|---|---|---|"]
    by_agent: dict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        by_agent[each.case.agent].append(each)
    for agent, of_agent in [*sorted(by_agent.items()), ("all", judged)]:
        right = sum(each.is_right for each in of_agent)
        unknown = sum(each.seen.state == "unknown" and each.case.label["state"] != "unknown" for each in of_agent)
        versions = len({each.case.version for each in of_agent})
        dangerous = sum(each.is_dangerous for each in of_agent)
        shares = [f"{right / len(of_agent):.1%}", str(dangerous), f"{unknown / len(of_agent):.1%}"]
        lines.append(f"| {agent} | {versions} | {len(of_agent)} | " + " | ".join(shares) + " |")
    lines += ["", "| state | cases | precision | recall |", "|---|---|---|---|"]
    labelled = Counter(each.case.label["state"] for each in judged)
    said = Counter(str(each.seen.state) for each in judged)
    right_by_state = Counter(str(each.seen.state) for each in judged if each.is_right)
    for state in sorted(labelled):
        precision = right_by_state[state] / said[state] if said[state] else 1.0
        lines.append(
            f"| `{state}` | {labelled[state]} | {precision:.1%} | {right_by_state[state] / labelled[state]:.1%} |"
        )
    return lines


def main(words: list[str]) -> int:
    judged = judge(cases())
    for each in judged:
        if not each.is_right:
            danger = "DANGEROUS " if each.is_dangerous else ""
            print(
                f"{danger}{each.case}: {each.case.label['state']}, read as {each.seen.state} ({each.seen.reason_code})"
            )
    lines = board(judged)
    print("\n".join(lines))
    if "--write" in words:
        page = PAGE.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
    return 1 if any(each.is_dangerous for each in judged) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
