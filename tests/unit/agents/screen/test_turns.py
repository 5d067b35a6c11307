"""Whether a turn is under way, over, broken off or failed, with a prompt below it."""

import pytest

from unit.screens import BOLD, DIM, OFF, claude_prompt, gemini_prompt, read

RED, BLUE, CODE = "\x1b[38;5;211m", "\x1b[34m", "\x1b[38;5;153m"

CODEX_PROMPT = (f"{BOLD}›{OFF} {DIM}Explain this codebase{OFF}", "", "  gpt-5.4 default · 100% left · ~/src/parcels")


def claude(*lines: str, **more):
    return read("claude", "❯ Hello", "", *lines, "", *claude_prompt(), **more)


@pytest.mark.parametrize(
    "line",
    [
        "✻ Baking… (12s · ↓ 48 tokens · esc to interrupt)",
        "· Considering labels…",
        "✻ Worked for 3s · 1 shell still running",
        "✻ Waiting for 2 background agents to finish",
        "  ⎿  529 Overloaded · Retrying in 4s · attempt 3/10",
    ],
)
def test_work_and_what_is_tried_again_is_running(line):
    assert claude(line).state == "running"


def test_a_list_of_steps_and_queued_messages_stand_between_a_busy_line_and_the_prompt():
    steps = [
        "  ⎿  ☒ Read the labels",
        "     ☐ Print the labels",
        "     ☐ Check the labels",
        "  ❯ then print them again",
    ]
    assert claude("✽ Printing labels… (3s)", *steps).state == "running"


def test_what_runs_in_the_background_is_told_of_below_the_prompt():
    assert (
        read("claude", "● It runs.", "", *claude_prompt(below=("  1 bash · ↓ to manage",))).reason_code == "background"
    )


@pytest.mark.parametrize(
    "line",
    [
        f"{RED}● API Error: 529 overloaded{OFF}",
        f"  ⎿  {RED}Not logged in · Please run /login{OFF}",
        f"  ⎿  {RED}You've hit your limit · resets 3pm{OFF}",
    ],
)
def test_what_was_given_up_is_an_error(line):
    seen = claude(line)
    assert (seen.state, seen.confidence) == ("error", "high")


@pytest.mark.parametrize(
    "line",
    [
        "● The API Error you see in your log comes from the proxy.",
        "● Your handler returns 429 once the usage limit reached flag is set.",
        f"● {CODE}API Error: 529{OFF} is what the proxy says.",
        "● API Error: 529 is what the proxy says.",
        "● The message 'Interrupted by user' is printed by main.py when",
        "  ⎿  Interrupted by user",
        f"{RED}● It says: Interrupted by user{OFF}",
    ],
)
def test_what_the_model_says_of_errors_and_interrupts_is_neither(line):
    seen = claude(f"{CODE}● Read(main.py){OFF}", line)
    assert (seen.state, seen.reason_code) == ("idle", "prompt")


def test_the_signs_of_other_agents_are_their_own_only_in_colour():
    said = ("› what", "", f"• Here it {CODE}is{OFF}", "")
    assert read("codex", *said, "■ is the black square", "", *CODEX_PROMPT).state == "idle"
    assert read("codex", *said, f"{RED}■ exceeded retry limit{OFF}", "", *CODEX_PROMPT).state == "error"
    quoted = " ● It prints Operation cancelled by user when you press Ctrl-C."
    for line in (
        quoted,
        " ● Operation cancelled by user",
        f" {BLUE}●{OFF} Operation cancelled by user is what it prints",
    ):
        assert read("copilot", " ❯ explain", f" {CODE}Thought{OFF}", line, *claude_prompt()).reason_code == "prompt"
    stopped = f" {BLUE}●{OFF} Operation cancelled by user"
    assert read("copilot", " ❯ explain", stopped, *claude_prompt()).reason_code == "interrupted"


def test_without_colours_an_error_is_told_and_hardly_sure():
    for coloured in (True, False):
        seen = claude("● API Error: 529 overloaded", coloured=coloured)
        assert (seen.state, seen.confidence) == ("error", "low")


def test_errors_before_the_last_message_and_in_quotations_are_none():
    assert read("claude", "● API Error: 529", "", "❯ Again", "", "● Printed.", "", *claude_prompt()).state == "idle"
    assert claude("● The log says:", "    API Error: 529 overloaded", "    error: expected `;`").state == "idle"


@pytest.mark.parametrize(
    "line",
    [
        f"  ⎿  {RED}Interrupted · What should Claude do instead?{OFF}",
        f"  ⎿  {RED}[Request interrupted by user]{OFF}",
        "● User declined to answer",
    ],
)
def test_a_turn_that_was_broken_off_is_idle_and_says_so(line):
    seen = claude(line)
    assert (seen.state, seen.reason_code) == ("idle", "interrupted")


def test_busy_lines_in_a_quotation_are_none():
    assert claude("● It shows:", "  ✻ Baking… (12s · esc to interrupt)").state == "idle"
    assert read("gemini", "✦ It shows:", "  ⠏ Thinking (esc to cancel, 3s)", "", *gemini_prompt()).state == "idle"


def test_a_busy_line_that_is_broken_over_two_lines_is_one():
    assert (
        read("gemini", "⠏ Communing with the machine spirit...", "(esc to cancel, 3s)", *gemini_prompt()).state
        == "running"
    )


def test_an_answer_that_may_still_come_in_makes_idle_uncertain():
    answer = ("› Tell me", "", "• word0 word1 word2", "")
    assert read("codex", *answer, *CODEX_PROMPT, title="host").confidence == "low"
    # A title that names the folder is the agent's, and would turn.
    assert read("codex", *answer, *CODEX_PROMPT, title="parcels").confidence == "high"
    assert read("codex", *answer, "─ Worked for 3s ─────", "", *CODEX_PROMPT, title="host").confidence == "high"
    assert read("codex", "› Tell me", "", *CODEX_PROMPT, title="⠋ parcels").state == "running"
