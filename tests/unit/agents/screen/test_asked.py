"""What is told of a dialog: its name for machines, and one line for people."""

import pytest

from agtmux.domain.events import Incomplete, request
from unit.screens import RULE, claude_dialog, codex_dialog, read


def test_a_dialog_has_one_name_whichever_option_is_marked():
    assert len({read("claude", *claude_dialog(marked=marked)).asked.fingerprint for marked in (1, 2, 3)}) == 1
    assert len({read("codex", *codex_dialog(marked=marked)).asked.fingerprint for marked in (1, 2, 3)}) == 1


def test_a_dialog_keeps_its_name_when_the_screen_above_it_moves_and_a_clock_ticks():
    names = set()
    for seconds, history in ((3, ["• Working on it"]), (4, ["› Make a label", "", "• Working on it"]), (5, [])):
        clock = f"⠋ Waiting ({seconds}s)"
        names.add(read("codex", *history, *codex_dialog()).asked.fingerprint)
        names.add(read("codex", *history, clock, *codex_dialog()).asked.fingerprint)
    assert len(names) == 1


def test_every_row_within_the_frame_makes_another_dialog():
    rows = (
        " ⠋ 1s",
        " ⠋ 2s",
        " Tip: one",
        " Tip: two",
        " Reason: one",
        "   # [… 2 lines]",
        "   " + "-" * 40,
        "   " + "─" * 40,
    )
    dialogs = [[RULE, " Bash command", row, *claude_dialog()[2:]] for row in rows]
    assert len({read("claude", *lines).asked.fingerprint for lines in dialogs}) == len(rows)


def test_blanks_and_line_breaks_make_another_command():
    commands = ("rm -r /tmp/labels", "rm -r / tmp/labels", "rm -r /\ntmp/labels")
    assert len({read("codex", *codex_dialog(command)).asked.fingerprint for command in commands}) == 3


def test_another_command_has_another_name_also_if_it_differs_only_in_the_middle():
    files = [f"labels/parcel-{number:03d}.txt" for number in range(40)]
    other = [*files[:20], "labels/../../other.txt", *files[21:]]
    for dialog, agent in ((claude_dialog, "claude"), (codex_dialog, "codex")):
        one, two = (read(agent, *dialog("touch\n" + "\n".join(each))).asked for each in (files, other))
        assert one.fingerprint != two.fingerprint
        assert one.summary.startswith("touch labels/parcel-000.txt")


def test_a_command_above_the_bar_of_a_dialog_is_a_part_of_it():
    bar = ["", "▌Allow command?", "▌", "▌ Yes   Always   No, provide feedback", "▌ Approve and run the command"]
    names = set()
    for command in ("touch a.txt", "touch b.txt"):
        for proposal in ([f"? Codex wants to run {command}"], ["• Proposed Command", f"  └ {command}"]):
            asked = read("codex", "▌ Make a label", "", *proposal, "", "It is outside", *bar).asked
            assert asked.summary.startswith(command)
            names.add(asked.fingerprint)
    assert len(names) == 4


def test_a_change_that_was_drawn_before_its_dialog_is_a_part_of_it():
    dialog = ["", "", "  Would you like to make the following edits?", "", "› 1. Yes, proceed (y)", "  2. No (esc)"]
    one, two = (
        ["› Change it", "", "• Edited label.py (+1 -1)", "    1 -weight = 1", f"    1 +weight = {n}"] for n in (2, 3)
    )
    asked = read("codex", *one, *dialog).asked
    assert asked.summary.startswith("Edited label.py")
    assert asked.fingerprint != read("codex", *two, *dialog).asked.fingerprint
    assert asked.fingerprint == read("codex", "• More above", "", *one, *dialog).asked.fingerprint


def test_one_line_says_what_a_yes_is_for():
    assert read("claude", *claude_dialog("touch label.txt")).asked.summary == "touch label.txt"
    assert read("codex", *codex_dialog("touch a.txt\n  b.txt")).asked.summary == "touch a.txt b.txt"
    edit = [RULE, " Edit file", " label.py", "╌" * 80, " 1 -weight = 1", " 1 +weight = 2", "╌" * 80]
    question = " Do you want to make this edit to label.py?"
    asked = read("claude", *edit, question, " ❯ 1. Yes", "   2. No").asked
    assert asked.summary == question.strip()
    assert asked.kind == "approval"


