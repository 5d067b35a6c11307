"""What is typed at a prompt.

Guaranteed of `draft`: every line as it is drawn, without the sign, the margin below it and the sides of a box. A line
that was too long for the pane is broken where the screen breaks it, so who compares must leave out blanks.
"""

import re

import pytest

from unit.screens import BOLD, DIM, OFF, REVERSE, RULE, claude_prompt, gemini_prompt, read


def test_a_draft_is_exactly_what_is_typed():
    assert read("claude", *claude_prompt("ls -l | wc |")).draft == "ls -l | wc |"
    assert (
        read("claude", *claude_prompt("one", "  two, further in", "", "four")).draft == "one\n  two, further in\n\nfour"
    )
    assert read("gemini", *gemini_prompt("ls | wc |")).draft == "ls | wc |"
    assert read("codex", f"{BOLD}›{OFF} one", "  two", "", "  gpt-5 · ~/parcels").draft == "one\ntwo"


@pytest.mark.parametrize("status", ["\x1b[38;5;223mgpt-5 default\x1b[39m · ~/parcels", f"{DIM}gpt-5 · ~/parcels{OFF}"])
def test_what_is_typed_at_a_prompt_without_a_frame_may_have_paragraphs(status):
    screen = [
        "\x1b[38;5;75m>_\x1b[39m Codex",
        "",
        f"{BOLD}›{OFF} one",
        "",
        "",
        "    2. two",
        "  three",
        "",
        f"  {status}",
    ]
    assert read("codex", *screen).draft == "one\n\n\n  2. two\nthree"
    # What hangs below an empty prompt, or one with a hint in it, is not typed.
    for first in ("", f"{DIM}Ask for anything{OFF}"):
        assert read("codex", *screen[:2], f"{BOLD}›{OFF} {first}", *screen[3:]).draft == ""
    # Nor can it be told from a status that has no colour.
    assert read("codex", *screen[2:7], "", "  gpt-5 · ~/parcels").draft == "one"


def test_a_wrapped_draft_differs_from_what_was_typed_only_in_blanks():
    typed = "print three labels for the parcels on the second shelf, one for each, and put them on the belt"
    drawn = read("claude", *claude_prompt(typed[:76], typed[76:])).draft
    assert re.sub(r"\s", "", drawn) == re.sub(r"\s", "", typed)


@pytest.mark.parametrize(
    "look", [DIM, "\x1b[90m", "\x1b[38;5;246m", "\x1b[38;2;108;112;134m", "\x1b[38;2;175;175;175m"]
)
def test_faint_text_is_a_suggestion(look):
    seen = read("claude", RULE, f"❯ {look}run the tests again{OFF}", RULE)
    assert (seen.composer, seen.draft) == ("suggestion", "")


def test_text_behind_the_cursor_is_no_draft():
    before = read("copilot", RULE, f"❯ {REVERSE} {OFF}Ask anything you like", RULE)
    assert before.composer == "suggestion"
    over = read("claude", RULE, f"❯ {REVERSE}r{OFF}{DIM}un the tests again{OFF}", RULE)
    assert over.composer == "suggestion"


def test_what_is_typed_is_a_draft_wherever_the_cursor_is():
    assert read("claude", RULE, f"❯ {REVERSE}p{OFF}rint three labels", RULE).draft == "print three labels"
    assert read("claude", RULE, f"❯ print three labels{REVERSE} {OFF}", RULE).draft == "print three labels"


def test_without_colours_a_suggestion_cannot_be_told_from_a_draft_and_counts_as_one():
    seen = read("claude", "❯ Hello", "● Hi.", *claude_prompt("run the tests again"), coloured=False)
    assert (seen.composer, seen.confidence) == ("draft", "medium")


def test_hints_of_the_agent_itself_are_no_draft():
    assert read("gemini", *gemini_prompt("  Type your message or @path/to/file"), coloured=False).composer == "empty"
    busy = read("cursor", " " + "▄" * 78, "  → Add a follow-up" + " " * 40 + "ctrl+c to stop", " " + "▀" * 78)
    assert (busy.state, busy.composer) == ("running", "empty")
    typed = read("cursor", " " + "▄" * 78, "  → print labels" + " " * 40 + "ctrl+c to stop", " " + "▀" * 78)
    assert typed.draft == "print labels"


def test_wide_characters_in_a_draft_do_not_move_its_end():
    top, bottom = "╭" + "─" * 38 + "╮", "╰" + "─" * 38 + "╯"
    assert read("gemini", top, "│ > ラベルを印刷 🏷️" + " " * 19 + "│", bottom).draft == "ラベルを印刷 🏷️"


def test_a_prompt_with_a_status_line_of_the_users_and_vim_keys_is_a_prompt():
    below = ("  main ✚2 │ opus │ 42% │ $1.20", "  -- INSERT -- ⏸ plan mode on (shift+tab to cycle)")
    seen = read("claude", "● Printed.", "", *claude_prompt(below=below))
    assert (seen.state, seen.composer) == ("idle", "empty")


def test_a_composer_whose_end_is_cut_off_is_still_one():
    assert read("gemini", "▀" * 60, " > print three labels", "   one for each parcel").draft.startswith("print")
