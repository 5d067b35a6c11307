"""Whatever a model writes into a request, a person who approves it has seen all of it."""

from __future__ import annotations

import os

import pytest

from support.chance import any_seed
from support.imitations import HEIGHTS, Found, examine, quotations, search, templates

# A soak draws as many.
MANY = 20_000
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
]


def check(found: Found) -> None:
    for name in ("hidden", "colliding", "misleading", "missed"):
        assert getattr(found, name) == [], f"{name}: {found}"


def test_an_approvable_request_shows_all_that_would_run_and_is_told_from_any_other() -> None:
    # CI draws the same ones every time, as with property tests; a run by hand draws new ones.
    found = search(len(templates()), "ci" if os.environ.get("CI") else any_seed())
    print(found)
    check(found)
    assert found.approvable > found.drawn / 5
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


def test_a_dialog_that_is_quoted_above_a_prompt_is_no_wait() -> None:
    assert quotations(300, "ci" if os.environ.get("CI") else any_seed()) == []


@pytest.mark.soak
def test_the_same_with_many_more() -> None:
    found = search(MANY, any_seed())
    print(found)
    check(found)
