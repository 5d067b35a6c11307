"""Notifications: once for each wait, never for what is old or seen, and gone when it is answered."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from AgtmuxBar.notify import COOL_DOWN, QUIET, Outcome, step, still_so
from AgtmuxBar.settings import FOR_EVER, Settings
from AgtmuxBar.snapshot import wait_key
from desktop.builders import NOW, letter, pane, snapshot

PLAIN = Settings()


def dialog_of(told) -> str:
    return told.default.parameters.get("fingerprint", "")


class Seen:
    """The steps of one app, with what is on display after each."""

    def __init__(self, *panes, chosen=PLAIN):
        self.settings = chosen
        self.now = NOW
        self.memory = None
        self.display = {}
        self.shown = []
        self.step(*panes)

    def step(self, *panes, after=0.0, looked_at=(), **more) -> Outcome:
        self.now += after
        outcome = step(self.memory, snapshot(*panes, **more), self.settings, self.now, looked_at)
        self.memory = outcome.memory
        for key in outcome.withdraw:
            del self.display[key]
        for each in outcome.show:
            assert each.is_silent == (each.key in self.display)
            if each.is_silent:
                dialogs = {dialog_of(self.display[each.key]), dialog_of(each)} - {""}
                assert len(dialogs) <= 1, "what is under the pointer came to mean another dialog"
            self.display[each.key] = each
            if not each.is_silent:
                self.shown.append((self.now, each))
        return outcome


def begun(*panes, **chosen) -> Seen:
    """After a start with agents that do not wait."""
    return Seen(*(each | {"state": "running", "attention": None} for each in panes), chosen=Settings(**chosen))


def test_a_wait_is_told_with_its_question_and_buttons():
    seen = begun(pane(1))
    assert seen.step(pane(1)).due == QUIET
    seen.step(pane(1), after=QUIET)
    (told,) = seen.display.values()
    assert (told.title, told.body, told.place) == ("claude asks for approval", "make deploy", "host-work %1")
    assert [label for label, _ in told.buttons] == ["Attach", "Approve once", "Deny"]
    approve = dict(told.buttons)["Approve once"]
    assert (approve.name, approve.parameters["state_version"], approve.parameters["fingerprint"]) == (
        *("approve", "3", "f00d"),
    )
    assert told.default.name == "attach"


def on(target, number, state="waiting_approval"):
    made = pane(number, state)
    return made | {"identity": made["identity"] | {"target": target}, "runtime_id": f"{target}-{number}"}


def test_many_of_one_target_are_told_together_and_those_of_another_are_not():
    waits = [*(on("vm1", number) for number in range(1_194)), on("host", 1), on("host", 2)]
    seen = begun(*waits)
    seen.step(*waits)
    seen.step(*waits, after=QUIET)
    assert sorted(seen.display) == ["host-1", "host-2", "many on vm1"]
    told = seen.display["many on vm1"]
    assert (told.title, told.default.name) == ("1194 agents on vm1 need you", "pick")
    assert [label for label, _ in told.buttons] == ["Choose"], "nothing is approved in a lump"
    # One after the other is answered, and it says so without a sound.
    seen.step(*waits[1_190:], after=1)
    assert seen.display["many on vm1"].title == "4 agents on vm1 need you"
    seen.step(*waits[1_193:], after=1)
    assert seen.display["many on vm1"].title == "claude on vm1 needs you"
    seen.step(*waits[1_194:], after=1)
    assert sorted(seen.display) == ["host-1", "host-2"]


def test_many_messages_at_once_are_told_together():
    letters = [letter(number) for number in range(20)]
    seen = begun(pane(1))
    calm = pane(1, "running")
    seen.step(calm, letters=tuple(letters))
    seen.step(calm, letters=tuple(letters), after=QUIET)
    assert [(each.key, each.title) for each in seen.display.values()] == [("many letters", "20 messages for you")]
    seen.step(calm, letters=(), after=1)
    assert seen.display == {}


def test_five_are_told_one_by_one():
    waits = [on("vm1", number) for number in range(5)]
    seen = begun(*waits)
    seen.step(*waits)
    seen.step(*waits, after=QUIET)
    assert len(seen.display) == 5 and "many on vm1" not in seen.display


def test_a_flood_that_comes_in_small_waves_is_told_together_as_well():
    waits = [on("vm1", number) for number in range(60)]
    calm = [each | {"state": "running", "attention": None} for each in waits]
    seen = begun(*waits)
    for count in range(4, 61, 4):
        seen.step(*waits[:count], *calm[count:], on("host", 1, "running"))
        seen.step(*waits[:count], *calm[count:], on("host", 1, "running"), after=QUIET)
    assert len(seen.shown) <= 6
    assert seen.display["many on vm1"].title.endswith("agents on vm1 need you")
    # Later on, one more is one more.
    calm_down = [*waits, on("host", 1), on("vm1", 99)]
    seen.step(*calm_down, after=120)
    seen.step(*calm_down, after=QUIET)
    assert {"host-1", "vm1-99"} <= set(seen.display)


def test_a_question_has_no_approve_button():
    seen = begun(pane(1))
    asking = pane(1, "waiting_input", asks="Which database?")
    seen.step(asking)
    seen.step(asking, after=QUIET)
    (told,) = seen.display.values()
    assert (told.title, [label for label, _ in told.buttons]) == ("claude has a question", ["Attach"])


def test_what_waited_before_the_app_came_is_no_news():
    seen = Seen(pane(1))
    for _ in range(5):
        assert seen.step(pane(1), after=60).show == ()


def test_it_is_gone_when_it_is_answered_anywhere():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    assert seen.step(pane(1, "running")).withdraw == (pane(1)["runtime_id"],)
    assert not seen.display


def test_it_is_gone_when_its_pane_is():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.step()
    assert not seen.display


def test_what_is_answered_at_once_is_never_told():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1, "running"), after=QUIET - 0.1)
    seen.step(pane(1, "running"), after=60)
    assert seen.shown == []


def test_a_look_says_nothing_of_what_is_asked_only_after_it():
    """It takes a moment, in which somebody may leave one pane and another begin to ask."""
    before = snapshot(pane(1, state="running"), pane(2))
    after = snapshot(pane(1), pane(2))
    assert still_so(before, after, {("host", "%1"), ("host", "%2")}) == {("host", "%2")}
    assert still_so(before, snapshot(), {("host", "%2")}) == set()


def test_nothing_is_told_of_a_pane_that_is_looked_at():
    seen = begun(pane(1), pane(2))
    seen.step(pane(1), pane(2))
    seen.step(pane(1), pane(2), after=QUIET, looked_at={("host", "%1")})
    assert [told.place for _, told in seen.shown] == ["host-work %2"]
    seen.step(pane(1), pane(2), after=60)
    assert len(seen.shown) == 1, "it was seen when it began"


def test_an_agent_that_asks_again_and_again_is_told_of_now_and_then():
    seen = begun(pane(1))
    for version in range(2, 22, 2):
        asking = pane(1, version=version, asks=f"step {version}")
        seen.step(asking)
        seen.step(asking, after=QUIET)
        seen.step(pane(1, "running", version=version + 1))
    moments = [moment for moment, _ in seen.shown]
    assert 1 < len(moments) <= 1 + 10 * QUIET / COOL_DOWN
    assert all(later - earlier >= COOL_DOWN for earlier, later in itertools.pairwise(moments))


def test_a_cool_down_delays_and_does_not_lose():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.step(pane(1, "running", version=4), after=1)
    again = pane(1, version=5, asks="and now?")
    due = seen.step(again).due
    assert due == pytest.approx(COOL_DOWN - 1)
    seen.step(again, after=due)
    assert [told.body for _, told in seen.shown] == ["make deploy", "and now?"]


def test_a_pause_swallows_what_comes_within_it():
    seen = begun(pane(1), paused_until=FOR_EVER)
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.settings = PLAIN
    seen.step(pane(1), after=60)
    assert seen.shown == []
    assert seen.step(pane(1, version=9, asks="another", fingerprint="beef")).due == QUIET


def test_a_snooze_takes_it_away_and_brings_it_back():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.settings = PLAIN.with_snoozed(wait_key(pane(1)), seen.now + 900, seen.now)
    assert seen.step(pane(1)).due == 900
    assert not seen.display
    seen.step(pane(1), after=900)
    assert len(seen.display) == 1


@pytest.mark.parametrize(
    ("state", "switch", "title"),
    [
        ("error", "notifies_errors", "claude has stopped with an error"),
        ("completed", "notifies_completed", "claude is done"),
    ],
)
def test_errors_and_ends_are_told_to_who_wants_them(state, switch, title):
    for chosen in ({}, {switch: True}):
        seen = begun(pane(1), **chosen)
        seen.step(pane(1, state))
        seen.step(pane(1, state), after=QUIET)
        assert [told.title for _, told in seen.shown] == ([title] if chosen else [])


def test_buttons_follow_the_dialog_without_a_sound():
    """The same question, seen on the screen a moment after the hook told it."""
    seen = begun(pane(1))
    seen.step(pane(1, fingerprint=None))
    seen.step(pane(1, fingerprint=None), after=QUIET)
    seen.step(pane(1, fingerprint="beef"))
    (told,) = seen.display.values()
    assert told.is_silent
    assert dict(told.buttons)["Deny"].parameters["fingerprint"] == "beef"
    assert len(seen.shown) == 1


def test_another_question_takes_the_old_one_away_at_once():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.step(pane(1, version=4, asks="rm -rf build", fingerprint="beef"))
    assert not seen.display, "its text and its buttons were of something else"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {"asks": "Claude asks to run make", "version": 4}, id="by somebody else"),
        pytest.param({}, {"asks": "Claude asks to run make", "version": 6}, id="after a moment of doubt"),
        pytest.param({"asks": None, "fingerprint": None}, {"version": 4}, id="by the screen after a bare hook"),
        pytest.param({"asks": "may I?", "fingerprint": None}, {"version": 4}, id="by the screen after a hook"),
        pytest.param({}, {"fingerprint": None, "version": 5}, id="the same, the screen out of sight"),
    ],
)
def test_one_wait_in_other_words_is_told_once(before, after):
    seen = begun(pane(1))
    seen.step(pane(1, **before))
    seen.step(pane(1, **before), after=QUIET)
    for pause in (4, COOL_DOWN, 60):
        seen.step(pane(1, **after), after=pause)
    assert len(seen.shown) == 1
    (told,) = seen.display.values()
    now = pane(1, **after)
    assert told.body == now["attention"]["summary"], "it says what is asked by now"
    approve = dict(told.buttons)["Approve once"].parameters
    assert approve["state_version"] == str(now["state_version"])
    assert approve["fingerprint"] == (now["attention"]["fingerprint"] or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, [{"fingerprint": "beef"}], id="in the same words, at the same version"),
        pytest.param({}, [{"fingerprint": "beef", "version": 4}], id="in the same words"),
        pytest.param({}, [{"fingerprint": "beef", "version": 4, "asks": "rm -rf build"}], id="in other words"),
        pytest.param({}, [{"fingerprint": None}, {"fingerprint": "beef"}], id="with nothing to be seen between"),
        pytest.param({}, [{"fingerprint": None, "version": 4, "asks": "rm -rf build"}], id="not seen yet"),
        pytest.param({"fingerprint": None}, [{"fingerprint": None, "version": 4, "asks": "rm"}], id="neither seen"),
        pytest.param({"fingerprint": None}, [{"version": 5, "asks": "rm"}], id="seen, with something between"),
    ],
)
def test_another_dialog_is_told_anew(before, after):
    seen = begun(pane(1))
    seen.step(pane(1, **before))
    seen.step(pane(1, **before), after=QUIET)
    for each in after:
        seen.step(pane(1, **each), after=1)
    assert not seen.display, "its buttons were of something else"
    seen.step(pane(1, **after[-1]), after=COOL_DOWN)
    assert [len(seen.shown), len(seen.display)] == [2, 1]


def test_a_target_that_comes_back_is_no_news():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.step(pane(1, "unknown", version=4), after=30)
    assert not seen.display
    seen.step(pane(1, version=5), after=30)
    seen.step(pane(1, version=5), after=QUIET)
    assert len(seen.shown) == 1


def test_a_wait_is_not_lost_in_a_moment_of_doubt():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1, "unknown", version=4), after=1)
    seen.step(pane(1, version=5), after=1)
    assert len(seen.display) == 1


def test_what_an_agent_writes_is_told_once_and_gone_when_it_is_read():
    seen = begun(pane(1))
    old = letter(1)
    assert seen.step(letters=(old,)).due == QUIET
    seen.step(letters=(old,), after=QUIET)
    (told,) = seen.display.values()
    assert (told.title, told.body, told.default.name) == ("claude-3 writes to you", "the labels are printed", "read")
    new = letter(2, text="all of them")
    seen.step(letters=(old, new), after=60)
    seen.step(letters=(old, new), after=QUIET)
    assert [each.body for each in seen.display.values()] == ["the labels are printed", "all of them"]
    seen.step(letters=(), after=1)
    assert seen.display == {}
    assert len(seen.shown) == 2


def test_what_was_written_before_the_app_came_or_in_a_pause_is_no_news():
    seen = begun(pane(1), paused_until=NOW + 100)
    seen.step(letters=(letter(1),))
    seen.settings = PLAIN
    for _ in range(5):
        assert seen.step(letters=(letter(1),), after=200).show == ()
    late = Seen()
    late.memory = None
    assert late.step(letters=(letter(1),), after=QUIET).show == ()
    assert late.step(letters=(letter(1),), after=QUIET).show == ()


def test_a_daemon_that_is_away_answers_nothing():
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    assert seen.step(trouble="it has stopped").withdraw == ()
    assert seen.step(pane(1)).show == ()
    seen.step(pane(1, "idle"))
    assert not seen.display


def keys(*numbers: int) -> list[str]:
    return [pane(number)["runtime_id"] for number in numbers]


@pytest.mark.parametrize("is_first", [True, False], ids=["before the first snapshot", "after it"])
def test_what_an_app_before_has_left_is_taken_back_unless_it_is_still_asked(is_first):
    panes = (pane(1), pane(2, "running"), pane(3, fingerprint="beef"), pane(4, fingerprint=None))
    gone, one, running, other, unseen = keys(9, 1, 2, 3, 4)
    left = dict.fromkeys((gone, one, running, other), "f00d") | {unseen: "", "letter 1": "", "letter 2": ""}
    now = snapshot(*panes, letters=(letter(1) | {"message_id": "1"},))
    memory = None if is_first else step(None, now, PLAIN, NOW).memory
    outcome = step(memory, now, PLAIN, NOW + 60, left=left)
    # Of another dialog, or of one that cannot be told from others, it would come to mean something else.
    assert outcome.withdraw == tuple(sorted((gone, running, other, unseen, "letter 2")))
    # Its buttons are for what is asked now, and it makes no sound.
    (renewed,) = outcome.show
    assert (renewed.key, renewed.is_silent, dialog_of(renewed)) == (one, True, "f00d")
    assert step(outcome.memory, now, PLAIN, NOW + 120).show == ()
    over = step(outcome.memory, snapshot(pane(1, "running", version=4)), PLAIN, NOW + 180)
    assert over.withdraw == (one, "letter 1")


def test_what_an_app_before_has_left_stays_until_the_daemon_says_what_is_asked():
    left = {keys(1)[0]: "f00d"}
    assert step(None, snapshot(trouble="it has stopped"), PLAIN, NOW, left=left) == Outcome(None)


def test_what_was_left_by_who_is_out_of_sight_is_taken_back():
    (key,) = keys(1)
    memory = step(None, snapshot(pane(1)), PLAIN, NOW).memory
    outcome = step(memory, snapshot(pane(1, "unknown", version=4)), PLAIN, NOW, left={key: "f00d"})
    assert (outcome.show, outcome.withdraw) == ((), (key,))


def test_what_was_left_and_is_snoozed_is_taken_back():
    (key,) = keys(1)
    snoozed = PLAIN.with_snoozed(wait_key(pane(1)), NOW + 900, NOW)
    outcome = step(None, snapshot(pane(1)), snoozed, NOW, left={key: "f00d"})
    assert (outcome.show, outcome.withdraw) == ((), (key,))


# Whatever happens

STATES = ("waiting_approval", "waiting_input", "error", "completed", "running", "idle", "unknown")
MOMENT = st.tuples(
    st.floats(0.0, 15.0),
    st.lists(
        # The others ask nothing.
        st.none()
        | st.tuples(st.sampled_from(STATES[:3]), st.sampled_from(["a", "b"]))
        | st.sampled_from(STATES[3:]).map(lambda state: (state, "")),
        min_size=3,
        max_size=3,
    ),
    st.sets(st.integers(0, 2), max_size=2),
    st.sampled_from(["", "", "", "paused", "snoozed", "away"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MOMENT, min_size=1, max_size=25), st.booleans(), st.booleans())
def test_what_is_on_display_is_always_so(moments, errors, completed):
    seen = None
    chosen = Settings(notifies_errors=errors, notifies_completed=completed)
    versions, before = [1, 1, 1], [None, None, None]
    since = {}
    for pause, states, looked_at, special in moments:
        if special == "away" and seen is not None:
            assert seen.step(after=pause, trouble="gone") == Outcome(seen.memory)
            continue
        panes = []
        for number, state in enumerate(states):
            versions[number] += state != before[number]
            if state is not None:
                dialog = f"dialog {state[1]}" if state[1] else None
                panes.append(pane(number, state[0], asks=state[1], version=versions[number], fingerprint=dialog))
        before = states
        for each, state in ((pane(number), state) for number, state in enumerate(states)):
            # A wait goes on through a time in which nothing is known of it.
            if state != since.get(each["runtime_id"], (0, ()))[1] and (state or ("",))[0] != "unknown":
                since[each["runtime_id"]] = (seen.now + pause if seen else NOW), state
        fronted = {("host", f"%{number}") for number in looked_at}
        active = replace(chosen, paused_until=FOR_EVER if special == "paused" else 0.0)
        if special == "snoozed" and panes:
            active = replace(active, snoozed={wait_key(panes[0]): FOR_EVER})
        if seen is None:
            seen = Seen(*panes, chosen=active)
            assert not seen.display, "nothing at the start"
            continue
        seen.settings = active
        told_before = len(seen.shown)
        seen.step(*panes, after=pause, looked_at=fronted)
        by_key = {each["runtime_id"]: each for each in panes}
        for key, told in seen.display.items():
            state = by_key[key]["state"]
            assert state in STATES[:4]
            assert told.body == (by_key[key]["attention"] or {"summary": by_key[key]["title"]})["summary"]
            assert not active.is_snoozed(wait_key(by_key[key]), seen.now)
            assert (state != "error" or errors) and (state != "completed" or completed)
            for _, action in told.buttons[1:]:
                assert action.parameters["state_version"] == str(by_key[key]["state_version"])
        for moment, told in seen.shown[told_before:]:
            assert special != "paused"
            assert ("host", by_key[told.key]["identity"]["pane_id"]) not in fronted
            assert moment - since[told.key][0] >= QUIET - 1e-6
    for key in {told.key for _, told in seen.shown}:
        own = [moment for moment, told in seen.shown if told.key == key]
        assert all(later - earlier >= COOL_DOWN - 1e-6 for earlier, later in itertools.pairwise(own))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.floats(0, 30), st.sampled_from(["waiting_approval", "waiting_input"]))
def test_every_wait_that_lasts_is_told_exactly_once(count, gap, state):
    """If a step comes when the last one said that one is due."""
    seen = begun(pane(1))
    for number in range(count):
        asking = pane(1, state, version=2 * number + 4, asks=f"question {number}")
        due = seen.step(asking, after=gap).due
        while due is not None:
            due = seen.step(asking, after=due).due
        seen.step(pane(1, "running", version=2 * number + 5))
    assert [told.body for _, told in seen.shown] == [f"question {number}" for number in range(count)]


def test_what_is_seen_only_after_the_daemons_start_had_begun_before_the_app_came():
    """A target that takes its time is no reason for a flash of notifications at start."""
    unseen = {"state": "unknown", "reason_code": "not_observed_yet", "attention": None}
    seen = Seen(pane(1) | unseen)
    for _ in range(3):
        seen.step(pane(1) | unseen, after=1)
    seen.step(pane(1), after=1)
    seen.step(pane(1), after=60)
    assert seen.shown == []
    # What it asks next is news.
    seen.step(pane(1) | {"state": "running", "attention": None}, after=1)
    seen.step(pane(1), after=COOL_DOWN)
    seen.step(pane(1), after=QUIET)
    assert len(seen.shown) == 1


def test_a_wait_that_began_while_no_daemon_was_there_is_news_for_an_app_that_was():
    unseen = {"state": "unknown", "reason_code": "not_observed_yet", "attention": None}
    seen = begun(pane(1))
    seen.step(pane(1) | unseen, after=1)
    seen.step(pane(1), after=1)
    seen.step(pane(1), after=QUIET)
    assert len(seen.shown) == 1


def test_a_wait_that_was_told_of_is_not_told_again_after_a_restart_of_the_daemon():
    unseen = {"state": "unknown", "reason_code": "not_observed_yet", "attention": None}
    seen = begun(pane(1))
    seen.step(pane(1))
    seen.step(pane(1), after=QUIET)
    seen.step(pane(1) | unseen, after=COOL_DOWN)
    seen.step(pane(1), after=1)
    seen.step(pane(1), after=60)
    assert len(seen.shown) == 1


@pytest.mark.parametrize("waiting", [pane(1, whole=False), pane(1, brief=False), pane(1, asks="x " * 80)])
def test_a_notification_that_does_not_hold_all_of_a_request_approves_nothing(waiting):
    seen = begun(waiting)
    seen.step(waiting, after=QUIET)
    seen.step(waiting, after=QUIET)
    (told,) = seen.display.values()
    assert [label for label, _ in told.buttons] == ["Attach", "Deny"]


def test_what_has_no_room_in_a_notification_is_said_to_go_on():
    seen = begun()
    for after in (0.0, QUIET):
        seen.step(letters=(letter(1, text="first " + "x" * 400),), after=after)
    (told,) = seen.display.values()
    assert len(told.body) == 300 and told.body.endswith("…")
