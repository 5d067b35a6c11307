"""Which dialog an answer would be for: the one that was seen, if that is what is shown to be asked."""

from dataclasses import replace

import pytest

from agtmux.domain.events import Incomplete
from agtmux.domain.states import Health, Source
from agtmux.engine.apply import Record, settle
from unit.builders import POLICY, a_record, a_signal, after, an_attention


def shown(*signals) -> str | None:
    """The fingerprint that goes with what is shown to be asked."""
    return settled(*signals).dialog


def settled(*signals) -> Record:
    record = replace(a_record(), signals={signal.source: signal for signal in signals})
    return settle(record, health=Health.OK, now=after(5), policy=POLICY)


def a_sighting(
    summary: str = "touch label.txt", *, at: float = 0.0, state: str = "waiting_approval", dialog: str = "f1"
):
    return a_signal(Source.POLLER, state, at=at, attention=an_attention(summary), dialog=dialog)


def a_report(summary: str, *, at: float, state: str = "waiting_approval"):
    return a_signal(Source.HOOK, state, at=at, attention=an_attention(summary))


def test_nothing_was_seen_or_nothing_is_asked() -> None:
    assert isinstance(a_record(), Record) and a_record().dialog is None
    assert shown(a_report("touch label.txt", at=1)) is None
    assert shown(a_sighting(state="running")) is None
    assert shown(a_sighting()) == "f1"


@pytest.mark.parametrize(
    ("reported", "at", "asks", "expected"),
    [
        ("touch label.txt", 1, "touch label.txt", "f1"),
        ("touch  label.txt", 1, "touch  label.txt", "f1"),
        # What was reported since is another question, whose dialog nobody has seen.
        ("rm -rf /", 1, "rm -rf /", None),
        ("touch label.txt.old", 1, "touch label.txt.old", None),
        ("label.txt", 1, "label.txt", None),
        # It may still be drawn.
        ("rm -rf /", -1, "rm -rf /", None),
        # It had the time to be, and something else is there: no key goes to that.
        ("rm -rf /", -2, "rm -rf /", None),
        ("label.txt", -2, "label.txt", None),
        ("touch label.txt", -2, "touch label.txt", "f1"),
    ],
)
def test_what_is_shown_to_be_asked_and_what_a_yes_would_be_for_are_one(
    reported: str, at: float, asks: str, expected: str | None
) -> None:
    record = settled(a_sighting(), a_report(reported, at=at))
    assert record.row.attention is not None
    assert (record.row.attention.summary, record.dialog) == (asks, expected)
    assert record.asks(an_attention(reported)) and not record.asks(an_attention("make deploy"))


def test_a_report_and_a_screen_that_differ_are_both_shown_and_are_no_whole_request() -> None:
    record = settled(a_sighting(), a_report("rm -rf /", at=-2))
    assert record.row.attention is not None and record.row.attention.detail is not None
    assert "rm -rf /" in record.row.attention.detail and "touch label.txt" in record.row.attention.detail
    assert record.row.attention.incomplete is Incomplete.SCREEN_DIFFERS


def test_a_dialog_whose_top_has_left_the_screen_takes_a_second_step() -> None:
    rest = replace(an_attention("Do you want to proceed?"), incomplete=Incomplete.NOT_ON_SCREEN)
    sighting = a_signal(Source.POLLER, "waiting_approval", at=0.0, attention=rest, dialog="f1")
    record = settled(sighting, a_report("touch label.txt", at=-2))
    assert record.row.attention is not None
    assert (record.row.attention.summary, record.dialog) == ("touch label.txt", "f1")
    assert record.row.attention.incomplete is Incomplete.NOT_ON_SCREEN


def test_a_report_that_does_not_say_what_would_run_gives_way_to_the_screen() -> None:
    vague = replace(an_attention("it needs you"), incomplete=Incomplete.NOT_REPORTED)
    for at, asks, expected in ((-1, "it needs you", None), (-2, "touch label.txt", "f1")):
        record = settled(a_sighting(), a_signal(Source.HOOK, "waiting_approval", at=at, attention=vague))
        assert record.row.attention is not None
        assert (record.row.attention.summary, record.dialog) == (asks, expected)


def test_the_next_dialog_that_no_report_tells_of_is_another_question() -> None:
    before = settled(a_report("touch label.txt", at=-2), a_sighting(at=-1))
    after_it = replace(before, signals={**before.signals, Source.POLLER: a_sighting("rm -r labels", at=3, dialog="f2")})
    now = settle(after_it, health=Health.OK, now=after(5), policy=POLICY)
    assert now.row.attention is not None
    # Nothing tells whether what was reported is still asked, so no key is pressed.
    assert now.dialog is None and "rm -r labels" in (now.row.attention.detail or "")
    # Whoever means to answer the one before is refused.
    assert now.row.state_version > before.row.state_version


def test_what_is_reported_of_other_work_changes_nothing() -> None:
    assert shown(a_sighting(), a_report("anything", at=1, state="running")) == "f1"
