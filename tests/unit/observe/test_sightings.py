"""Look after look at one pane: what is told, when, and how sure it is against what was reported."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from agtmux.agents.adapter import SheetAdapter
from agtmux.agents.contract import Glance
from agtmux.agents.registry import Registry
from agtmux.agents.sessions import Status
from agtmux.agents.sheet import AgentSheet
from agtmux.agents.witness import Reading
from agtmux.domain.events import Event
from agtmux.domain.panes import HOST
from agtmux.domain.states import Confidence, Health, Source, State
from agtmux.engine.apply import apply
from agtmux.observe.files import Told
from agtmux.observe.sightings import SECOND_LOOK, Sightings
from agtmux.observe.world import World
from unit.builders import PANE, POLICY, FakeTime, a_record, an_event

SHEET = b"""
agent_type = "claude"
name = "Eliza"
[process]
commands = ["eliza"]
[screen]
bare_signs = [">"]
[[screen.rule]]
says = "running"
where = "above"
pattern = "^busy"
reason_code = "busy_line"
[[screen.rule]]
says = "error"
where = "above"
pattern = "^failed"
reason_code = "error_line"
[[screen.rule]]
says = "idle"
where = "above"
pattern = "^stopped"
reason_code = "interrupted"
[[screen.rule]]
says = "running"
where = "title"
pattern = "^working"
reason_code = "busy_title"
[[screen.rule]]
says = "overlay"
where = "bottom"
pattern = "^menu"
reason_code = "menu"
"""
REGISTRY = Registry([SheetAdapter(msgspec.toml.decode(SHEET, type=AgentSheet))])

# A prompt of which the rules are not sure.
STREAMING = "answer {}\n> "
BUSY, PROMPT, FAILED, STOPPED = "busy\n> ", "hello\n" * 8 + "> ", "failed\n> ", "stopped\n> "
DIALOG, OTHER_DIALOG, MENU = "Do it?\n> 1. Yes\n  2. No", "Do that?\n> 1. Yes\n  2. No", "menu"
UNREADABLE = "what no rule knows"


class Pane:
    """One agent's pane that shows what the test says, and the record that the engine makes of it."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.clock = self.time.clock()
        self.world = World()
        self.world.records[HOST, PANE] = a_record()
        self.sightings = Sightings(HOST, self.world, REGISTRY, self.clock, POLICY)
        self.told: list[Event] = []

    @property
    def shown(self) -> str:
        row = self.world.records[HOST, PANE].row
        return f"{row.state}/{row.reason_code}"

    @property
    def sureness(self) -> str:
        return self.world.records[HOST, PANE].row.confidence.value

    def look(self, screen: str, *, after: float = 0.5, file: Told | None = None, title: str = "") -> str:
        self.time.pass_by(after)
        events = self.sightings.look(
            {PANE: screen}, {PANE: title}, {} if file is None else {PANE: file}, (), self.clock.now()
        )
        for event in events:
            self._take(event)
        self.told += events
        return self.shown

    def report(self, state: str, *, after: float = 0.5) -> str:
        self.time.pass_by(after)
        now = self.clock.now()
        event = an_event(f"e{now}", state, source=Source.HOOK, event_time=now, ingested_at=now)
        self._take(event)
        return self.shown

    def wrote(self, state: str, reason: str = "session_file") -> Told:
        return Told(Status(State(state), reason, "written"), self.clock.now())

    def _take(self, event: Event) -> None:
        record = self.world.records[HOST, PANE]
        now = self.clock.now()
        self.world.records[HOST, PANE], _ = apply(
            record, event, duplicate=False, health=Health.OK, now=now, policy=POLICY
        )


@pytest.fixture
def pane() -> Pane:
    return Pane()


def test_what_does_not_change_is_told_once(pane: Pane) -> None:
    for _ in range(50):
        pane.look(PROMPT)
    assert len(pane.told) == 1
    assert pane.shown == "idle/prompt"


def test_it_is_told_again_before_it_grows_old(pane: Pane) -> None:
    for _ in range(200):
        assert pane.look(PROMPT, after=10) == "idle/prompt"
    assert 5 <= len(pane.told) <= 9


def test_a_dialog_is_shown_at_the_first_look(pane: Pane) -> None:
    pane.look(BUSY)
    assert pane.look(DIALOG) == "waiting_approval/dialog"
    assert pane.look(OTHER_DIALOG) == "waiting_approval/dialog"
    assert len(pane.told) == 3


