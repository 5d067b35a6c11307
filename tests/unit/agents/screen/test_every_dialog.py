"""Every recorded screen once more, as another pane would show it: lower, with fewer colours, in a pager."""

import importlib.util
import re
from pathlib import Path

import pytest

from unit.screens import registry

FILE = Path(__file__).parents[3] / "corpus" / "scoreboard.py"
spec = importlib.util.spec_from_file_location("scoreboard", FILE)
scoreboard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scoreboard)

LOOK = re.compile(r"\x1b\[[0-9;:]*m")
TRUE_COLOUR = re.compile(r"([34]8)[;:]2[;:](\d+)[;:](\d+)[;:](\d+)")
HEIGHTS = (5, 6, 7, 8, 10, 12, 15, 20, 30)


@pytest.fixture(scope="module")
def cases():
    return scoreboard.cases()


@pytest.fixture(scope="module")
def waiting(cases):
    return [case for case in cases if case.label["state"] in scoreboard.WAITING]


def test_no_dialog_in_a_lower_pane_is_taken_for_anything_else(waiting):
    """Its upper rows are out of sight. What is left may say too little, but nothing that is not so."""
    wrong, tried = [], 0
    for case in waiting:
        for height, screen in _lower(case):
            seen = registry().read_screen(case.agent, screen, command=case.label["command"])
            tried += 1
            if seen.state not in (*scoreboard.WAITING, "unknown"):
                wrong.append(f"{case} in {height} rows: {seen.state} by {seen.evidence}")
    assert tried >= 3_000
    assert wrong == []


def test_most_dialogs_are_known_in_a_lower_pane(waiting):
    """By the words at their end, their options, or what a box has left of it."""
    read = [
        registry().read_screen(case.agent, screen, command=case.label["command"]).state in scoreboard.WAITING
        for case in waiting
        for height, screen in _lower(case)
        if height >= 10
    ]
    assert sum(read) >= 0.97 * len(read)


@pytest.mark.parametrize("command", ["less", "more", "man", "bat", "vim", "vi", "nvim", "nano", "emacs", "tail", "git"])
def test_a_saved_dialog_in_a_pager_or_an_editor_is_no_wait(waiting, command):
    for case in waiting:
        seen = registry().read_screen(case.agent, case.screen, title=case.label["title"], command=command)
        assert (seen.state, seen.reason_code) == ("unknown", "other_program"), case


def test_an_agent_that_is_known_to_run_is_read_whatever_its_command_is_called(waiting):
    """A user's script may be called as an editor is."""
    case = waiting[0]
    seen = registry().read_screen(case.agent, case.screen, command="view", is_alive=True)
    assert seen.state in scoreboard.WAITING


def test_a_terminal_with_256_colours_shows_the_same(cases):
    """The colours of the recording, each as the nearest that such a terminal has."""
    tried = 0
    for case in cases:
        screen = TRUE_COLOUR.sub(_nearest, case.screen)
        if screen == case.screen:
            continue
        tried += 1
        title, command = case.label["title"], case.label["command"]
        was = registry().read_screen(case.agent, case.screen, title=title, command=command)
        seen = registry().read_screen(case.agent, screen, title=title, command=command)
        assert (seen.state, seen.composer) == (was.state, was.composer), case
    assert tried >= 100


def _lower(case):
    """The last rows of the screen, for each of some heights, with the look that lasts from above."""
    lines = case.screen.rstrip("\n").split("\n")
    while lines and not LOOK.sub("", lines[-1]).strip():
        lines.pop()
    for height in HEIGHTS:
        if height < len(lines):
            lasting = "".join(LOOK.findall("\n".join(lines[:-height]))[-6:])
            yield height, lasting + "\n".join(lines[-height:]) + "\n"


def _nearest(found: re.Match[str]) -> str:
    red, green, blue = (int(part) for part in found.groups()[1:])
    if max(red, green, blue) - min(red, green, blue) < 8:
        grey = round((red + green + blue) / 3)
        return f"{found[1]};5;{16 if grey < 8 else 231 if grey > 247 else 232 + min((grey - 8) // 10, 23)}"
    steps = [0 if part < 48 else 1 if part < 115 else (part - 35) // 40 for part in (red, green, blue)]
    return f"{found[1]};5;{16 + 36 * steps[0] + 6 * steps[1] + steps[2]}"
