"""The screen rules against every recorded screen of the real agents."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "corpus" / "scoreboard.py"
spec = importlib.util.spec_from_file_location("scoreboard", FILE)
scoreboard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scoreboard)


@pytest.fixture(scope="module")
def judged():
    return scoreboard.judge(scoreboard.cases())


def test_there_is_enough_to_judge_by(judged):
    assert len(judged) >= 200
    assert {each.case.agent for each in judged} >= {"claude", "codex", "copilot", "gemini"}


def test_no_waiting_pane_is_shown_as_anything_else_and_none_is_shown_waiting_that_does_not(judged):
    assert [f"{each.case}: {each.seen.state}" for each in judged if each.is_dangerous] == []


def test_nearly_every_screen_is_read_right(judged):
    wrong = [each for each in judged if not each.is_right]
    assert len(wrong) <= 0.03 * len(judged), "\n".join(f"{each.case}: {each.seen.state}" for each in wrong)


def test_what_a_waiting_agent_asks_is_told(judged):
    waiting = [each for each in judged if each.case.label["state"] in scoreboard.WAITING and each.is_right]
    assert [str(each.case) for each in waiting if each.seen.asked is None] == []