@pytest.mark.parametrize("screen", [BUSY, PROMPT, FAILED])
def test_a_wait_is_left_only_when_it_was_seen_to_be_over_twice(pane: Pane, screen: str) -> None:
    pane.look(DIALOG)
    assert pane.look(screen) == "waiting_approval/dialog"
    assert pane.sightings.look_again == SECOND_LOOK
    # Half a repaint, and it is there again.
    assert pane.look(DIALOG) == "waiting_approval/dialog"
    assert pane.look(screen) == "waiting_approval/dialog"
    assert not pane.look(screen, after=SECOND_LOOK).startswith("waiting")


def test_a_turn_that_is_seen_to_end_is_completed_for_a_while(pane: Pane) -> None:
    pane.look(PROMPT)
    assert pane.look(BUSY) == "running/busy_line"
    assert pane.look(PROMPT) == "running/busy_line"
    assert pane.look(PROMPT, after=SECOND_LOOK) == "completed/turn_ended"
    assert pane.look(PROMPT, after=100) == "completed/turn_ended"
    assert pane.look(PROMPT, after=25).startswith("idle/")
    assert pane.look(PROMPT, after=400).startswith("idle/")


def test_what_looks_like_work_before_the_first_prompt_is_no_turn(pane: Pane) -> None:
    pane.look(BUSY)
    pane.look(PROMPT)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "idle/prompt"
    assert pane.look(BUSY) == "running/busy_line"
    pane.look(PROMPT)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "completed/turn_ended"


def test_what_works_for_longer_than_it_takes_to_start_had_something_to_do(pane: Pane) -> None:
    pane.look(BUSY)
    pane.look(BUSY, after=11)
    pane.look(PROMPT)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "completed/turn_ended"


def test_an_answer_that_streams_over_a_plain_prompt_goes_on_while_it_moves(pane: Pane, monkeypatch) -> None:
    def unsure(agent_type: str, glance: Glance) -> Reading:
        reading = read(agent_type, glance)
        return replace(reading, seen=replace(reading.seen, confidence=Confidence.LOW))

    read = REGISTRY.poll
    monkeypatch.setattr(REGISTRY, "poll", unsure)
    pane.look(BUSY)
    for number in range(20):
        assert pane.look(STREAMING.format(number)) == "running/busy_line"
    assert pane.look(STREAMING.format(19), after=SECOND_LOOK) == "completed/turn_ended"


def test_a_turn_that_was_stopped_or_failed_is_not_completed(pane: Pane) -> None:
    for screen, shown in ((STOPPED, "idle/interrupted"), (FAILED, "error/error_line")):
        pane.look(BUSY)
        pane.look(screen)
        assert pane.look(screen, after=SECOND_LOOK) == shown


def test_an_answered_dialog_belongs_to_a_turn(pane: Pane) -> None:
    pane.look(DIALOG)
    pane.look(PROMPT)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "completed/turn_ended"


def test_a_menu_over_an_agent_at_rest_changes_nothing_but_how_sure_it_is(pane: Pane) -> None:
    pane.look(PROMPT)
    # As sure as a screen without colours makes it.
    assert pane.sureness == "medium"
    for _ in range(5):
        assert pane.look(MENU) == "idle/prompt"
        assert pane.sureness == "low"
    assert len(pane.told) == 2
    pane.look(PROMPT)
    assert (pane.shown, pane.sureness) == ("idle/prompt", "medium")


def test_what_covers_work_may_block_it(pane: Pane) -> None:
    pane.look(BUSY)
    assert pane.look(MENU) == "running/busy_line"
    assert pane.sightings.look_again == SECOND_LOOK
    assert pane.look(MENU, after=SECOND_LOOK) == "unknown/overlay"
    for _ in range(5):
        assert pane.look(MENU) == "unknown/overlay"
    assert pane.look(BUSY) == "running/busy_line"
    assert pane.sureness == "medium"


def test_what_covers_reported_work_may_block_it(pane: Pane) -> None:
    """A dialog that no rule knows yet, in front of an agent whose last word was that it works."""
    pane.look(BUSY)
    pane.report("running")
    pane.look(BUSY, after=3)
    assert (pane.shown, pane.sureness) == ("running/said_running", "high")
    pane.look(MENU)
    assert (pane.shown, pane.sureness) == ("running/said_running", "medium")
    assert pane.look(MENU, after=SECOND_LOOK) == "unknown/overlay"
    assert pane.look(MENU, after=600) == "unknown/overlay"
    pane.look(BUSY)
    assert pane.look(BUSY, after=SECOND_LOOK) in ("running/said_running", "running/busy_line")


