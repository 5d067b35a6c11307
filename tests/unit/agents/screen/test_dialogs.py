"""What is taken for a dialog that waits, and what is not: sizes, looks and halves that recordings do not have."""

import pytest

from unit.screens import BOLD, DIM, OFF, RULE, claude_dialog, claude_prompt, codex_dialog, gemini_prompt, read

WAITING = "waiting_approval"


@pytest.mark.parametrize("coloured", [True, False])
@pytest.mark.parametrize("marked", [1, 2, 3])
def test_a_dialog_waits_whichever_option_is_marked(marked, coloured):
    assert read("claude", *claude_dialog(marked=marked), coloured=coloured).state == WAITING
    assert read("codex", *codex_dialog(marked=marked), coloured=coloured).state == WAITING


def test_a_dialog_whose_top_has_left_the_screen_waits():
    for agent, dialog in (("claude", claude_dialog()), ("codex", codex_dialog())):
        for gone in range(len(dialog) - 4):
            assert read(agent, *dialog[gone:]).state == WAITING, dialog[gone:]


def test_a_dialog_whose_marked_option_has_left_the_screen_waits():
    assert read("claude", *claude_dialog()[-4:]).state == WAITING
    left = [" │   2. Yes, allow always  │", " │   3. No, suggest changes (esc)  │", " ╰" + "─" * 25 + "╯"]
    for agent in ("copilot", "gemini"):
        assert read(agent, *left).state == WAITING


def test_a_long_command_pushes_the_heading_off_the_screen():
    command = "\n".join(f"printf 'label {number}' >> labels.txt" for number in range(40))
    seen = read("claude", *claude_dialog(command)[-22:])
    assert seen.state == WAITING
    assert seen.asked.summary.startswith("printf 'label 2")


def test_options_without_numbers_and_no_preselected():
    options = ["  Yes, I accept", "❯ No, exit"]
    seen = read(
        "claude", RULE, " Bypass Permissions mode", "", " Do you accept?", "", *options, "", " Enter to confirm"
    )
    assert seen.state == WAITING
    assert seen.asked.options == ("Yes, I accept", "No, exit")
    assert seen.asked.selected == 1


def test_options_that_begin_with_a_digit_are_options():
    options = ["❯ 1. 3 parcels", "  2. 12 parcels", "  3. Type something."]
    assert read("claude", RULE, " ☐ Size ", "", "How many?", "", *options).asked.options == (
        "3 parcels",
        "12 parcels",
        "Type something.",
    )


def test_an_answered_or_quoted_dialog_above_a_prompt_is_history():
    assert read("claude", *claude_dialog(), "", "● Done.", "", *claude_prompt()).state == "idle"
    assert read("claude", "● It will ask:", *claude_dialog(), *claude_prompt()).state == "idle"
    prompt = [f"{BOLD}›{OFF} {DIM}Explain this codebase{OFF}", "", "  gpt-5 · ~/parcels"]
    assert read("codex", "• It will ask:", *codex_dialog(), "", *prompt).state == "idle"
    assert (
        read("gemini", "✦ It will ask:", " │ ● 1. Yes, allow once  │", " │   2. No (esc)  │", *gemini_prompt()).state
        == "idle"
    )


def test_numbered_lists_and_errors_in_an_answer_are_no_dialog_and_no_error():
    answer = ["● Three steps:", "  1. Yes, read the labels", "  2. No, do not print", "  error: expected `;`", ""]
    assert read("claude", *answer, *claude_prompt()).state == "idle"


@pytest.mark.parametrize(
    "prompt",
    ["dev@host:~/parcels$", "dev@host$ ", "~/parcels % ", "[dev@host parcels]# ", "bash-5.2$", "➜  parcels git:(main)"],
)
def test_a_shells_prompt_below_a_dialog_means_that_the_agent_is_gone(prompt):
    for agent, dialog in (("claude", claude_dialog()), ("codex", codex_dialog())):
        seen = read(agent, *dialog, prompt)
        assert (seen.state, seen.reason_code) == ("unknown", "agent_gone")


KILLED = ["● I will use a tool.", "Killed", "dev@host:~/parcels$ "]
STARTED = ["dev@host:~/parcels$ claude", " ✻ Welcome", "❯ Make a label", "● I will use a tool.", ""]


