"""A screen is painted for the terminal it is on."""

import pytest

from agtmux.demo.scenes import load_scenes
from agtmux.demo.screens import Look, paint

SCENES = load_scenes()
LOOKS = [Look(scene, step, 7) for scene in SCENES for step in scene.steps]


@pytest.mark.parametrize(("width", "height"), [(120, 36), (40, 12), (5, 3), (1, 1)])
def test_it_never_paints_more_rows_than_there_are(width, height):
    for look in LOOKS:
        frame = paint(look, width, height)
        assert len(frame.lines) <= height
        assert frame.cursor is None or (frame.cursor[0] < height and 0 <= frame.cursor[1] < width)


def test_a_dialog_stays_in_view_when_rows_are_few():
    look = next(look for look in LOOKS if look.step.screen == "approval")
    assert look.step.options[-1] in "\n".join(paint(look, 80, 5).as_text())


def test_the_cursor_stands_after_what_is_typed():
    look = next(look for look in LOOKS if look.step.screen == "prompt")
    frame = paint(Look(look.scene, look.step, typed="hello"), 120, 36)
    row, column = frame.cursor
    assert frame.as_text()[row][:column].endswith("hello")


def test_the_end_of_a_long_text_is_what_shows():
    look = next(look for look in LOOKS if look.step.screen == "prompt")
    frame = paint(Look(look.scene, look.step, typed="x" * 500 + "end"), 60, 36)
    assert any("end" in line for line in frame.as_text())
    assert max(map(len, frame.as_text()[2:-1])) <= 120


def test_a_busy_line_moves_from_second_to_second():
    look = next(look for look in LOOKS if look.step.screen == "busy")
    frames = {tuple(paint(Look(look.scene, look.step, second), 120, 36).as_text()) for second in range(3)}
    assert len(frames) == 3