def test_work_that_goes_on_to_report_behind_a_menu_goes_on_and_is_not_sure(pane: Pane) -> None:
    pane.report("running")
    pane.look(BUSY, after=3)
    pane.look(MENU)
    for _ in range(10):
        pane.report("running", after=5)
        pane.look(MENU, after=5)
        assert (pane.shown, pane.sureness) == ("running/said_running", "medium")
    # And when nothing is reported any more, nobody knows.
    pane.look(MENU, after=31)
    assert pane.look(MENU, after=SECOND_LOOK) == "unknown/overlay"


@pytest.mark.parametrize("screen", [BUSY, PROMPT])
def test_a_session_file_or_a_title_sees_through_a_menu(pane: Pane, screen: str) -> None:
    pane.report("running")
    pane.look(screen, after=3, file=pane.wrote("running"))
    for _ in range(5):
        pane.look(MENU, file=pane.wrote("running"))
        assert (pane.shown.split("/")[0], pane.sureness) == ("running", "medium")
    for _ in range(5):
        pane.look(MENU, title="working")
        assert (pane.shown.split("/")[0], pane.sureness) == ("running", "medium")


def test_a_menu_hides_no_wait_and_makes_it_less_sure(pane: Pane) -> None:
    for begin, sureness in ((lambda: None, "low"), (lambda: pane.report("waiting_approval"), "medium")):
        begin()
        pane.look(DIALOG, after=3)
        for _ in range(5):
            assert pane.look(MENU).startswith("waiting_approval/")
            assert pane.sureness == sureness


def test_a_prompt_that_a_menu_covers_ends_no_reported_turn(pane: Pane) -> None:
    """What was on the screen before the report says nothing about what is behind the menu now."""
    pane.look(PROMPT)
    pane.report("running")
    for _ in range(5):
        pane.look(MENU, after=2)
        assert pane.shown in ("running/said_running", "unknown/overlay")
    assert pane.shown == "unknown/overlay"


def test_a_reported_wait_is_over_once_its_dialog_was_seen_to_go(pane: Pane) -> None:
    """Denied in the pane, and what is there now cannot be read."""
    pane.report("waiting_approval")
    pane.look(DIALOG, after=2)
    assert (pane.shown, pane.sureness) == ("waiting_approval/said_waiting_approval", "high")
    pane.look(UNREADABLE)
    pane.look(UNREADABLE, after=SECOND_LOOK)
    assert pane.look(UNREADABLE, after=SECOND_LOOK) == "unknown/unread_screen"
    assert pane.look(UNREADABLE, after=60) == "unknown/unread_screen"
    # The next one is a wait again.
    pane.report("waiting_approval")
    assert pane.shown == "waiting_approval/said_waiting_approval"


def test_a_dialog_that_goes_for_one_look_is_still_there(pane: Pane) -> None:
    pane.report("waiting_approval")
    pane.look(DIALOG, after=2)
    for _ in range(5):
        assert pane.look(UNREADABLE).startswith("waiting_approval/")
        assert pane.look(DIALOG, after=SECOND_LOOK).startswith("waiting_approval/")


def test_a_wait_whose_dialog_was_never_seen_stays_one_and_is_not_sure(pane: Pane) -> None:
    """The screens of a version that nobody has tried cannot be read: its reports are all there is."""
    pane.report("waiting_approval")
    for _ in range(10):
        assert pane.look(UNREADABLE, after=2) == "waiting_approval/said_waiting_approval"
    assert pane.sureness == "medium"


def test_a_dialog_that_an_earlier_daemon_saw_is_known_to_have_gone(pane: Pane) -> None:
    pane.report("waiting_approval")
    pane.look(DIALOG, after=2)
    pane.sightings = Sightings(HOST, pane.world, REGISTRY, pane.clock, POLICY)
    pane.look(UNREADABLE, after=5)
    assert pane.look(UNREADABLE, after=SECOND_LOOK) == "unknown/unread_screen"


def test_a_report_comes_before_its_screen(pane: Pane) -> None:
    """Nothing that is shown in the first moment says anything against it."""
    pane.look(PROMPT)
    pane.report("running")
    for _ in range(6):
        assert pane.look(PROMPT, after=0.12) == "running/said_running"
    pane.look(BUSY)
    pane.report("waiting_approval")
    for _ in range(10):
        assert pane.look(BUSY, after=0.12) == "waiting_approval/said_waiting_approval"
    pane.look(DIALOG)
    pane.report("completed")
    for _ in range(5):
        assert pane.look(DIALOG, after=0.12) == "completed/said_completed"