def test_a_command_of_several_rows_is_not_brief():
    """Nothing tells which of its rows were one line, and the menu would show them as one."""
    one, two = (read("claude", *claude_dialog(command)) for command in ("echo a", "echo a\nrm -r labels"))
    assert one.asked is not None and two.asked is not None
    assert (one.asked.is_brief, two.asked.is_brief) == (True, False)


def test_a_question_is_its_own_summary_also_if_it_is_broken_over_lines():
    lines = [RULE, " ☐ Parcel ", "", "Which of the parcels that are on the second shelf should go", "first?", ""]
    asked = read("claude", *lines, "❯ 1. [ ] Red", "  2. [✔] Blue", "  3. [ ] Type something").asked
    assert asked.summary == "Which of the parcels that are on the second shelf should go first?"
    assert asked.options == ("Red", "Blue", "Type something")
    assert asked.kind == "question"


def test_a_plan_is_told_from_an_approval():
    lines = [
        RULE,
        " Ready to code?",
        "",
        " Here is Claude's plan:",
        " 1 Read the labels",
        "",
        " Would you like to proceed?",
    ]
    asked = read("claude", *lines, " ❯ 1. Yes, and auto-accept edits", "   2. No, keep planning").asked
    assert asked.kind == "plan"


def test_what_a_tool_of_a_server_is_called_with_comes_with_its_server_and_its_name():
    dots = "╌" * 80
    asks = [" Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel · Tab to amend"]
    arguments = [' env: "staging"', " replicas: 3"]
    newest = [RULE, " Tool use", "", " fleet — Scale Tool: (MCP)", dots, *arguments, dots, ""]
    assert read("claude", *newest, *asks).asked.summary == 'fleet — Scale Tool: env: "staging" replicas: 3'
    call = '   fleet - scale(env: "staging", replicas: 3) (MCP)'
    # Also where the rule above it has left the screen.
    for older in ([RULE, " Tool use", "", call, ""], [" Tool use", "", call, "   Scales the fleet", ""]):
        assert call.strip() in read("claude", *older, *asks).asked.summary
    cursor = [" fleet: scale", ' {"env": "staging", "replicas": 3}', "", " Run this MCP tool?"]
    options = ["  → Run (once) (y)", "    Allowlist MCP Tool (tab)", "    Skip (esc or n)"]
    assert read("cursor", RULE, *cursor, *options).asked.summary.startswith("fleet: scale: {")


# What a misled model wrote into its command so that another one was shown beside Approve.
ATTACKS = [
    "touch x; : <<x\n" + "-" * 76 + "\nBash command\n\nls -la",
    "touch x; : <<x\n" + "─" * 76 + "\nBash command\n\nls -la",
    "touch x #\n$ ls -la",
    "ls -la\n" + "-" * 40 + "; touch x",
    "ls -la\n\ntouch x",
    "ls -la\nTip: nothing\ntouch x",
    "Reason: none\n\n$ ls -la\n\n❯ 1. Yes\n  2. No\ntouch x",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_command_is_shown_as_another(attack: str) -> None:
    for agent, dialog in (("claude", claude_dialog), ("codex", codex_dialog)):
        honest, asked = (read(agent, "• Before", *dialog(each)).asked for each in ("ls -la", attack))
        assert honest.is_whole and honest.fingerprint != asked.fingerprint
        assert "touch x" in asked.detail and "touch x" in asked.summary
        shown = "".join(asked.detail.split())
        assert not asked.is_whole or all("".join(row.split()) in shown for row in attack.split("\n"))


def test_a_command_taller_than_its_pane_is_not_whole() -> None:
    rows = ["touch x", *(f"echo step {number}" for number in range(60))]
    for agent, dialog in (("claude", claude_dialog), ("codex", codex_dialog)):
        drawn = dialog("\n".join(rows))
        assert read(agent, *drawn).asked.is_whole
        assert read(agent, *drawn[-30:]).asked.incomplete is Incomplete.NOT_ON_SCREEN


@pytest.mark.parametrize(
    ("command", "incomplete"),
    [
        ('git push --token="abcdefgh12345678"', None),
        ('git push --token="x$(touch x)abcdefgh"', Incomplete.REDACTED),
        ('git push --token="x`touch x`abcdefgh"', Incomplete.REDACTED),
        ("ls \u202ehs.x\u202c", Incomplete.UNREADABLE),
        ("ls\x1b[2K", Incomplete.UNREADABLE),
        ("x" * 17_000, Incomplete.TOO_LONG),
    ],
)
def test_a_request_that_hides_anything_says_so(command: str, incomplete: Incomplete | None) -> None:
    assert request("approval", command, command).incomplete is incomplete
