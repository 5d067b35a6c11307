"""A scene goes on by itself, and answers whoever tries it."""

import pytest

from agtmux.demo.play import Play
from agtmux.demo.scenes import load_scenes

SCENES = load_scenes()
SCENE = {scene.name: scene for scene in SCENES}


def play_to(name: str, screen: str) -> tuple[Play, float]:
    """A play that has just reached a step with that screen, and the time by then."""
    now = 0.0
    play = Play(SCENE[name], now)
    while play.step.screen != screen:
        now += play.step.hold
        play.pass_time(now)
        assert now < 1_000, f"{name} has no {screen}"
    return play, now


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_it_goes_round_its_steps(scene):
    now = 0.0
    play = Play(scene, now)
    for step in (*scene.steps, *scene.steps):
        assert play.step is step
        play.pass_time(now + step.hold - 0.01)
        assert play.step is step
        now += step.hold
        play.pass_time(now)


def test_a_busy_line_turns_once_a_second_and_nothing_else_wakes_it():
    play, now = play_to("checkout", "busy")
    assert play.pause(now + 0.25) == pytest.approx(0.75)
    assert [play.look(now + seconds).seconds for seconds in (0.9, 1.0, 2.5)] == [0, 1, 2]
    play, now = play_to("checkout", "prompt")
    assert play.pause(now) == play.step.hold


@pytest.mark.parametrize("key", ["1", "2", "y", "\r"])
def test_yes_goes_on(key):
    play, now = play_to("tests", "approval")
    play.press(key, now)
    assert play.step is SCENE["tests"].steps[1]


@pytest.mark.parametrize("key", ["3", "n", "\x1b", "\x03"])
def test_no_leads_to_the_prompt(key):
    play, now = play_to("tests", "approval")
    play.press(key, now)
    assert play.step is SCENE["tests"].manner.stopped


@pytest.mark.parametrize("key", ["4", "0", "x", "\x1b[A", "\x1bOB", "\x1b[200~1\n\x1b[201~", "²"])
def test_other_keys_answer_nothing(key):
    play, now = play_to("tests", "approval")
    play.press(key, now)
    assert play.step is SCENE["tests"].steps[0]


def test_the_last_choice_of_a_question_is_an_answer_like_the_others():
    play, now = play_to("handbook", "question")
    play.press("3", now)
    assert play.step is SCENE["handbook"].steps[1]


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_a_turn_can_be_interrupted(key):
    play, now = play_to("checkout", "busy")
    play.press(key, now)
    assert play.step is SCENE["checkout"].manner.stopped


def test_what_is_typed_becomes_a_turn():
    play, now = play_to("metrics", "prompt")
    play.press("hellp\x7fo {typed}", now)
    assert play.look(now).typed == "hello {typed}"
    play.press("\r", now)
    assert (play.step.screen, play.step.payload["prompt"]) == ("busy", "hello {typed}")
    now += play.step.hold
    play.pass_time(now)
    assert play.step.screen == "prompt"
    assert play.look(now).typed == ""


def test_enter_on_nothing_starts_nothing():
    play, now = play_to("metrics", "prompt")
    play.press("  \r\r", now)
    assert play.step is SCENE["metrics"].steps[0]


def test_a_pasted_line_end_does_not_send():
    play, now = play_to("metrics", "prompt")
    play.press("\x1b[200~one\ntwo\r\x1b[201~", now)
    assert play.look(now).typed == "one two "


def test_typed_control_characters_never_reach_the_title():
    play, now = play_to("metrics", "prompt")
    play.press("a\x07\x9b2J\x1b]b\r", now)
    assert play.step.title.isprintable()


def test_whoever_types_is_given_time():
    play, now = play_to("metrics", "prompt")
    late = now + play.step.hold - 1
    play.press("h", late)
    play.pass_time(late + 20)
    assert play.look(late + 20).typed == "h"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_after_an_interruption_the_script_rests_or_begins_a_new_turn(scene):
    for number in range(len(scene.steps)):
        now = 0.0
        play = Play(scene, now)
        for _ in range(number):
            now += play.step.hold
            play.pass_time(now)
        play.press("\x1b" if play.step.screen not in ("prompt", "error") else "hello\r", now)
        before = None
        while play.step not in scene.steps:
            before = play.step
            now += play.step.hold
            play.pass_time(now)
        assert before is not None
        assert before.screen == "prompt"
        assert play.step.screen == "prompt" or play.step.lines[0].startswith(">")