def test_a_turn_that_ends_without_a_word_was_stopped(pane: Pane) -> None:
    pane.report("running")
    pane.look(BUSY, after=3)
    pane.look(PROMPT)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "idle/interrupted"
    # And stays so, whatever the screen does next that is no report.
    assert pane.look(PROMPT, after=30) == "idle/interrupted"


def test_a_dialog_that_no_hook_told_of_is_shown_soon(pane: Pane) -> None:
    pane.report("running")
    pane.look(BUSY, after=3)
    pane.look(DIALOG)
    assert pane.sightings.look_again == SECOND_LOOK
    assert pane.look(DIALOG, after=SECOND_LOOK) == "waiting_approval/dialog"


def test_a_report_that_was_overruled_does_not_come_back(pane: Pane) -> None:
    """Denied without a hook, then the next turn begins: the old wait must not be shown in between."""
    pane.report("waiting_approval")
    pane.look(DIALOG, after=3)
    pane.look(STOPPED)
    assert pane.look(STOPPED, after=SECOND_LOOK) == "idle/interrupted"
    assert pane.look(BUSY) == "running/busy_line"


def test_an_interrupt_overrules_a_turn_that_was_reported_as_ended(pane: Pane) -> None:
    pane.report("running")
    pane.look(BUSY, after=3)
    pane.report("completed")
    pane.look(STOPPED)
    assert pane.look(STOPPED, after=SECOND_LOOK) == "idle/interrupted"


def test_a_file_that_says_the_same_counts_as_the_second_look(pane: Pane) -> None:
    pane.report("waiting_approval")
    pane.look(DIALOG, after=3)
    pane.time.pass_by(1)
    assert pane.look(PROMPT, file=pane.wrote("idle")) == "idle/interrupted"


def test_a_file_that_was_written_before_the_report_confirms_nothing_against_it(pane: Pane) -> None:
    written = pane.wrote("idle")
    pane.report("running")
    assert pane.look(PROMPT, after=0.1, file=written) == "running/said_running"


def test_a_file_tells_of_work_that_the_screen_does_not_show(pane: Pane) -> None:
    pane.look(PROMPT, file=pane.wrote("idle"))
    assert pane.look(PROMPT, file=pane.wrote("running")) == "running/session_file"
    assert pane.look(PROMPT, file=pane.wrote("waiting_approval")) == "waiting_approval/session_file"


def test_a_wait_that_the_screen_has_left_does_not_become_another_by_a_file_that_lags(pane: Pane) -> None:
    pane.look(DIALOG)
    lagging = pane.wrote("waiting_input")
    assert pane.look(BUSY, file=lagging) == "waiting_approval/dialog"
    pane.look(BUSY, after=SECOND_LOOK)
    assert pane.look(BUSY, after=SECOND_LOOK) == "running/busy_line"


def test_a_file_that_still_tells_of_an_answered_dialog_makes_no_wait_of_what_follows(pane: Pane) -> None:
    """It is written anew up to two seconds after the dialog has gone."""
    lagging = pane.wrote("waiting_approval")
    assert pane.look(DIALOG, file=lagging) == "waiting_approval/dialog"
    pane.look(BUSY, file=lagging)
    for _ in range(10):
        assert pane.look(BUSY, after=SECOND_LOOK, file=lagging) == "running/busy_line"
    # What it says anew counts, and so does what it says of a screen that cannot be read.
    assert pane.look(BUSY, file=pane.wrote("waiting_approval")) == "waiting_approval/session_file"
    lagging = pane.wrote("waiting_approval")
    pane.look(DIALOG, file=lagging)
    for _ in range(5):
        assert pane.look(UNREADABLE, file=lagging).startswith("waiting_approval/")


def test_an_agent_that_reports_its_end_and_is_there_is_shown_as_what_it_is_at_once(pane: Pane) -> None:
    """Some report the end of a session when the next one begins."""
    pane.look(PROMPT)
    pane.report("unknown")
    pane.look(PROMPT, after=0.05)
    assert pane.look(PROMPT, after=SECOND_LOOK) == "idle/prompt"