@pytest.mark.parametrize("before", [KILLED, [*KILLED, *STARTED], [*KILLED[:2], *STARTED]])
def test_an_agent_that_was_killed_and_started_again_is_alive(before):
    assert read("claude", *before, *claude_dialog()).state == WAITING
    assert read("claude", *before, *claude_prompt()).state == "idle"
    assert read("codex", *before, *codex_dialog()).state == WAITING


def test_a_prompt_that_a_shell_has_written_over_a_dialog_means_that_the_agent_is_gone():
    dialog = claude_dialog(marked=3)
    at = dialog.index(" Do you want to proceed?")
    over = [*dialog[:at], " Killedwant to proceed?", "dev@host$   1. Yes", *dialog[at + 2 :]]
    assert read("claude", *over).reason_code == "agent_gone"
    # Also if it was started again before that.
    assert read("claude", *KILLED, *STARTED, *over).reason_code == "agent_gone"


def test_a_process_that_is_known_to_be_there_is_not_gone_whatever_a_shell_has_written():
    for lines in ([*claude_dialog(), "dev@host$ "], [*KILLED[1:], *claude_dialog()[2:]]):
        assert read("claude", *lines, is_alive=True).state == WAITING
    # A script of the user's that starts it.
    assert read("claude", *claude_dialog(), command="bash", is_alive=True).state == WAITING
    assert read("claude", *claude_dialog(), is_alive=False).reason_code == "agent_gone"


def test_a_shell_in_the_foreground_decides_whatever_is_drawn():
    assert read("claude", *claude_dialog(), command="-zsh").reason_code == "agent_gone"
    assert read("codex", *codex_dialog(), command="node", title="[ ! ] Action Required").state == WAITING


def test_a_status_line_at_the_edge_is_no_shells_prompt():
    for status in (
        "dev@host ~/parcels 42% of 200k",
        "~/parcels no sandbox 98% context left",
        "dev@host:~/parcels main",
    ):
        assert read("claude", *claude_prompt(below=(status,))).state == "idle"


def test_a_draft_that_looks_like_a_shells_prompt_is_a_draft():
    assert read("claude", *claude_prompt("$ ls", "dev@host$ ls")).composer == "draft"


def test_a_viewer_over_a_dialog_hides_the_state_though_the_title_tells_it():
    viewer = ["• Here is what I would do:", "─" * 72 + " 100% ─", " ↑/↓ to scroll   pgup/pgdn to page", " q to quit"]
    assert read("codex", *viewer, title="[ ! ] Action Required").is_overlay
    assert read("codex", "• Half a", title="[ ! ] Action Required").state == WAITING


def test_a_menu_that_shows_what_is_set_and_is_left_with_escape_is_the_users_own():
    options = ["❯ 1. Default ✔", "  2. Sonnet", "  3. Haiku"]
    seen = read("claude", *options, "", " Enter to confirm · Esc to cancel")
    assert (seen.state, seen.is_overlay) == ("unknown", True)
    chosen = ["❯ 1. [✔] Red", "  2. [ ] Blue", "  3. Type something."]
    assert read("claude", *chosen, "", " Enter to select · Esc to cancel").state == "waiting_input"


def test_what_a_command_or_a_question_begins_with_makes_no_menu_of_its_dialog():
    """Only what a menu is called counts, and only of a list that takes no answer."""
    assert read("claude", *claude_dialog("Manage-Service.ps1 restart")).state == WAITING
    assert read("claude", *claude_dialog("Resume job 7\nq to quit\nType to search")).state == WAITING
    assert read("claude", *claude_dialog("-" * 12 + "\nSettings --reset")).state == WAITING
    assert read("codex", *codex_dialog("Update the data model")).state == WAITING
    options = ["❯ Red", "  Blue", "  Other (type your answer)"]
    for question in ("Search which index first?", "Type to search or browse first: which?"):
        lines = [RULE, " Copilot needs information.", f" {question}", "", *options, "", " ↑/↓ select · esc cancel"]
        assert read("copilot", *lines, RULE).state == "waiting_input"
    options = ["› 1. Red", "  2. Blue", "  3. None of the above"]
    for question in ("Choose the permission model for the API?", "Select a deployment mode"):
        asks = ["", "", "  Question 1/1 (1 unanswered)", f"  {question}", "", *options, "", "  enter to submit answer"]
        assert read("codex", *asks).state == "waiting_input"
        assert read("codex", "", "", *asks[3:]).state == "waiting_input"


