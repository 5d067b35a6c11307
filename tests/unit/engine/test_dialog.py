"""Which dialog an answer would be for: the one that was seen, unless another question was reported since."""

from dataclasses import replace

import pytest

from agtmux.domain.states import Source
from agtmux.engine.apply import Record
from unit.builders import a_record, a_signal, an_attention


def shown(*signals) -> str | None:
    return replace(a_record(), signals={signal.source: signal for signal in signals}).dialog


def a_sighting(summary: str = "touch label.txt", *, at: float = 0.0, state: str = "waiting_approval"):
    return a_signal(Source.POLLER, state, at=at, attention=an_attention(summary), dialog="f1")


def a_report(summary: str, *, at: float, state: str = "waiting_approval"):
    return a_signal(Source.HOOK, state, at=at, attention=an_attention(summary))


def test_nothing_was_seen_or_nothing_is_asked() -> None:
    assert isinstance(a_record(), Record) and a_record().dialog is None
    assert shown(a_report("touch label.txt", at=1)) is None
    assert shown(a_sighting(state="running")) is None
    assert shown(a_sighting()) == "f1"


@pytest.mark.parametrize(
    ("reported", "at", "expected"),
    [
        # Told before it was drawn, as hooks do.
        ("rm -rf /", -1, "f1"),
        ("touch label.txt", 1, "f1"),
        ("touch  label.txt", 1, "f1"),
        ("rm -rf /", 1, None),
        ("touch label.txt.old", 1, None),
    ],
)
def test_a_question_that_was_reported_since_is_another(reported: str, at: float, expected: str | None) -> None:
    assert shown(a_sighting(), a_report(reported, at=at)) == expected


def test_a_file_is_known_by_its_name() -> None:
    sighting = a_sighting("Do you want to create labels.txt?")
    assert shown(sighting, a_report("/home/me/parcels/labels.txt", at=1)) == "f1"
    assert shown(sighting, a_report("/home/me/parcels/", at=1)) is None


def test_what_is_reported_of_other_work_changes_nothing() -> None:
    assert shown(a_sighting(), a_report("anything", at=1, state="running")) == "f1"
