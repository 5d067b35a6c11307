"""What a dialog shows was said by nobody: no recorded dialog becomes a turn of a conversation, or a part of one."""

import re
from collections import Counter

import pytest

from agtmux.agents.screen.said import content, long_content, read_turns
from unit.agents.test_corpus import scoreboard
from unit.screens import registry

# What may stand before an option's words.
_MARK = re.compile(r"^(?:\d+[.)] |[❯›>●▶▸→»◉➤•◯○] ?|\[.\] )*")
# What the scripted model is asked to do is in the prompts, word by word.
_SCRIPTED = "do:"


@pytest.fixture(scope="module")
def dialogs():
    waiting = [case for case in scoreboard.cases() if case.label["state"] in scoreboard.WAITING]
    return [case for case in waiting if registry().sheet(case.agent).spoken.is_known]


def lines_said(case, screen: str, read) -> list[str]:
    """Every line of every turn that is read out of that screen, without its mark."""
    sheet = registry().sheet(case.agent)
    turns = read_turns(sheet.screen, sheet.spoken, *read(sheet.screen, screen))
    texts = [text for turn in turns for text in (turn.prompt, turn.answer) if _SCRIPTED not in text]
    scripted = [turn.prompt.split("}}")[-1] for turn in turns if _SCRIPTED in turn.prompt]
    return [_MARK.sub("", line.strip()) for text in (*texts, *scripted) for line in text.split("\n") if line.strip()]


def test_there_are_dialogs_of_every_agent_whose_conversation_is_read(dialogs) -> None:
    found = Counter(case.agent for case in dialogs)
    assert set(found) == {"claude", "codex", "copilot", "gemini"}
    assert min(found.values()) >= 50


@pytest.mark.parametrize("read", [content, long_content])
def test_no_line_of_a_dialog_is_a_line_of_a_turn(dialogs, read) -> None:
    taken = []
    for case in dialogs:
        asked = registry().read_screen(case.agent, case.screen, title=case.label["title"]).asked
        # A plan is what the agent has said; its dialog only asks about it.
        detail = "" if asked.kind == "plan" else asked.detail
        shown = {*asked.options, *(each.strip() for each in detail.split("\n") if len(each) > 12)}
        wrong = [line for line in lines_said(case, case.screen, read) if line in shown]
        taken += [f"{case}: {wrong[:2]}"] if wrong else []
    assert taken == []


def test_no_dialog_is_taken_for_the_last_prompt_below_a_long_conversation(dialogs) -> None:
    """As after a restart, when all that has scrolled away is read as well."""
    for case in dialogs:
        sheet = registry().sheet(case.agent)
        said = read_turns(sheet.screen, sheet.spoken, *content(sheet.screen, case.screen))
        above = "\n".join(f"line {number} of what was said before" for number in range(300))
        again = read_turns(sheet.screen, sheet.spoken, *long_content(sheet.screen, f"{above}\n{case.screen}"))
        assert [turn.prompt for turn in again] == [turn.prompt for turn in said], str(case)
