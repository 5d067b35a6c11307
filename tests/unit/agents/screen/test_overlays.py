"""What lies over a prompt or holds a field of its own: whose it is, and whether the agent waits for it."""

import pytest

from unit.screens import BOLD, DIM, OFF, REVERSE, RULE, claude_prompt, codex_dialog, read

CODEX_PROMPT = [f"{BOLD}›{OFF} {DIM}Ask Codex to do anything{OFF}", "", "  gpt-5 · ~/parcels"]
GROUND = "\x1b[48;5;240m"


@pytest.mark.parametrize(
    "hints", [[" enter accept · tab next · ctrl+d decline · esc cancel"], [" enter accept ·", " esc"]]
)
@pytest.mark.parametrize("typed", ["", " 12 kg"])
def test_a_field_within_a_dialog_is_no_prompt(hints, typed):
    inner = f" {'─' * 78}"
    form = [
        RULE,
        " fleet needs information.",
        " How heavy is it?",
        "",
        " Weight",
        inner,
        f" ❯{typed}",
        inner,
        "",
        *hints,
        RULE,
    ]
    for gone in range(6):
        assert read("copilot", *form[gone:]).state == "waiting_input", form[gone:]


@pytest.mark.parametrize("left", range(1, 8))
def test_a_field_just_below_its_dialog_is_no_prompt(left):
    asks = [
        RULE,
        " Copilot needs information.",
        " Which parcel?",
        "",
        "   Red",
        " ❯ Other (type your answer below)",
        "",
    ]
    lines = [*asks, " ↑/↓ select · enter accept · esc cancel", RULE, RULE, "❯ the green one", RULE]
    assert read("copilot", *lines[left:]).state == "waiting_input"
    assert read("copilot", " ● Done.", "", " ~/parcels", RULE, "❯ the green one", RULE, " / commands").state == "idle"


def test_a_list_is_the_agents_own_if_its_title_says_that_it_waits():
    opened = ["", "", "  Finish in the browser", "", "› 1. It is done", "  2. Back", "  enter select · esc close"]
    assert read("codex", *opened, title="[ ! ] Action Required | parcels").state == "waiting_input"
    assert read("codex", *opened, title="parcels").is_overlay


def test_keys_that_lead_back_to_the_prompt_mean_that_something_lies_over_it():
    for keys in ("space toggle · enter save · esc cancel", "↑/↓ to move · esc to go back", "enter select · esc back"):
        for error in ([], ["\x1b[31m■ The server fails.\x1b[39m", ""]):
            assert read("codex", "› Hello", "", *error, *CODEX_PROMPT, f"  {keys}").is_overlay, keys
    # What the keys of the prompt itself do.
    for keys in ("Enter to send · Esc to cancel", "enter insert · esc close"):
        assert read("codex", "› Hello", "• Hi", "", *CODEX_PROMPT, f"  {keys}").state == "idle", keys
    # What an answer says of keys is above the prompt.
    for agent, prompt in (("claude", claude_prompt()), ("copilot", [RULE, "❯", RULE, " / commands"])):
        answer = ["● Press one of these:", "  enter select · esc back", "  q to quit · esc", ""]
        assert read(agent, *answer, *prompt).state == "idle"


def test_help_above_the_prompt_hides_an_error_and_nothing_else():
    error = "\x1b[31m■ The server fails.\x1b[39m"
    assert read(
        "codex", "› Hello", "", error, "", "  Keyboard shortcuts", "", *CODEX_PROMPT, "  ? / esc close"
    ).is_overlay
    assert read("codex", "› Hello", "• Hi", "", *CODEX_PROMPT, "  ? / esc close").state == "idle"


def test_a_list_below_a_framed_prompt_belongs_to_it():
    prompt = [RULE, "❯", RULE, "  enter to view · x to clear"]
    assert read("claude", "● Done.", "", *prompt, "  ● main", "❯ ◯ reviewer  Look at labels").state == "idle"
    # Not if it asks, has numbers, or begins with a rule of its own.
    for asks in (["  No", "❯ Yes"], [" ❯ 1. Red", "   2. Blue"], [RULE, "  Red", "❯ Blue", "", " Enter to select"]):
        assert read("claude", "● Done.", "", *prompt[:3], *asks).state.startswith("waiting"), asks


@pytest.mark.parametrize("typed", ["Denied: use paper", "小包のラベル"])
def test_a_draft_on_a_ground_of_its_own_needs_no_true_colour(typed):
    above = ["\x1b[38;5;229mℹ Request cancelled.", f"{OFF}{DIM}{RULE}", f"{OFF} Shift+Tab to accept edits"]
    for cursor in (f"{REVERSE} ", ""):
        lines = [
            *above,
            GROUND,
            f" \x1b[38;5;183m> \x1b[38;5;231m{typed}{cursor}",
            "",
            f"{OFF} workspace  sandbox",
            " ~/parcels",
        ]
        seen = read("gemini", *lines)
        assert (seen.state, seen.draft) == ("idle", typed)
    several = [*above, GROUND, f" > {typed}", f"   and more{REVERSE} ", "", f"{OFF} workspace"]
    assert read("gemini", *several).draft == f"{typed}\nand more"