def test_an_earlier_daemons_turn_has_ended_meanwhile(pane: Pane) -> None:
    pane.look(BUSY)
    pane.sightings = Sightings(HOST, pane.world, REGISTRY, pane.clock, POLICY)
    assert pane.look(PROMPT) == "completed/turn_ended"
    pane.sightings = Sightings(HOST, pane.world, REGISTRY, pane.clock, POLICY)
    assert pane.look(PROMPT) == "completed/turn_ended"
    pane.sightings = Sightings(HOST, pane.world, REGISTRY, pane.clock, POLICY)
    assert pane.look(PROMPT, after=130).startswith("idle/")


def test_a_dialog_is_not_hidden_by_reports_of_what_else_the_agent_does(pane: Pane) -> None:
    """Subagents and tools beside it report as they go; the dialog stays on the screen."""
    pane.report("waiting_approval")
    pane.look(DIALOG)
    for number in range(40):
        pane.report("running", after=0.3)
        shown = pane.look(DIALOG, after=0.2)
        if number >= 3:
            assert shown == "waiting_approval/dialog"
    # And from then on not even for the moment before the next look.
    assert pane.report("running") == "waiting_approval/dialog"
    assert pane.report("completed") == "waiting_approval/dialog"
    # Once it is seen to be gone, it is gone.
    pane.look(BUSY)
    assert pane.look(BUSY, after=SECOND_LOOK) == "running/busy_line" or pane.shown.startswith("completed")
    pane.report("running")
    assert pane.look(BUSY) == "running/said_running"


def test_a_contradicted_report_is_less_sure_from_the_first_look_on(pane: Pane) -> None:
    pane.report("waiting_approval")
    pane.look(DIALOG)
    pane.report("running")
    pane.look(DIALOG, after=0.1)
    assert pane.world.records[HOST, PANE].row.confidence is Confidence.MEDIUM


def test_a_screen_that_nobody_can_read_is_unknown_and_not_what_was_before(pane: Pane) -> None:
    pane.look(BUSY)
    for _ in range(3):
        shown = pane.look("a form that nobody knows\n[ ] one\n[ ] two")
    assert shown == "unknown/unread_screen"
    pane.look(PROMPT)
    assert pane.look(PROMPT).startswith(("idle", "completed"))


def test_a_wait_ends_whatever_busy_signs_alternate_after_it(pane: Pane) -> None:
    pane.look(DIALOG)
    for number in range(4):
        shown = pane.look(FAILED if number % 2 else BUSY)
    assert not shown.startswith("waiting")


def test_no_file_ends_a_wait_alone(pane: Pane) -> None:
    """Some say that they are busy while the agent asks, and a viewer may be in front."""
    pane.report("waiting_input")
    pane.look(DIALOG, after=3)
    for _ in range(10):
        assert pane.look(MENU, file=pane.wrote("running")).startswith("waiting")
    unread = "a form that nobody knows"
    for _ in range(10):
        assert pane.look(unread, file=pane.wrote("running")).startswith("waiting")


@pytest.mark.parametrize("written", ["idle", "completed"])
def test_no_file_alone_says_that_an_agent_with_an_unread_screen_is_at_rest(pane: Pane, written: str) -> None:
    """The screen may show a dialog that neither the rules nor the file know."""
    pane.look(PROMPT)
    pane.look(BUSY)
    for _ in range(3):
        pane.look(UNREADABLE, file=pane.wrote(written))
    assert pane.shown == "unknown/unread_screen"


def test_work_that_only_a_file_tells_of_is_not_sure_on_an_unread_screen(pane: Pane) -> None:
    """So it is after a start, when no earlier look has seen the dialog."""
    assert pane.look(UNREADABLE, file=pane.wrote("running")) == "running/session_file"
    assert pane.sureness == "low"


def test_a_reported_wait_is_left_late_if_its_dialog_is_not_drawn_yet(pane: Pane) -> None:
    """On a busy machine the dialog of a subagent is drawn two seconds after its report."""
    pane.look(BUSY)
    pane.report("waiting_approval")
    for _ in range(30):
        assert pane.look(BUSY, after=0.12) == "waiting_approval/said_waiting_approval"
        # It may be drawn at any moment.
        assert pane.sightings.look_again is not None and pane.sightings.look_again <= 0.5
    assert pane.sureness == "medium"
    for _ in range(6):
        pane.look(BUSY, after=0.12)
    assert pane.shown == "running/busy_line"


def test_a_reported_wait_whose_dialog_was_drawn_is_left_once_that_has_gone(pane: Pane) -> None:
    pane.look(BUSY)
    pane.report("waiting_approval")
    pane.look(DIALOG, after=0.3)
    for _ in range(14):
        pane.look(BUSY, after=0.12)
    assert pane.shown == "running/busy_line"