def test_a_menu_is_known_by_what_it_is_called():
    options = ["❯ 1. Ask every time", "  2. Ask once"]
    menu = [RULE, " Permissions", "", " How often shall it ask?", "", *options, "", " Enter to confirm · Esc to cancel"]
    assert read("claude", *menu).is_overlay
    # The same words further down are about something else.
    asked = [RULE, " Setup", " Permissions", "", " How often shall it ask?", *options, "", " Esc to cancel"]
    assert read("claude", *asked).state == "waiting_input"


def test_a_list_that_can_be_searched_is_the_users_own_whatever_it_holds():
    options = ["❯ Continue with the labels", "  Stop the printer", "  Other parcels"]
    hints = " Ctrl+B to toggle branch · Type to search · Esc to clear"
    assert read("claude", RULE, " Resume Session", "", *options, "", hints).is_overlay


def test_a_list_between_two_rules_is_no_prompt():
    lines = [
        RULE,
        " ❯ Red",
        "   Blue",
        "   Other (type your answer)",
        "",
        " ↑/↓ select · enter accept · esc cancel",
        RULE,
    ]
    assert read("copilot", *lines).state == "waiting_input"


def test_a_question_that_can_be_answered_with_yes_is_a_question():
    lines = [RULE, " Copilot needs information.", " Print them?", "", " ❯ Yes", "   No", "   Other (type your answer)"]
    assert read("copilot", *lines, "", " ↑/↓ select · enter accept · esc cancel", RULE).state == "waiting_input"


def test_a_message_that_was_sent_is_no_list_to_choose_from():
    """Its first line has the sign, those below are further in, and a viewer hides the prompt."""
    sent = ["❯ Print three labels for the parcels on the second shelf, one for each", "  of them, and stop"]
    assert read("claude", *sent, "", "● Printed.").state == "unknown"
    noted = ["● No instructions were found in this folder; run a command to make", "  some"]
    assert read("copilot", *noted, "", "Esc to continue").state == "unknown"


def test_a_narrow_pane_breaks_options_over_lines():
    lines = [
        "─" * 38,
        " Bash command",
        "",
        "   touch label.txt",
        "",
        " Do you want to proceed?",
        " ❯ 1. Yes",
        "   2. Yes, and don't ask again for",
        "      touch commands in /home/dev/par",
        "      cels",
        "   3. No, and tell Claude what to do",
        "      differently (esc)",
    ]
    seen = read("claude", *lines)
    assert seen.state == WAITING
    assert len(seen.asked.options) == 3


def test_codex_had_its_options_side_by_side_once():
    lines = ["? Codex wants to run touch label.txt", "", "▌Allow command?", "▌ Yes   Always   No, provide feedback"]
    seen = read("codex", *lines, "▌ Approve and run the command")
    assert (seen.state, seen.asked.summary) == (WAITING, "touch label.txt")
    assert seen.asked.options == ("Yes", "Always", "No, provide feedback")


def test_a_form_of_an_mcp_server_waits_for_input():
    form = [
        "  MCP server “post” requests your input",
        "  Which colour?",
        "",
        "  ❯ * Colour: Type something…",
        "    Accept    Decline",
    ]
    assert (
        read("claude", "● I will use a tool.", RULE, *form, "", "  Esc to cancel · ↑/↓ to navigate").state
        == "waiting_input"
    )
    assert read("claude", "● MCP server “post” requests your input", "", *claude_prompt()).state == "idle"


def test_nothing_known_is_unknown_and_never_idle():
    for agent in ("claude", "codex", "gemini", "copilot", "cursor"):
        for lines in ([], [""] * 20, ["half a line of an ans"], [RULE, "│", RULE], ["❯"]):
            if not (agent == "codex" and lines == ["❯"]):
                assert read(agent, *lines).state == "unknown", (agent, lines)


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot", "cursor"])
def test_no_cut_of_a_dialog_is_taken_for_an_idle_prompt(agent):
    """A capture taken half-way through a redraw shows a part of it."""
    dialog = codex_dialog() if agent == "codex" else claude_dialog()
    for start in range(len(dialog)):
        for end in range(start + 1, len(dialog) + 1):
            assert read(agent, *dialog[start:end]).state in (WAITING, "waiting_input", "unknown"), dialog[start:end]