def test_what_was_sent_on_the_same_ground_is_no_prompt():
    sent = [GROUND, " \x1b[38;5;183m> \x1b[38;5;231mMake a label", "", f"{OFF}✦ I will use a tool."]
    assert read("gemini", *sent).composer == "none"
    # Nor just below the end of a box.
    assert read("gemini", f"╰{'─' * 60}╯", *sent).composer == "none"


def test_the_end_of_a_long_draft_is_a_prompt():
    scrolled = [
        "● Done.",
        "",
        "",
        f"─── ↑ 2 more {'─' * 40}",
        "  the parcels on the second shelf",
        "  one for each",
        RULE,
    ]
    seen = read("claude", *scrolled)
    assert (seen.state, seen.draft) == ("idle", "the parcels on the second shelf\none for each")


def test_one_option_in_a_low_pane_is_a_list():
    asks = [
        " ▔▔▔▔▔▔▔▔▔▔▔▔▔▔",
        "   Would you like to proceed?",
        "   ❯ 1. Yes, and use auto mode",
        "",
        "   ctrl+g to edit",
    ]
    assert read("claude", *asks).state == "waiting_approval"
    assert read("codex", "", "  Update available", "", "› 1. Update now", "↓", "  enter continue · esc skip").state == (
        "waiting_input"
    )
    # What was sent is at the edge.
    assert read("claude", "❯ 1. Yes, do it", "● Done.", "", *claude_prompt()).state == "idle"


def test_what_is_out_of_sight_is_not_said_with_confidence():
    assert read("claude", *claude_prompt()).confidence == "low"
    assert read("claude", "❯ Hello", "● Hi.", *claude_prompt()).confidence == "high"
    assert read("claude", "❯ Hello", "", "● Hi.", "", "✻ Done", *claude_prompt()).confidence == "high"


@pytest.mark.parametrize(
    "screen",
    [
        [RULE, "  Auto mode can't check actions in this session", "", "  You can stay in auto mode.", ""],
        ["  Or leave it.", "", "  Enter to stay in auto mode · shift+Tab to leave · Esc to cancel"],
        [RULE, "  MCP server “fleet” wants to open a URL", "", "  ❯ Accept    Decline", "", "  Esc to cancel"],
        ["  https://labels.invalid", "", "    Accept  ❯ Decline", "", "  Esc to cancel · ←/→ to switch"],
    ],
)
def test_what_the_agent_asks_in_place_of_its_prompt_is_no_menu(screen):
    assert read("claude", "● I will use a tool.", "", *screen).state == "waiting_input"


def test_background_work_that_has_ended_is_over():
    waiting = "✻ Waiting for 1 background agent to finish"
    assert read("claude", "● All done.", "", waiting, "", *claude_prompt()).state == "running"
    for end in ('● Agent "Look" finished · 7s', "● Background agents stopped", "✻ Brewed for 10s"):
        assert read("claude", "● All done.", "", waiting, "", end, "", *claude_prompt()).state == "idle", end


def test_a_busy_line_in_an_answer_is_a_quotation():
    done = ["", "  Worked for <1s • 13:26", ""]
    for line in ("✻ Thinking… (12s · esc to interrupt)", "Working (12s • esc to interrupt)"):
        assert read("codex", "› Hello", "", f"• {line}", *done, *CODEX_PROMPT).state == "idle", line
    assert read("codex", "› Hello", "", "• Working (12s • esc to interrupt)", "", *CODEX_PROMPT).state == "running"


def test_a_dialog_is_one_whatever_its_title_says():
    assert read("codex", *codex_dialog(), title="parcels").state == "waiting_approval"


def test_the_cursor_behind_a_text_makes_a_draft_of_it_whatever_colour_it_has():
    # tmux leaves the blank out that the cursor is drawn with.
    for colour in ("231", "240"):
        lines = [
            "✦ Done.",
            "",
            GROUND,
            f" \x1b[38;5;183m> \x1b[38;5;{colour}mprint labels{REVERSE}",
            f"{OFF}",
            " ~/parcels",
        ]
        seen = read("gemini", *lines)
        assert (seen.composer, seen.draft) == ("draft", "print labels"), colour


def test_keys_just_below_a_list_are_none_of_its_options():
    options = ["  Keymap", "  Type to search", "› Open agents", "  Open transcript"]
    seen = read("codex", "", *options, "  left/right group · enter edit · *", "  custom · esc close")
    assert (seen.state, seen.is_overlay) == ("unknown", True)
