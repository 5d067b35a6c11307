"""What a key would meet: the lines that hold it there, and whether a prompt holds just what was typed."""

import pytest

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.capture import read_capture
from corpus.scoreboard import cases

REGISTRY = Registry.load()
CASES = cases()
RULE = "─" * 40


def footing(agent: str, *lines: str):
    return REGISTRY.footing(agent, Glance("\n".join(lines) + "\n"))


def test_every_recorded_prompt_and_list_can_be_held():
    checked = 0
    for case in CASES:
        found = REGISTRY.footing(case.agent, Glance(case.screen, case.label["title"], case.label["command"]))
        lines = [line.text for line in read_capture(case.screen).lines]
        for anchor in found.hold.anchors:
            assert lines[anchor.number - 1] == anchor.text and lines.count(anchor.text) == 1, case
        if found.reading.seen.composer != "none":
            assert found.hold.anchors, case
            checked += 1
    assert checked > 1_000


def test_a_prompt_like_one_that_was_sent_is_held_by_what_is_below():
    found = footing("claude", "❯ again", "● Done.", RULE, "❯ again", RULE, "  ? for shortcuts")
    assert [(anchor.number, anchor.text) for anchor in found.hold.anchors] == [(6, "  ? for shortcuts")]
    # And by there being no dialog.
    assert found.hold.absent
    quoted = footing("claude", "❯ again", " ❯ 1. Yes", RULE, "❯ again", RULE, "  ? for shortcuts")
    assert not quoted.hold.anchors and not quoted.hold.absent


def test_a_dialog_is_held_by_its_options_and_what_they_are_about():
    found = footing("claude", RULE, " Bash command", "", "   touch a", "", " Proceed?", " ❯ 1. Yes", "   2. No")
    assert {anchor.text.strip() for anchor in found.hold.anchors} >= {"❯ 1. Yes", "2. No", "Proceed?", "touch a"}
    assert found.hold.is_whole
    # What another dialog of its kind has instead is compared once more.
    assert [anchor.text.strip() for anchor in found.hold.telling] == ["touch a", "Bash command"]


def test_a_dialog_whose_words_stand_elsewhere_too_is_not_held_whole():
    found = footing(
        "claude", "   touch a", RULE, " Bash command", "", "   touch a", "", " Proceed?", " ❯ 1. Yes", "   2. No"
    )
    assert not found.hold.is_whole


def test_nearly_every_recorded_dialog_is_held_whole():
    dialogs = [case for case in CASES if case.label["state"] == "waiting_approval"]
    found = [REGISTRY.footing(case.agent, Glance(case.screen, case.label["title"])) for case in dialogs]
    answerable = [each for each in found if each.replies.approve]
    assert sum(each.hold.is_whole for each in answerable) > 0.95 * len(answerable) > 300
    assert sum(bool(each.hold.telling) for each in answerable) > 0.95 * len(answerable)


@pytest.mark.parametrize(("prompt", "mode"), [("❯ hello", ""), ("! ls", "!"), ("!", "!"), ("❯ !ls", "")])
def test_the_sign_of_a_prompt_tells_its_mode(prompt: str, mode: str):
    assert footing("claude", RULE, prompt, RULE).mode == mode


@pytest.mark.parametrize(
    ("agent", "lines", "stops"),
    [
        ("gemini", ["ℹ Request cancelled.", "✦ I will use a tool.", " ⠋ Thinking... (esc to cancel, 0s)"], 1),
        ("gemini", ["ℹ Request cancelled.", "> again", "ℹ Request cancelled."], 2),
        ("codex", ["✗ You canceled the request to run touch a", "■ Conversation interrupted - use /feedback"], 2),
        ("claude", ["● Interrupted is a word like any other"], 0),
        ("copilot", [" ! This permission request could no longer be answered. Please try again.", " ● Working"], 1),
    ],
)
def test_that_a_turn_was_stopped_is_counted_whatever_came_after_it(agent: str, lines: list[str], stops: int):
    assert footing(agent, *lines).stops == stops


LINES = "\n".join(f"line {number}" for number in range(200))


@pytest.mark.parametrize(
    ("agent", "draft", "mode", "text", "expected"),
    [
        ("claude", "hello there", "", "hello there", True),
        ("claude", "hello\nthere", "", "hello there", True),
        ("claude", "hello there you", "", "hello there", False),
        ("claude", "ello there", "", "hello there", False),
        ("claude", "", "", "hello", False),
        ("claude", "ls", "!", "!ls", True),
        ("claude", "ls", "!", "ls", False),
        ("claude", "!ls", "", "!ls", True),
        ("claude", "[Pasted text #1 +199 lines]", "", LINES, True),
        ("claude", "[Pasted text #12 +199 lines]", "", LINES, True),
        ("claude", "[Pasted text #1 +198 lines]", "", LINES, False),
        ("claude", "x[Pasted text #1 +199 lines]", "", LINES, False),
        ("claude", "[Pasted text #3]", "", "x" * 2_000, True),
        ("claude", "[Pasted text #3]", "", "two\nlines", False),
        ("codex", f"[Pasted Content {len(LINES)} chars]", "", LINES, True),
        ("codex", f"[Pasted Content {len(LINES) + 1} chars]", "", LINES, False),
        ("gemini", "[Pasted Text: 200 lines]", "", LINES, True),
        ("gemini", "[Pasted Text: 700 chars]", "", "x" * 700, True),
        ("copilot", "[Paste #2 - 200 lines]", "", LINES, True),
        ("copilot", "[Saved pasted content to workspace (1.9 KB) id=1]", "", "é" * 1_000, False),
        ("copilot", "[Saved pasted content to workspace (2.0 KB) id=1]", "", "é" * 1_000, True),
        # Taller than the prompt: its end is shown.
        ("copilot", "word " * 20, "", "word " * 60, True),
        ("copilot", "word " * 3, "", "word " * 60, False),
    ],
)
def test_a_prompt_holds_just_what_was_typed(agent: str, draft: str, mode: str, text: str, expected: bool):
    assert REGISTRY.sheet(agent).typing.holds(draft, mode, text) is expected
