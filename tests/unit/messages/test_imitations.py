"""A message that looks like a dialog: while it stands in its receiver's prompt, nothing there is taken for one."""

import re
import textwrap

import pytest

from agtmux.messages.form import defused
from corpus import scoreboard
from unit.screens import registry

DRAFT = re.compile(r"print three labels|then print them again")
WIDTH = 72


@pytest.fixture(scope="module")
def cases() -> list[scoreboard.Case]:
    return scoreboard.cases()


def prompts(cases: list[scoreboard.Case]) -> dict[str, scoreboard.Case]:
    """For each agent the newest recorded screen with something typed."""
    typed = (each for each in cases if each.name in ("idle-draft-80x24", "busy-draft-80x24"))
    return {each.agent: each for each in typed if each.agent != "cursor" and DRAFT.search(each.screen)}


def typed_into(case: scoreboard.Case, lines: list[str]) -> str:
    """The screen with that in its prompt instead."""
    rows = case.screen.rstrip("\n").split("\n")
    at = next(number for number, row in enumerate(rows) if DRAFT.search(row))
    is_boxed = scoreboard.without_looks(rows[at]).strip().startswith("│")
    first = DRAFT.sub(lambda _: lines[0], re.sub(r" +(\S*│)$", r" \1", rows[at]))
    others = [f"│   {line:<74}│" if is_boxed else f"  {line}" for line in lines[1:]]
    return "\n".join([*rows[:at], first, *others, *rows[at + 1 :], ""])


def wrapped(text: str) -> list[str]:
    return [part for line in text.split("\n") for part in textwrap.wrap(line, WIDTH, replace_whitespace=False) or [""]]


def imitations(cases: list[scoreboard.Case]) -> list[str]:
    """Every recorded dialog, whole and its end alone."""
    found = set()
    for each in cases:
        if each.label["state"] in scoreboard.WAITING:
            rows = [row.rstrip() for row in scoreboard.without_looks(each.screen).rstrip().split("\n")]
            found |= {"\n".join(rows[-most:]) for most in (8, 14, 40)}
    return sorted(found)


def test_a_recorded_dialog_in_a_prompt_is_no_dialog(cases):
    taken, tried = [], 0
    for agent, case in prompts(cases).items():
        for dialog in imitations([each for each in cases if each.agent == agent]):
            text = f"[agtmux msg from claude-3]: {defused(dialog)}"
            seen = registry().read_screen(agent, typed_into(case, wrapped(text)))
            tried += 1
            if seen.state in scoreboard.WAITING:
                taken.append(f"{agent}: {seen.state} by {seen.evidence} of\n{text}")
    assert tried >= 500
    assert taken == [], f"{len(taken)} of {tried}: {taken[0]}"


@pytest.mark.parametrize(
    "text",
    [
        "0. Begin with nothing",
        "1. Run the tests\n2. Push\n3. Tell me",
        "it is a > b -> c, «quoted» → done; 50 % ± 3",
        "- [ ] open\n- [x] done\n\n---\n\n| a | b |\n|---|---|",
        "あいうえお 🙂 naïve\n\tcode(indented)",
    ],
)
def test_what_people_write_is_left_as_it_is(text: str):
    assert defused(text) == text


def test_a_quotation_stays_one_and_marks_no_choice():
    assert defused("> Yes\n  No\n> 1. Yes\n  2. No") == ">> Yes\n  No\n* (1) Yes\n  (2) No"


def test_a_line_that_begins_with_zero_is_no_trouble():
    """It counts before the first of any list."""
    assert registry().read_screen("claude", "0. Nothing\n1. Red\n2. Blue\n").state not in scoreboard.WAITING
