"""The screen rules against every recorded screen of the real agents."""

import importlib.util
import re
from pathlib import Path

import pytest

from agtmux.agents.screen.capture import read_capture
from unit.screens import registry

FILE = Path(__file__).parents[2] / "corpus" / "scoreboard.py"
spec = importlib.util.spec_from_file_location("scoreboard", FILE)
scoreboard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scoreboard)

# What menus of the user's own are called, and what they say.
MENUS = {
    "claude": ["Manage", "Resume", "Memory", "Settings", "Select model", "Type to search"],
    "codex": ["Update the data model", "Select a mode", "Configure permissions", "q to quit", "Type to search"],
    "any": ["Search", "Type to search", "Select Theme", "Press Esc to close"],
}


@pytest.fixture(scope="module")
def judged():
    return scoreboard.judge(scoreboard.cases())


@pytest.fixture(scope="module")
def plain():
    return scoreboard.judge(scoreboard.cases(), plain=True)


def test_there_is_enough_to_judge_by(judged):
    assert len(judged) >= 2_000
    for agent in ("claude", "codex", "copilot", "gemini"):
        mine = [each.case for each in judged if each.case.agent == agent]
        assert len({case.version for case in mine}) >= 8, agent
        assert {case.label["width"] for case in mine} >= {60, 80, 120, 200}, agent


@pytest.mark.parametrize("how", ["judged", "plain"])
def test_no_waiting_pane_is_shown_as_anything_else_and_none_is_shown_waiting_that_does_not(how, request):
    judged = request.getfixturevalue(how)
    assert [f"{each.case}: {each.seen.state}" for each in judged if each.is_dangerous] == []


def test_nearly_every_screen_is_read_right(judged):
    wrong = [each for each in judged if not each.is_right]
    assert len(wrong) <= 0.01 * len(judged), "\n".join(f"{each.case}: {each.seen.state}" for each in wrong)


def test_what_is_wrong_is_not_said_with_confidence(judged):
    assert [str(each.case) for each in judged if not each.is_right and each.seen.confidence == "high"] == []


def test_hardly_ever_is_nothing_said(judged, plain):
    for how in (judged, plain):
        assert sum(each.is_unknown for each in how) <= 0.01 * len(how)


def test_without_colours_nearly_as_much_is_read_right(plain):
    assert sum(each.is_right for each in plain) >= 0.98 * len(plain)
    assert {each.seen.confidence.value for each in plain if each.seen.reason_code != "agent_gone"} <= {"medium", "low"}


def test_no_words_of_the_models_make_a_menu_of_a_dialog(judged):
    """A command, its description and the question are the model's, and may begin as a menu's name does."""
    hidden, tried = [], 0
    for each in judged:
        if each.case.label["state"] not in scoreboard.WAITING:
            continue
        for screen in _renamed(each.case):
            seen = registry().read_screen(each.case.agent, screen)
            tried += 1
            if seen.state not in scoreboard.WAITING:
                hidden.append(f"{each.case}: {seen.state} by {seen.evidence}")
    assert tried >= 5_000
    assert hidden == []


def test_what_a_waiting_agent_asks_is_told(judged):
    waiting = [each for each in judged if each.case.label["state"] in scoreboard.WAITING and each.is_right]
    assert [str(each.case) for each in waiting if each.seen.asked is None] == []


def test_it_is_told_by_what_it_is_about_and_with_its_options(judged):
    """Labels have a part of the summary, and what options begin with. What a low pane hides cannot be told."""
    labelled = [each for each in judged if each.seen.asked is not None and each.case.label["attention"]]
    unnamed = [each for each in labelled if _shows(each) and not _names(each)]
    assert len(unnamed) <= 0.05 * len(labelled), "\n".join(
        f"{each.case}: {each.seen.asked.summary}" for each in unnamed
    )
    other = [each for each in labelled if not _offers(each)]
    assert len(other) <= 0.02 * len(labelled), "\n".join(f"{each.case}: {each.seen.asked.options}" for each in other)


def test_the_same_dialog_has_the_same_name_whichever_option_is_marked(judged):
    names = {}
    for each in judged:
        scene = re.fullmatch(r"(approval-bash|question-single)(?:-second|-last)?-(\d+x\d+)", each.case.name)
        if scene is not None and each.case.agent != "cursor" and each.seen.asked is not None:
            names.setdefault((each.case.agent, each.case.version, *scene.groups()), set()).add(
                each.seen.asked.fingerprint
            )
    assert len(names) >= 50
    assert [key for key, found in names.items() if len(found) > 1] == []


def test_a_draft_is_told_from_an_empty_prompt(judged):
    typed = [each for each in judged if each.case.label["composer"] == "draft" and each.is_right]
    assert [str(each.case) for each in typed if each.seen.composer != "draft"] == []
    empty = [each for each in judged if each.case.label["composer"] in ("empty", "suggestion") and each.is_right]
    taken = [each for each in empty if each.seen.composer == "draft"]
    # After an interrupt some agents put what was sent back into the prompt.
    assert [str(each.case) for each in taken if each.case.label["class"] != "stopped"] == []


def _renamed(case):
    """The screen with a menu's word before each line of text above its options, one at a time."""
    layout = registry().sheet(case.agent).screen.layout(read_capture(case.screen))
    if layout.choice is None:
        return
    raws = case.screen.split("\n")
    for at in range(layout.choice.top, layout.choice.options[0].line):
        line = layout.capture.lines[at]
        if line.is_blank or line.is_rule or not any(char.isalpha() for char in line.content):
            continue
        looks = "".join(re.findall(r"\x1b\[[0-9;:]*m", raws[at]))
        for word in MENUS.get(case.agent, MENUS["any"]):
            text = f"{line.text[: line.start]}{word} {line.text[line.start :]}"
            yield "\n".join((*raws[:at], text + looks, *raws[at + 1 :]))


def _shows(each) -> bool:
    return _squeezed(each.case.label["attention"]["summary"]) in _squeezed(scoreboard.without_looks(each.case.screen))


def _names(each) -> bool:
    return _squeezed(each.case.label["attention"]["summary"]) in _squeezed(each.seen.asked.summary)


def _offers(each) -> bool:
    wanted = [_squeezed(option) for option in each.case.label["attention"]["options"]]
    offered = [_squeezed(option) for option in each.seen.asked.options]
    return all(offer.startswith(want) for want, offer in zip(wanted, offered, strict=False)) and len(wanted) <= len(
        offered
    )


def _squeezed(text: str) -> str:
    return re.sub(r"[\s│]", "", text).lower()
