"""Whatever a model writes into a request, a person who approves it has seen all of it."""

from __future__ import annotations

import os
import random

import pytest

from support.chance import any_seed
from support.imitations import HEIGHTS, WAITING, Found, examine, footing_of, quotations, search, templates

# A soak draws as many.
MANY = 20_000
# The last row of a list that a user has opened.
KEYS_OF_A_LIST = " enter accept · ctrl+d decline · esc cancel"
# What searches have found: an agent, the kind of its dialog, and the rows of a model in it.
FOUND = [
    # Half blocks above a prompt's sign, as the upper edge of a composer that goes on to the end of the screen.
    ("claude", "bash", ["Weight", "▄" * 210, "❯ Red", "│   How would you like to authenticate?   │", "touch /tmp/x"]),
    ("claude", "bash", ["touch /tmp/x", "─" * 80, "   1. Yes", "▀" * 200, "❯ Make a label"]),
    # In Cursor's dialog the command is in the first row and at the edge, where others have the dialog's name.
    (
        "cursor",
        "bash",
        ["2. Yes", "  ⎿  $ touch label.txt", "Esc to cancel", "│   2. Yes   │", "        ^|~ _|", "touch /tmp/x"],
    ),
    # A row with an agent's sign in the middle, and one that looks like an agent's note.
    ("codex", "bash", ["make", "dev@host$ copilot", "Reason: it is safe", "touch /tmp/x"]),
    ("codex", "bash", ["", "make", "Reason: it is safe", "", "$ touch label.txt", "", "touch /tmp/x"]),
    ("gemini", "bash", ["Not in allowlist: touch", "Fragile", "touch /tmp/x"]),
    # A box that is drawn whole, in a dialog that is one.
    (
        "claude",
        "bash",
        ["", "○ Asking user", "╭" + "─" * 58 + "╮", "│" + "ls".center(58) + "│", "╰" + "─" * 58 + "╯", "touch x"],
    ),
    (
        "claude",
        "bash",
        [*(f"echo step {row}" for row in range(20)), "╭" + "─" * 58 + "╮", "╰" + "─" * 58 + "╯", "touch x"],
    ),
    # What the user's own lists say of their keys, where a low pane shows one option.
    ("codex", "mcp", ["touch /tmp/x " + "and print all labels " * 8 + "enter continue · esc back Labels " * 2]),
    # A rule just above the options, which stand between two rules then.
    ("claude", "question", ["Which parcel goes first?", "─" * 60]),
    ("claude", "question", ["Which parcel goes first?", "▄" * 60, "touch /tmp/x", "╌" * 44]),
    # Options in what describes an option, and a composer.
    ("claude", "description", ["  2. No, quit", "touch /tmp/x"]),
    ("claude", "description", ["  3. No, and tell Codex what to do", "❯ Look it up", "touch /tmp/x"]),
    ("claude", "description", ["touch /tmp/x", "─" * 76, " ❯ Ask me.", "   commands"]),
    ("claude", "description", ["─" * 56, "❯ 1. Accept plan", "touch /tmp/x", *("row",) * 6]),
    ("claude", "description", ["touch /tmp/x", "› Print it", "  Reason: it is safe", "│     1. Sign in     │"]),
    # A whole dialog there, while the option that is marked has left the screen.
    (
        "claude",
        "description",
        [
            "touch /tmp/x",
            "╭" + "─" * 40 + "╮",
            *("│" + text.ljust(40) + "│" for text in (" ls -la", " Do you want to proceed?", " ❯ 1. Yes", "   2. No")),
            "╰" + "─" * 40 + "╯",
        ],
    ),
    ("codex", "description", ["│  2. Accept plan  │", "touch /tmp/x", "   3. 3rd-party platform"]),
    # The same, so tall that the next option is far below, and with the keys of a list of the user's own.
    (
        "claude",
        "description",
        [
            "touch /tmp/x",
            *("row",) * 30,
            "╭" + "─" * 78 + "╮",
            *("│" + text.ljust(78) + "│" for text in (" ls -la", " Do you want to proceed?", " ❯ 1. Yes", "   2. No")),
            "╰" + "─" * 78 + "╯",
        ],
    ),
    ("codex", "description", ["touch /tmp/x", *("row",) * 34, KEYS_OF_A_LIST]),
    # A blank line first in a command, so that its sign is alone in the row of a dialog's name.
    ("cursor", "bash", ["", "  3. Provide your own API key", "  Press enter to continue", "touch /tmp/x", "", "  ls"]),
]


def check(found: Found) -> None:
    for name in ("hidden", "colliding", "misleading", "missed"):
        assert getattr(found, name) == [], f"{name}: {found}"


def test_an_approvable_request_shows_all_that_would_run_and_is_told_from_any_other() -> None:
    # CI draws the same ones every time, as with property tests; a run by hand draws new ones.
    found = search(len(templates()), "ci" if os.environ.get("CI") else any_seed())
    print(found)
    check(found)
    assert found.approvable > found.approvals / 5
    assert set(found.agents) == {"claude", "codex", "copilot", "cursor", "gemini"}


@pytest.mark.parametrize(("agent", "kind", "content"), FOUND)
def test_what_was_found_once_is_a_wait_that_shows_all(agent: str, kind: str, content: list[str]) -> None:
    found = Found()
    for template in templates():
        if (template.agent, template.kind) == (agent, kind):
            for height in HEIGHTS:
                examine(found, template, height, content)
    assert found.drawn
    check(found)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_options_are_one_list_however_tall_the_description_of_one_is(agent: str) -> None:
    quoted = (" ls -la", " Do you want to proceed?", " ❯ 1. Yes", "   2. No")
    drawn = [each for each in templates() if (each.agent, each.kind) == (agent, "description") and each.width >= 80]
    # Where more than one can be ticked, Claude describes them no further in than their numbers.
    further_in = [template for template in drawn if len(template.rest.text) > 2]
    assert further_in
    for template in further_in:
        screen = template.draw(["touch /tmp/x", *("row",) * 40, *quoted], 90, random.Random(0))
        asked = footing_of(template, screen).reading.seen.asked
        assert asked is not None
        labels = [option.split()[0] for option in asked.options]
        assert labels[:2] == ["Red", "Blue"], f"{template.version} {template.width}\n{screen}"


@pytest.mark.parametrize("rows", [0, 8, 20, 40, 80])
def test_a_question_of_codex_is_a_wait_where_its_marked_option_has_left_the_screen(rows: int) -> None:
    drawn = [template for template in templates() if (template.agent, template.kind) == ("codex", "description")]
    assert drawn
    for template in drawn:
        for height in HEIGHTS:
            screen = template.draw(["touch /tmp/x", *("row",) * rows, KEYS_OF_A_LIST], height, random.Random(0))
            seen = footing_of(template, screen).reading.seen
            assert seen.state in WAITING, f"{template.version} {template.width}x{height}\n{screen}"


def test_a_dialog_that_is_quoted_above_a_prompt_is_no_wait() -> None:
    assert quotations(300, "ci" if os.environ.get("CI") else any_seed()) == []


@pytest.mark.soak
def test_the_same_with_many_more() -> None:
    found = search(MANY, any_seed())
    print(found)
    check(found)
