"""The script of the demo speaks the agents' own language and shows everything there is to see."""

import json
import re
from dataclasses import replace

import pytest

from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.demo.play import Play
from agtmux.demo.scenes import Scene, Step, load_scenes
from agtmux.demo.screens import Look, paint
from agtmux.domain.events import request
from agtmux.domain.states import NEEDS_ACTION, Reason, State
from agtmux.engine.questions import is_one

REGISTRY = Registry.load()
SCENES = load_scenes()
# What is painted → the states that an agent may report while it looks like that.
TOLD = {
    "busy": {State.RUNNING},
    "approval": {State.WAITING_APPROVAL},
    "question": {State.WAITING_INPUT},
    "error": {State.ERROR},
    "prompt": {State.COMPLETED, State.IDLE},
}
STEPS = [
    pytest.param(scene, step, id=f"{scene.name}-{number}")
    for scene in SCENES
    for number, step in enumerate((*scene.steps, scene.manner.stopped, *scene.manner.turn))
]


def told(scene: Scene, step: Step):
    """What the daemon would make of the step's report; None where there is no report."""
    if step.event is None:
        return None
    payload = json.loads(json.dumps(step.payload))
    verdict = REGISTRY.read_hook(scene.agent_type, step.event, payload)[1]
    assert verdict is not None, f"{step.event} means nothing"
    return verdict


def first_state(scene: Scene) -> State:
    verdict = told(scene, scene.steps[0])
    return State.UNKNOWN if verdict is None else verdict.state


def test_the_first_steps_show_every_state():
    assert {first_state(scene) for scene in SCENES} == set(State)


def test_the_first_picture_stays_long_enough_to_be_looked_at():
    assert min(scene.steps[0].hold for scene in SCENES) >= 20


def test_every_agent_plays_a_part():
    assert {scene.agent_type for scene in SCENES} == set(REGISTRY.agent_types)


def test_there_are_seven_panes_in_several_windows_of_two_sessions():
    assert len(SCENES) >= 7
    assert len({(scene.session, scene.window) for scene in SCENES}) > 2
    assert len({scene.session for scene in SCENES}) == 2
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_the_one_who_reports_nothing_never_does():
    silent = [scene for scene in SCENES if scene.steps[0].event is None]
    assert len(silent) == 1
    manner = silent[0].manner
    assert all(step.event is None for step in (*silent[0].steps, manner.stopped, *manner.turn))


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_report_is_known_and_says_what_the_screen_shows(scene, step):
    verdict = told(scene, step)
    if verdict is not None:
        assert verdict.reason_code != Reason.UNSUPPORTED_SIGNAL
        assert verdict.state in TOLD[step.screen]


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_report_that_needs_someone_carries_the_question_on_the_screen(scene, step):
    verdict = told(scene, step)
    if verdict is None or verdict.state not in NEEDS_ACTION:
        return
    assert verdict.attention is not None
    screen = "\n".join(paint(Look(scene, step), 120, 36).as_text())
    # A report names a file by its path, and a screen by its name; the lines of a plan are one in a summary.
    shown = " ".join(screen.split())
    assert str(verdict.attention.summary).rpartition("/")[2].removesuffix("…") in shown
    assert all(str(option) in screen for option in verdict.attention.options)


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_plan_is_reported_with_all_that_its_screen_shows_of_it(scene, step):
    """The board offers Approve beside what was reported."""
    verdict = told(scene, step)
    if verdict is None or verdict.attention is None or verdict.attention.kind != "plan":
        return
    steps = [line.strip() for line in step.lines if re.match(r"  \d\.", line)]
    assert steps and all(line in str(verdict.attention.detail) for line in steps)


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_dialog_can_be_answered_from_elsewhere(scene, step):
    """By a key that the daemon knows the meaning of, after which the screen is one that it can read."""
    if step.screen != "approval":
        return
    footing = REGISTRY.footing(scene.agent_type, Glance(captured(scene, step), step.title, is_alive=True, width=120))
    assert footing.reading.seen.state is State.WAITING_APPROVAL
    assert footing.reading.seen.asked.is_whole
    verdict = told(scene, step)
    seen = REGISTRY.read_screen(scene.agent_type, captured(scene, step), title=step.title, is_alive=True).asked
    shown = request(seen.kind, seen.summary, seen.detail, incomplete=seen.incomplete, subject=seen.subject)
    # No key is pressed where the report and the screen are two requests.
    assert verdict is None or is_one(verdict.attention, shown)
    assert footing.replies.approve is not None and footing.replies.deny is not None
    at = scene.steps.index(step)
    play = Play(replace(scene, steps=scene.steps[at:] + scene.steps[:at]), 0.0)
    play.press(footing.replies.approve, 1.0)
    after = REGISTRY.read_screen(scene.agent_type, captured(scene, play.step), title=play.step.title)
    assert play.step is not step
    assert after.state in (State.RUNNING, State.IDLE, State.COMPLETED, State.ERROR)


SHOWN = {"busy": {"running"}, "approval": {"waiting_approval"}, "question": {"waiting_input"}, "error": {"error"}}


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_screen_is_read_as_what_it_is(scene, step):
    for seconds in range(4):
        screen = captured(scene, step, seconds)
        seen = REGISTRY.read_screen(scene.agent_type, screen, title=step.title, is_alive=True)
        assert seen.state.value in SHOWN.get(step.screen, {"idle", "completed"}), screen
        if step.screen == "approval":
            # What a yes would be for, and not why.
            assert seen.asked is not None
            assert not step.subject or step.subject[0] in seen.asked.summary, seen.asked


def captured(scene: Scene, step: Step, seconds: int = 0) -> str:
    """As tmux would have it, without what moves the cursor."""
    painted = paint(Look(scene, step, seconds), 120, 36).as_ansi()
    return re.sub(r"\x1b\[[0-9;?]*[A-Zhl]", "", painted).replace("\r\n", "\n")


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_screen_fits_its_pane(scene, step):
    sharing = sum((other.session, other.window) == (scene.session, scene.window) for other in SCENES)
    lines = paint(Look(scene, step), 120, 1_000).as_text()
    # One row a pane goes to the line between them.
    assert len(lines) <= 36 // sharing - 1
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(("scene", "step"), STEPS)
def test_a_step_is_calm_but_alive(scene, step):
    assert 5 <= step.hold <= 40
    assert step.title and step.title.isprintable()


def test_scenes_do_not_move_in_step():
    assert len({sum(step.hold for step in scene.steps) for scene in SCENES}) == len(SCENES)
