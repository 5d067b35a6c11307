"""What was told against what is seen: all 49 pairs, and what a sighting must be to overrule."""

from dataclasses import replace

import pytest

from agtmux.domain.states import Confidence, Health, Source, State
from agtmux.engine.resolve import Resolution, Role, resolve
from agtmux.engine.transitions import EVENT_DRIVEN, OVERRULED_BY, can_overrule
from unit.builders import POLICY, a_signal, after

TICK = 0.000001
TOLD = [Source.HOOK, Source.NOTIFY, Source.WRAPPER]

# told → what may be seen beside it without contradiction. Written out again here: a table that tests itself is none.
COEXISTS = {
    "error": "error completed idle unknown",
    "waiting_approval": "waiting_approval unknown",
    "waiting_input": "waiting_input unknown",
    "running": "running unknown",
    "completed": "completed idle unknown",
    "idle": "completed idle unknown",
    "unknown": "unknown",
}
PAIRS = [(told, seen) for told in State for seen in State]
CONTRADICTIONS = [(told, seen) for told, seen in PAIRS if seen not in COEXISTS[told].split()]
CONSISTENT = [(told, seen) for told, seen in PAIRS if seen in COEXISTS[told].split()]


def settle(told: State, seen: State, *, at: float, held: float | None = None, repeats: int = 2, by=Source.HOOK):
    """Told at 10 s; seen at `at`, the same since `held`, looked at `repeats` times."""
    sighting = a_signal(Source.POLLER, seen, at=at, repeats=repeats, confidence=Confidence.MEDIUM)
    held_since = None if held is None else after(held)
    sighting = replace(sighting, verdict=replace(sighting.verdict, held_since=held_since))
    signals = [a_signal(by, told, at=10), sighting]
    return resolve(signals, has_agent=True, health=Health.OK, now=after(20), policy=POLICY)


def role_of(resolution: Resolution, source: Source) -> Role:
    return next(link.role for link in resolution.evidence if link.source is source)


def test_the_table_knows_every_pair() -> None:
    assert set(OVERRULED_BY) == set(State)
    assert {pair for pair in PAIRS if can_overrule(*pair)} == set(CONTRADICTIONS)
    with pytest.raises(LookupError, match=r"told='sleeping' and seen=<State.IDLE"):
        can_overrule("sleeping", State.IDLE)


def test_every_source_is_either_told_or_seen_and_the_daemons_own_is_neither() -> None:
    assert frozenset(Source) - {Source.RECONCILER, Source.POLLER} == EVENT_DRIVEN


@pytest.mark.parametrize("by", TOLD)
@pytest.mark.parametrize(("told", "seen"), CONTRADICTIONS)
def test_a_fresh_and_repeated_sighting_overrules_what_it_contradicts(told: State, seen: State, by: Source) -> None:
    found = settle(told, seen, at=12, held=11, by=by)
    assert (found.state, found.source, found.confidence) == (seen, Source.POLLER, Confidence.MEDIUM)
    assert role_of(found, by) is Role.OVERRULED


@pytest.mark.parametrize(("told", "seen"), CONTRADICTIONS)
def test_a_single_contradicting_sighting_only_makes_less_sure(told: State, seen: State) -> None:
    found = settle(told, seen, at=12, held=11, repeats=1)
    assert (found.state, found.source, found.confidence) == (told, Source.HOOK, Confidence.MEDIUM)
    assert role_of(found, Source.POLLER) is Role.CONTRADICTS


@pytest.mark.parametrize(("told", "seen"), CONTRADICTIONS)
@pytest.mark.parametrize("held", [10, 9.5, 0])
def test_a_sighting_that_began_before_the_report_overrules_nothing(told: State, seen: State, held: float) -> None:
    """The screen may simply not have been repainted yet."""
    found = settle(told, seen, at=12, held=held, repeats=9)
    assert (found.state, found.confidence) == (told, Confidence.MEDIUM)


@pytest.mark.parametrize(("told", "seen"), CONTRADICTIONS)
@pytest.mark.parametrize("at", [10, 9])
def test_a_sighting_from_before_the_report_is_overtaken(told: State, seen: State, at: float) -> None:
    found = settle(told, seen, at=at, held=at - 5, repeats=9)
    assert (found.state, found.confidence) == (told, Confidence.HIGH)
    assert role_of(found, Source.POLLER) is Role.OVERTAKEN


@pytest.mark.parametrize(("told", "seen"), CONTRADICTIONS)
def test_a_sighting_one_tick_after_the_report_is_enough_when_repeated(told: State, seen: State) -> None:
    assert settle(told, seen, at=10 + TICK, held=10 + TICK).state is seen
    # One that does not say since when it holds, holds since it was seen.
    assert settle(told, seen, at=10 + TICK, held=None).state is seen


@pytest.mark.parametrize(("told", "seen"), [pair for pair in CONSISTENT if pair[1] != "unknown"])
def test_what_can_be_true_at_once_keeps_what_was_told(told: State, seen: State) -> None:
    for at in (9, 10, 12):
        found = settle(told, seen, at=at, held=at, repeats=9)
        assert (found.state, found.source, found.confidence) == (told, Source.HOOK, Confidence.HIGH)
        assert role_of(found, Source.POLLER) is Role.AGREES


