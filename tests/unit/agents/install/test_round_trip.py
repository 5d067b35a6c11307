"""Whatever the file looks like: installing adds our entries and nothing else, uninstalling restores every byte."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.agents.install.edit import Found, Wiring, install, status, uninstall
from unit.agents.install.documents import (
    EVENTS,
    HOOK,
    SENTINEL,
    WIRINGS,
    additions,
    as_python,
    documents,
    wiring,
    without_ours,
)

WAYS = pytest.mark.parametrize("way", WIRINGS.values(), ids=WIRINGS)
MOVED = "/home/x y/it's/agtmux-hook"


def moved(way: Wiring) -> Wiring:
    return Wiring(way.agent, way.settings, way.events, MOVED)


@WAYS
@settings(max_examples=200, deadline=None)
@given(text=documents())
def test_uninstalling_restores_every_byte(way: Wiring, text: str) -> None:
    assert uninstall(install(text, way), way) == text


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents())
def test_every_event_gets_one_entry_behind_those_of_others_and_nothing_else_changes(way: Wiring, text: str) -> None:
    expected = as_python(text)
    for event in EVENTS:
        expected.setdefault("hooks", {}).setdefault(event, []).append(way.settings.entry_for(way.command(event), event))
    assert as_python(install(text, way)) == expected


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents(strict=True))
def test_strict_json_stays_strict_json(way: Wiring, text: str) -> None:
    assert json.loads(install(text, way)) == as_python(install(text, way))


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents())
def test_installing_twice_is_installing_once(way: Wiring, text: str) -> None:
    once = install(text, way)
    assert install(once, way) == once
    assert status(once, way) == Found(there=EVENTS)


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents())
def test_installing_from_another_place_changes_the_path_and_nothing_else(way: Wiring, text: str) -> None:
    first = install(text, way)
    assert status(first, moved(way)) == Found(stale=EVENTS)
    assert install(first, moved(way)) == install(text, moved(way))
    assert uninstall(install(first, moved(way)), way) == text


@settings(max_examples=100, deadline=None)
@given(text=documents())
def test_an_entry_from_before_hooks_could_wait_becomes_what_it_would_be_now(text: str) -> None:
    before, now = WIRINGS["grouped"], WIRINGS["waiting"]
    old = install(text, before)
    assert status(old, now) == Found(there=("Start", "Stop"), stale=("Ask",))
    new = install(old, now)
    assert as_python(new) == as_python(install(text, now))
    assert status(new, now) == Found(there=EVENTS)
    assert uninstall(new, now) == uninstall(new, before) == text


@WAYS
@settings(max_examples=100, deadline=None)
@given(text=documents(), new=st.sampled_from(["2", '[1, // one\n "x"]', '{\n  "hooks": {}\n}', '"\\u0041"']))
def test_what_the_user_changes_in_between_stays(way: Wiring, text: str, new: str) -> None:
    changed = install(text, way).replace(SENTINEL, new)
    assert uninstall(changed, way) == text.replace(SENTINEL, new)


@WAYS
@settings(max_examples=100, deadline=None)
@given(text=documents(), data=st.data())
def test_nothing_that_the_user_adds_in_between_is_lost(way: Wiring, text: str, data: st.DataObject) -> None:
    changed = data.draw(additions(install(text, way), way))
    left = uninstall(changed, way)
    assert left is not None or "mine" not in changed
    assert without_ours(as_python(left or "{}"), way) == without_ours(as_python(changed), way)
    assert (left or "").count("mine") == changed.count("mine")
    again = install(changed, way)
    assert status(again, way) == Found(there=EVENTS)
    assert again.count("mine") == changed.count("mine")


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents(), events=st.lists(st.sampled_from(EVENTS), unique=True, min_size=1))
def test_an_event_that_is_no_longer_wanted_goes_and_the_rest_is_as_if_it_never_was(
    way: Wiring, text: str, events: list[str]
) -> None:
    fewer = Wiring(way.agent, way.settings, tuple(event for event in EVENTS if event in events), HOOK)
    less = install(install(text, way), fewer)
    assert status(less, way).there == fewer.events
    assert uninstall(less, way) == text


@WAYS
def test_a_file_that_was_not_there_is_made_and_goes_again(way: Wiring) -> None:
    text = install(None, way)
    assert json.loads(text)["hooks"].keys() == set(EVENTS)
    assert status(None, way) == Found(missing=EVENTS)
    assert status(text, way) == Found(there=EVENTS)
    assert uninstall(text, way) is None


@WAYS
@settings(max_examples=50, deadline=None)
@given(text=documents())
def test_uninstalling_what_was_never_installed_changes_nothing(way: Wiring, text: str) -> None:
    assert uninstall(text, way) == text


def test_agents_do_not_take_each_others_entries_for_their_own() -> None:
    eliza, parry = wiring(), wiring(agent="parry")
    both = install(install(None, eliza), parry)
    assert uninstall(both, parry) == install(None, eliza)
