"""The screen and the file of one agent: who counts where they differ, and what it is worth where they agree."""

import pytest

from agtmux.agents.screen.classify import Asked, Seen
from agtmux.agents.sessions import Status
from agtmux.agents.witness import FILE_COUNTS, read_both
from agtmux.domain.states import Confidence, State

# What the screen shows → what a file may say instead. Written out again: a table that tests itself is none.
COUNTS = {
    "error": "waiting_approval waiting_input",
    "waiting_approval": "",
    "waiting_input": "",
    "running": "waiting_approval waiting_input",
    "completed": "waiting_approval waiting_input running",
    "idle": "waiting_approval waiting_input running",
    "unknown": "error waiting_approval waiting_input running",
}


def seen(state: str, reason: str = "prompt", **other: object) -> Seen:
    return Seen(State(state), reason, Confidence.HIGH, ("a line",), **other)


def status(state: str, reason: str = "session_file") -> Status:
    return Status(State(state), reason, "its session file says so")


def test_the_table_knows_every_state() -> None:
    assert {state: set(FILE_COUNTS[state]) for state in State} == {
        State(name): set(map(State, COUNTS[name].split())) for name in COUNTS
    }


@pytest.mark.parametrize("shown", State)
@pytest.mark.parametrize("written", State)
def test_the_file_counts_where_the_screen_may_not_show_it_yet(shown: State, written: State) -> None:
    reading = read_both(seen(shown), status(written))
    if written in COUNTS[shown].split():
        is_doubtful = shown is State.UNKNOWN and not written.value.startswith("waiting")
        confidence = Confidence.LOW if is_doubtful else Confidence.MEDIUM
        assert (reading.seen.state, reading.seen.confidence, reading.is_by_file) == (written, confidence, True)
        assert reading.seen.evidence[0] == "its session file says so"
    else:
        assert (reading.seen.state, reading.is_by_file) == (shown, False)


def test_a_dialog_on_the_screen_stands_whatever_the_file_says() -> None:
    asked = Asked("approval", "rm -rf build", "", ("Yes", "No"), 0, "f")
    for written in State:
        reading = read_both(seen("waiting_approval", "dialog", asked=asked), status(written))
        assert (reading.seen.state, reading.seen.asked) == (State.WAITING_APPROVAL, asked)


def test_a_menu_in_front_is_seen_through() -> None:
    overlay = seen("unknown", "overlay", is_overlay=True)
    assert read_both(overlay, None).seen.is_overlay
    reading = read_both(overlay, status("running"))
    assert (reading.seen.state, reading.seen.is_overlay) == (State.RUNNING, False)


@pytest.mark.parametrize("written", [state for state in State if state is not State.UNKNOWN])
def test_whatever_the_file_says_counts_behind_a_menu(written: State) -> None:
    reading = read_both(seen("unknown", "overlay", is_overlay=True), status(written))
    assert (reading.seen.state, reading.seen.confidence) == (written, Confidence.MEDIUM)


@pytest.mark.parametrize(
    ("shown", "written", "confirmed"),
    [
        ("idle", "idle", True),
        ("idle", "completed", True),
        ("error", "idle", True),
        ("running", "running", True),
        ("waiting_approval", "waiting_input", True),
        ("running", "idle", False),
        ("waiting_approval", "running", False),
    ],
)
def test_two_that_agree_confirm_each_other(shown: str, written: str, confirmed: bool) -> None:
    assert read_both(seen(shown), status(written)).is_confirmed is confirmed


def test_that_a_turn_was_stopped_may_be_known_from_either() -> None:
    assert read_both(seen("idle"), status("idle", "interrupted")).seen.reason_code == "interrupted"
    stopped = read_both(seen("idle", "interrupted"), status("running"))
    assert (stopped.seen.state, stopped.seen.reason_code) == (State.IDLE, "interrupted")