# What was told → what comes of it when the screen says nothing, again and again: it cannot be read; something covers
# it; the dialog that was there is not there any more. "less sure" keeps what was told.
SAYS_NOTHING = {
    "error": ("less sure", "less sure", "less sure"),
    "waiting_approval": ("less sure", "less sure", "unknown"),
    "waiting_input": ("less sure", "less sure", "unknown"),
    "running": ("less sure", "unknown", "less sure"),
    "completed": ("less sure", "less sure", "less sure"),
    "idle": ("less sure", "less sure", "less sure"),
    "unknown": ("unknown", "unknown", "unknown"),
}
HOW = {"unread": {}, "covered": {"is_covered": True}, "gone": {"dialog_gone": True}}


def against(told: State, seen: State, *, at: float = 12, repeats: int = 2, **how: bool) -> Resolution:
    """Told at 10 s, with high confidence; seen at `at` with high confidence as well."""
    signals = [a_signal(Source.HOOK, told, at=10), a_signal(Source.POLLER, seen, at=at, repeats=repeats, **how)]
    return resolve(signals, has_agent=True, health=Health.OK, now=after(20), policy=POLICY)


def test_every_state_has_its_row_in_the_table_of_screens_that_say_nothing() -> None:
    assert set(SAYS_NOTHING) == set(State)


@pytest.mark.parametrize("told", State)
@pytest.mark.parametrize("how", HOW)
def test_a_screen_that_says_nothing_makes_less_sure_or_unknown(told: State, how: str) -> None:
    expected = SAYS_NOTHING[told][list(HOW).index(how)]
    found = against(told, State.UNKNOWN, **HOW[how])
    if expected == "unknown":
        assert found.state is State.UNKNOWN
    else:
        assert (found.state, found.source, found.confidence) == (told, Source.HOOK, Confidence.MEDIUM)
        assert role_of(found, Source.POLLER) is Role.CONTRADICTS


@pytest.mark.parametrize("told", [state for state in State if state is not State.UNKNOWN])
@pytest.mark.parametrize("how", HOW)
def test_one_look_at_a_screen_that_says_nothing_overrules_nothing(told: State, how: str) -> None:
    found = against(told, State.UNKNOWN, repeats=1, **HOW[how])
    assert (found.state, found.source) == (told, Source.HOOK)
    # Nor one from before the report.
    assert against(told, State.UNKNOWN, at=9, **HOW[how]).state is told


@pytest.mark.parametrize("told", [State.WAITING_APPROVAL, State.WAITING_INPUT])
def test_a_dialog_that_was_seen_to_go_ends_its_wait_whatever_else_is_there(told: State) -> None:
    for seen in (State.ERROR, State.RUNNING, State.COMPLETED, State.IDLE, State.UNKNOWN):
        assert against(told, seen, dialog_gone=True).state is seen


@pytest.mark.parametrize(("told", "seen"), PAIRS)
@pytest.mark.parametrize("at", [9, 10, 12])
@pytest.mark.parametrize("repeats", [1, 2])
def test_nothing_that_is_reported_is_sure_while_something_covers_it(
    told: State, seen: State, at: float, repeats: int
) -> None:
    """A menu of the user's own, or a dialog that nobody knows yet and that blocks the agent."""
    found = against(told, seen, at=at, repeats=repeats, is_covered=True)
    assert found.source is not Source.HOOK or found.confidence is not Confidence.HIGH or told is State.UNKNOWN


def test_agreement_is_as_sure_as_the_surer_of_the_two() -> None:
    told = a_signal(Source.HOOK, "running", confidence=Confidence.LOW)
    seen = a_signal(Source.POLLER, "running", at=1, confidence=Confidence.HIGH)
    found = resolve([told, seen], has_agent=True, health=Health.OK, now=after(2), policy=POLICY)
    assert (found.source, found.confidence) == (Source.HOOK, Confidence.HIGH)


@pytest.mark.parametrize("state", State)
def test_what_is_seen_decides_where_nothing_was_told(state: State) -> None:
    seen = a_signal(Source.POLLER, state, confidence=Confidence.MEDIUM)
    found = resolve([seen], has_agent=True, health=Health.OK, now=after(1), policy=POLICY)
    assert (found.state, found.confidence) == (state, Confidence.MEDIUM)


def test_confidence_is_lowered_by_one_step_and_never_below_low() -> None:
    assert [each.lowered() for each in Confidence] == ["medium", "low", "low"]


def test_an_interrupt_that_fires_no_hook_is_seen() -> None:
    """The hole that hooks have: told `running`, and the screen shows an empty prompt, look after look."""
    assert settle(State.RUNNING, State.IDLE, at=12, held=11).state is State.IDLE


def test_a_quoted_dialog_seen_once_invents_no_waiting_state() -> None:
    assert settle(State.RUNNING, State.WAITING_APPROVAL, at=12, held=12, repeats=1).state is State.RUNNING
