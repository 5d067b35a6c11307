"""Which key answers a dialog, on every dialog that was ever recorded: a yes to this alone, or nothing."""

import re

import pytest

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.agents.screen.capture import read_capture
from corpus.scoreboard import Case, cases

REGISTRY = Registry.load()
DIALOGS = [case for case in cases() if case.label["state"] == "waiting_approval"]
# Whatever of this a label has, it grants more than what is asked now, or starts the agent or ends it.
MORE = re.compile(
    r"always|again|session|all\b|auto(?!-?run)|remember|trust|future|allowlist|everything|bypass|accept edits|cloud"
    r"|clear context|exit|quit",
    re.I,
)


def footing(case: Case):
    return REGISTRY.footing(case.agent, Glance(case.screen, case.label["title"], case.label["command"]))


def label_of(case: Case, key: str) -> str:
    """The option that the key takes."""
    choice = REGISTRY.sheet(case.agent).screen.layout(read_capture(case.screen)).choice
    assert choice is not None
    if key.isdigit():
        return choice.labels[int(key) - 1]
    if key in ("Up", "Down"):
        # Enter follows where this leads to, and nowhere before it.
        rows = choice.options if key == "Down" else choice.options[::-1]
        marked = next(at for at, option in enumerate(rows) if option.is_selected)
        yes = REGISTRY.sheet(case.agent).answers
        return next(option.label for option in rows[marked:] if yes.grants_once(option.label))
    if key == "Enter":
        return next(option.label for option in choice.options if option.is_selected)
    return next(label for label in choice.labels if f"({key})" in label)


def test_no_yes_grants_more_than_what_is_asked():
    granted = {(case.agent, label_of(case, key)) for case in DIALOGS if (key := footing(case).replies.approve)}
    assert len(granted) > 15
    for agent, label in granted:
        assert not MORE.search(re.sub(r"\s{2,}.*", "", label)), (agent, label)


def test_nothing_before_the_first_turn_is_answered_and_everything_usual_is():
    for case in DIALOGS:
        replies = footing(case).replies
        if case.name.startswith("startup"):
            assert replies.approve is None, case
        elif re.match(r"approval-(?:bash|edit|change|fetch|mcp)-\d", case.name):
            choice = REGISTRY.sheet(case.agent).screen.layout(read_capture(case.screen)).choice
            is_whole = choice is not None and choice.top >= 0 and len(choice.options) > 1
            assert not is_whole or replies.approve is not None, case
            assert not is_whole or replies.deny is not None, case


def dialog(*options: str, marked: int = 0) -> str:
    lines = ["─" * 40, " Bash command", "", "   touch label.txt", "", " Do you want to proceed?"]
    lines += [f" {'❯' if at == marked else ' '} {option}" for at, option in enumerate(options)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("1. Yes", "2. No"), ("1", "Escape")),
        (("1. No", "2. Yes"), ("2", "Escape")),
        (("1. Yes, and don't ask again", "2. Yes", "3. No"), ("2", "Escape")),
        # Two that look right may differ in what was cut off.
        (("1. Yes", "2. Yes", "3. No"), (None, "Escape")),
        (("1. Yes, and don't ask again", "2. No"), (None, "Escape")),
        (("1. Yes, I trust this folder", "2. No, exit"), (None, None)),
        (("1. Yes", "2. No (recommended)"), (None, None)),
        (("1. Yes please", "2. No"), (None, "Escape")),
        (("1. Yes, proceed", "2. No, exit"), (None, None)),
    ],
)
def test_a_label_has_to_be_known_whole(options: tuple[str, ...], expected: tuple[str | None, str | None]):
    replies = REGISTRY.footing("claude", Glance(dialog(*options))).replies
    assert (replies.approve, replies.deny) == expected


def test_without_numbers_it_is_the_key_that_the_label_names_or_enter_on_what_is_marked():
    run = "\n".join(["$ touch label.txt in .", "Run this command?", " → Run (once) (y)", "   Skip (esc or n)"])
    assert REGISTRY.footing("cursor", Glance(run)).replies.approve == "y"
    screen = dialog("Yes", "No", marked=0)
    assert REGISTRY.footing("claude", Glance(screen)).replies.approve == "Enter"


def test_without_numbers_the_mark_is_first_moved_to_the_yes_where_arrow_keys_are_known_to():
    for labels, marked, expected in (
        (("Yes", "No"), 0, ("Enter", False)),
        (("Yes", "No"), 1, ("Up", True)),
        (("No", "Yes"), 0, ("Down", True)),
        (("No", "Yes, and don't ask again"), 0, (None, False)),
        (("Yes", "No", "Yes"), 1, (None, False)),
    ):
        replies = REGISTRY.footing("claude", Glance(dialog(*labels, marked=marked))).replies
        assert (replies.approve, replies.is_move) == expected, labels
    cursor = "\n".join(["$ touch label.txt in .", "Run this command?", "   Proceed", " → Skip (esc or n)"])
    assert not REGISTRY.footing("cursor", Glance(cursor)).replies.is_move


def test_a_prompt_has_no_answer():
    screen = f"{'─' * 40}\n❯ 1. Yes\n{'─' * 40}\n"
    assert REGISTRY.footing("claude", Glance(screen)).replies.approve is None
