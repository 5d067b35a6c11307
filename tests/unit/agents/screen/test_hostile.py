"""Screens that nobody draws but to do harm: they are read as any other, and as soon."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.agents.screen.capture import read_capture
from unit.screens import BOLD, OFF, RULE, claude_dialog, claude_prompt, codex_dialog, gemini_prompt, registry

AGENTS = ["claude", "codex", "copilot", "cursor", "gemini"]
CODEX_PROMPT = [f"{BOLD}›{OFF} ", "", "  ~/parcels"]
# What patterns begin with or repeat; a line of nothing else has them begin again at every column.
REPEATED = [
    "1 a ", "a@a", "~/", "· 1 a ", " (1s", "(esc to cancel, 1m", "⏎ send Ctrl+C quit ", "❯ 1. a ", "▌Yes  No ",
    "? ", "─", "esc · ", "(esc n", "enter accept ", "x.y ", " ", "\x1b[1ma\x1b[0m", "\x1b[38;2;1;2;3ma",
]  # fmt: skip
MOST_SECONDS = 0.15


def around(line: str) -> list[str]:
    """Such lines in every place of a screen, 400 of them."""
    begun = [f"{sign}{line}" for sign in ("", "> ", "• ", "* ", "● ", "  ⎿ ", "Killed", "◎ ", "↑/↓ ")]
    above, below = (begun * 50)[:380], [line] * 15
    dialog = [RULE, *([line] * 50), " ❯ 1. Yes", "   2. No", *([line] * 12)]
    prompts = (claude_prompt(), CODEX_PROMPT, gemini_prompt())
    return ["\n".join(lines) for prompt in prompts for lines in ([*above, *prompt], [*prompt, *below])] + [
        "\n".join(above),
        "\n".join([*above[:330], *dialog]),
        "\n".join([f" ❯ 1. {line}", f"   2. {line}"] * 200),
    ]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("repeated", REPEATED)
def test_no_screen_takes_long(agent, repeated):
    for screen in around(repeated * (600 // len(repeated))):
        assert least_seconds(agent, screen) <= MOST_SECONDS, screen[:80]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_larger_than_any_screen_takes_no_longer(agent):
    prompt = "\n".join(claude_prompt())
    for screen in (prompt + "1 a " * 50_000, "a@" + "a" * 200_000, "\n" * 200_000, "a\n" * 100_000, "\x1b[" * 100_000):
        assert least_seconds(agent, screen) <= MOST_SECONDS, screen[:80]


def least_seconds(agent: str, screen: str) -> float:
    """Of a few tries, so that what else the machine does counts little."""
    least = float("inf")
    for _ in range(3):
        begun = time.process_time()
        registry().read_screen(agent, screen)
        least = min(least, time.process_time() - begun)
        if least <= MOST_SECONDS:
            break
    return least


def test_what_is_live_is_what_is_left_of_a_screen_that_is_too_large():
    for above in ("x" * 1_000 + "\n", "\n", f"{BOLD}x{OFF}" * 40 + "\n"):
        screen = above * 2_000 + "\n".join(claude_dialog())
        assert registry().read_screen("claude", screen).state == "waiting_approval"
    assert registry().read_screen("claude", OFF + "\n".join(claude_dialog()) + "\n" * 900).state == "waiting_approval"


def test_numbers_that_no_look_has_change_none():
    for odd in ("9" * 5_000, "1" * 300, "38;5;" + "9" * 50, ";" * 5_000, "38", "38;2", "48;2;1", ":::"):
        line = read_capture(f"\x1b[{odd}mlabel").lines[0]
        assert line.text == "label"
        assert not line.look_at(0).bold


PIECES = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(), max_size=20),
    st.text(alphabet="\x1b[];:0123456789mKH?\x07\\\x0e", max_size=30),
    st.sampled_from(
        [
            RULE,
            "❯ ",
            "› ",
            "▌",
            "│ ",
            "╭",
            "╰",
            " ❯ 1. ",
            "   2. ",
            "Yes",
            "No",
            "Killed\n",
            "dev@host$ ",
            "⎿ ",
            "● ",
            "\ud800",
        ]
    ),
    st.sampled_from([*claude_dialog(), *codex_dialog(), *claude_prompt(), *gemini_prompt()]),
)


@settings(deadline=2_000)
@given(
    st.sampled_from(AGENTS),
    st.lists(st.tuples(PIECES, st.sampled_from(["", "\n"])), max_size=60),
    st.text(max_size=20),
)
def test_nothing_that_is_drawn_raises(agent, pieces, title):
    screen = "".join(part for piece in pieces for part in piece)
    seen = registry().read_screen(agent, screen, title=title)
    assert len(seen.evidence) <= 5
    assert all(len(line) <= 60 * 600 for line in seen.evidence)
    if seen.asked is not None:
        assert len(seen.asked.summary) <= 200
        assert len(seen.asked.detail) <= 2_000


def test_half_a_character_in_a_dialog_is_part_of_its_name():
    halves = [registry().read_screen("claude", "\n".join(claude_dialog(f"echo {half}"))) for half in "\ud800\ud801"]
    assert len({seen.asked.fingerprint for seen in halves}) == 2
