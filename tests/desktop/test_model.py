"""What the menu says, whatever agents say."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agtmux.cli.panes import SIGNS
from AgtmuxBar.deeds import NAMES
from AgtmuxBar.labels import request_text
from AgtmuxBar.model import (
    GLYPHS,
    MOST_PANES,
    MOST_ROWS,
    MOST_SESSIONS,
    MOST_WAITING,
    build,
    next_change,
)
from AgtmuxBar.settings import FOR_EVER, Settings, Surroundings
from AgtmuxBar.snapshot import Snapshot, wait_key
from AgtmuxBar.tree import Kind, Menu
from desktop.builders import HEALTH, NOW, letter, pane, snapshot, some_snapshot, target

EVERYTHING = Surroundings(
    terminals=(("xterm", "xterm"), ("kitty", "kitty")),
    is_launched_at_login=False,
    has_command_line_tool=False,
    bridges={"claude": True, "codex": False},
    has_board=True,
)


def menu_of(known: Snapshot, chosen: Settings | None = None, around: Surroundings | None = None) -> Menu:
    return build(known, chosen or Settings(), around or Surroundings(), NOW)


def labels(menu: Menu) -> list[str]:
    return [item.label for item in menu.walk()]


def item(menu: Menu, start: str):
    return next(each for each in menu.walk() if each.key.startswith(start))


# The bar


@pytest.mark.parametrize(
    ("known", "icon", "title"),
    [
        (Snapshot(), "down", ""),
        (snapshot(), "idle", ""),
        (snapshot(pane(1, "idle"), pane(2, "completed")), "idle", ""),
        (snapshot(pane(1, "running"), pane(2, "idle")), "running", ""),
        (snapshot(pane(1), pane(2, "waiting_input"), pane(3, "running")), "waiting", "2"),
        (snapshot(pane(1), trouble="it has stopped"), "down", ""),
    ],
)
def test_the_icon_and_the_count_say_it_at_a_glance(known, icon, title):
    menu = menu_of(known)
    assert (menu.icon, menu.title) == (icon, title)
    assert menu.description


def test_states_have_the_signs_of_the_table():
    assert {state: sign for state, (sign, _) in SIGNS.items()} == GLYPHS
    assert list(SIGNS) == list(GLYPHS)


# Who waits


def test_who_waits_comes_first_with_agent_place_question_and_age():
    menu = menu_of(some_snapshot())
    waiting = [each for each in menu.items if each.key.startswith("wait ")]
    assert [each.label for each in waiting] == [
        "claude · host-work %1 · make deploy · 4m",
        "codex · host-work %2 · Which database? · now",
    ]
    assert [each.glyph for each in waiting] == ["!", "?"]
    assert [child.label for child in waiting[0].children] == [
        *("Attach", "Show request…", "Approve once", "Deny", "Snooze", "Copy attach command"),
    ]
    # A question has no yes and no.
    assert [child.label for child in waiting[1].children] == [
        "Attach",
        "Show request…",
        "Snooze",
        "Copy attach command",
    ]


@pytest.mark.parametrize("name", ["approve", "deny"])
def test_an_answer_carries_what_was_shown(name):
    asking = pane(1, version=7, fingerprint="beef", runtime="cafe")
    chosen = item(menu_of(snapshot(asking)), f"{name} ").action
    assert chosen.name == name
    assert dict(chosen.parameters) == {
        "ref": asking["ref"],
        "runtime_id": "cafe",
        "state": "waiting_approval",
        "state_version": "7",
        "fingerprint": "beef",
    }


@pytest.mark.parametrize("change", [{"version": 8}, {"fingerprint": "dead"}])
def test_another_dialog_has_an_answer_of_its_own(change):
    """So that what is under the pointer never changes its meaning."""
    before, after = (menu_of(snapshot(pane(1, **each))) for each in ({}, change))
    assert item(before, "approve ").key != item(after, "approve ").key
    assert item(before, "wait ").key == item(after, "wait ").key


def test_what_is_snoozed_does_not_count_and_is_still_told():
    asking = pane(1)
    menu = menu_of(snapshot(asking, pane(2)), Settings(snoozed={wait_key(asking): NOW + 60}))
    assert menu.title == "1"
    assert item(menu, "snoozed pane").label.startswith("claude · host-work %1")
    assert item(menu, "wake ").action.parameters["seconds"] == "0"
    again = menu_of(snapshot(pane(1, version=4)), Settings(snoozed={wait_key(asking): FOR_EVER}))
    assert again.title == "1", "it asks anew, and nobody has put that off"


def test_what_agents_have_written_is_there_until_it_is_read():
    letters = tuple(
        letter(number, text=f"part {number} is done\x1b[31m", age=60.0 * (6 - number)) for number in range(6)
    )
    menu = menu_of(snapshot(pane(1, "running"), letters=letters))
    assert menu.items[0].label == "Nobody waits for you · 6 messages for you · 1 running"
    assert (menu.title, menu.icon) == ("", "running"), "nobody is kept waiting by it"
    shown = [each for each in menu.items if each.key.startswith("letter ")]
    assert [each.label for each in shown] == [
        f"claude-3 · part {number} is done [31m · {6 - number}m" for number in range(2, 6)
    ]
    assert item(menu, "more letters").label == "… 2 more"
    assert {each.action.name for each in shown} == {"read"}
    assert next_change(snapshot(letters=letters), Settings(), NOW) == 60.0
    assert menu_of(snapshot(letters=letters, trouble="gone")).items[0].label == "agtmuxd does not answer"


# Where they are


def test_sessions_have_their_windows_and_panes_below():
    menu = menu_of(some_snapshot())
    session = item(menu, "session host/work")
    assert session.label == "host-work · 3 agents, 2 waiting"
    assert [(child.kind, child.label) for child in session.children] == [
        (Kind.HEADER, "@1 shop"),
        (Kind.ITEM, "claude %1 · make deploy"),
        (Kind.HEADER, "@2 cart"),
        (Kind.ITEM, "codex %2 · Which database?"),
        (Kind.ITEM, "gemini %3 · fix the cart"),
    ]
    assert all(child.action.name == "attach" for child in session.children if child.kind is Kind.ITEM)


def test_targets_that_cannot_be_reached_are_grey_and_say_why():
    found = item(menu_of(some_snapshot()), "target vm2")
    assert not found.is_enabled
    assert found.label == "vm2: ssh: connect to host vm2: connection refused"


def test_without_a_daemon_nothing_old_is_shown():
    menu = menu_of(some_snapshot(trouble="it has stopped"))
    assert labels(menu)[:3] == ["agtmuxd does not answer", "it has stopped", "Start the daemon"]
    assert not any("make deploy" in label for label in labels(menu))
    assert item(menu, "quit")


def test_five_hundred_panes_stay_usable():
    panes = [pane(number, "waiting_approval", session=f"s{number % 3}") for number in range(500)]
    menu = menu_of(snapshot(*panes))
    assert menu.title == "500"
    assert len(menu.items) < 60
    assert f"… {500 - MOST_WAITING} more" in labels(menu)
    session = item(menu, "session host/s0")
    assert f"… {167 - MOST_PANES} more" in [child.label for child in session.children]
    sessions = menu_of(snapshot(*(pane(number, "idle", session=f"s{number}") for number in range(500))))
    assert f"… {500 - MOST_SESSIONS} more" in labels(sessions)


@pytest.mark.parametrize("waiting", [0, 1, 5, 10, 30])
@pytest.mark.parametrize("others", [0, 1, 4, 9])
@pytest.mark.parametrize("sessions", [1, 3, 8, 40])
def test_the_end_of_the_menu_is_never_below_the_edge_of_the_screen(waiting: int, others: int, sessions: int):
    states = ["waiting_approval"] * waiting + ["error"] * others + ["idle"] * sessions
    panes = [pane(number, state, session=f"s{number % sessions}") for number, state in enumerate(states)]
    menu = menu_of(snapshot(*panes))
    rows = [each for each in menu.items if each.kind is not Kind.SEPARATOR and not each.is_alternate]
    fixed = ("summary", "notifications", "board", "daemon", "bridge", "settings", "quit")
    assert len([each for each in rows if each.key not in fixed]) <= MOST_ROWS
    assert rows[-1].key == "quit"
    # Nobody is lost: whoever has no row of its own is in a submenu.
    assert item(menu, "session host/s0")
    # Who waits never gives way.
    assert sum(each.key.startswith("wait ") for each in menu.items) == min(waiting, MOST_WAITING)


# The rest


def test_what_the_desktop_cannot_tell_is_not_shown():
    found = labels(menu_of(some_snapshot()))
    for label in ("MCP bridge", "Open the board", "Launch at login", "Install the command-line tool…", "Terminal"):
        assert label not in found
        assert label in labels(menu_of(some_snapshot(), around=EVERYTHING))


def test_ticks_say_what_is_on_and_turn_it():
    menu = menu_of(some_snapshot(), Settings(terminal="kitty"), EVERYTHING)
    assert [(item(menu, f"bridge {name}").is_checked) for name in ("claude", "codex")] == [True, False]
    assert dict(item(menu, "bridge codex").action.parameters) == {"agent": "codex", "on": "1"}
    assert dict(item(menu, "bridge claude").action.parameters) == {"agent": "claude", "on": ""}
    assert item(menu, "terminal kitty").is_checked and not item(menu, "terminal default").is_checked
    assert item(menu, "login").is_checked is False


def test_a_pause_says_how_long_it_lasts():
    paused = menu_of(some_snapshot(), Settings(paused_until=NOW + 2500))
    assert "Paused, 42m left" in labels(paused)
    assert item(paused, "resume").action.parameters["seconds"] == "0"
    assert "Paused" in labels(menu_of(some_snapshot(), Settings(paused_until=FOR_EVER)))
    assert "Pause for 1 hour" in labels(menu_of(some_snapshot(), Settings(paused_until=NOW - 1)))


def test_every_action_is_one_that_can_be_done():
    known = some_snapshot(letters=(letter(),))
    menus = [
        menu_of(known, Settings(snoozed={wait_key(each): FOR_EVER for each in known.waits()}), EVERYTHING),
        menu_of(known, around=EVERYTHING),
        menu_of(known, Settings(paused_until=FOR_EVER)),
        menu_of(replace(known, trouble="gone")),
    ]
    assert {each.action.name for menu in menus for each in menu.walk() if each.action} == NAMES - {"pick"}


def test_the_request_is_told_whole():
    text = request_text(pane(1, asks="make deploy", detail="first line\nsecond \x1b[31mline", options=("Yes", "No")))
    assert "make deploy" in text and "second  [31mline" in text and "2. No" in text
    assert "\x1b" not in text


def test_nothing_is_hidden_behind_blanks():
    label = item(menu_of(snapshot(pane(1, asks="ls" + " " * 500 + "; rm -rf /"))), "wait ").label
    assert "ls ; rm -rf /" in label
    assert "…" in item(menu_of(snapshot(pane(1, asks="ls " + "x" * 500))), "wait ").label


# Time


def test_a_menu_changes_by_itself_at_most_once_a_minute():
    for age in (0, 1, 59, 60, 3599):
        known = snapshot(pane(1, age=age))
        left = next_change(known, Settings(), NOW)
        assert 0 < left <= 60
        before = menu_of(known)
        assert build(known, Settings(), Surroundings(), NOW + left - 0.01) == before
    assert next_change(snapshot(pane(1, "running")), Settings(), NOW) is None
    assert next_change(snapshot(pane(1), trouble="gone"), Settings(), NOW) is None


def test_a_pause_and_a_snooze_end_in_time():
    asking = pane(1, "idle")
    assert next_change(snapshot(asking), Settings(paused_until=NOW + 5), NOW) == 5
    waiting = pane(1, age=0)
    assert next_change(snapshot(waiting), Settings(snoozed={wait_key(waiting): NOW + 7}), NOW) == 7


# Whatever comes

TEXT = st.text(max_size=90) | st.sampled_from(
    ["", "\x1b]0;x\x07", "日本語" * 40, "a\nb\tc", "x" * 5000, "\u202ereversed"]
)
PANES = st.lists(
    st.builds(
        pane,
        st.integers(0, 60),
        st.sampled_from(list(GLYPHS)),
        asks=TEXT | st.none(),
        agent=st.sampled_from(["claude", "codex", "a_b", "ä" * 30]),
        target=st.sampled_from(["host", "vm1", "vm-2"]),
        session=TEXT.filter(bool),
        window=st.integers(0, 5).map("@{}".format),
        age=st.floats(-5, 1e7),
        version=st.integers(0, 9),
        fingerprint=st.none() | st.just("f00d"),
        title=TEXT,
        detail=st.none() | TEXT,
    ),
    max_size=60,
    # The daemon has one runtime a pane, and a pane once.
    unique_by=(lambda each: each["runtime_id"],),
)


@settings(max_examples=150, deadline=None)
@given(PANES, st.lists(TEXT.map(lambda text: target("vm9", text)), max_size=1), st.booleans())
def test_keys_are_unique_and_labels_legible_whatever_agents_say(panes, failing, is_up):
    known = snapshot(*panes, targets=tuple(failing), trouble=None if is_up else "gone", health=HEALTH)
    menu = menu_of(known, Settings(), EVERYTHING)
    every = list(menu.walk())
    keys = [each.key for each in every]
    assert len(keys) == len(set(keys))
    for each in every:
        assert each.label.replace("\u200e", "").isprintable()
        assert len(each.label) <= 170
        assert each.kind is not Kind.ITEM or each.label
        # What heads or separates is not chosen, and what is chosen leads somewhere.
        assert (each.kind is Kind.ITEM) or (each.action is None and not each.children)
    if is_up:
        waits = [each for each in panes if each["state"].startswith("waiting")]
        assert menu.title == (str(len(waits)) if waits else "")
        assert menu.icon == "waiting" if waits else menu.icon != "waiting"
    assert build(known, Settings(), EVERYTHING, NOW) == menu


def test_who_waits_is_among_those_of_a_large_session_that_find_room():
    panes = [pane(number, "idle", window=f"@{number // 4}") for number in range(60)]
    panes[57] = pane(57, "waiting_approval", window="@14")
    menu = build(snapshot(*panes), Settings(), Surroundings(), NOW)
    (session,) = [item for item in menu.items if item.key.startswith("session ")]
    shown = [item.key.split()[1].rpartition("/")[2] for item in session.children if item.key.startswith("pane ")]
    assert len(shown) == MOST_PANES and "%57" in shown
    assert shown == sorted(shown, key=lambda name: int(name[1:])), "each where it is"
    assert session.children[-1].label == f"… {60 - MOST_PANES} more"


def test_a_crowd_fits_on_a_screen():
    """Rows of 25 pixels, of which a screen of 1080 has 43."""
    states = ("waiting_approval", "error", "running", "idle", "unknown")
    panes = [pane(number, states[number % 5], session=f"s{number % 40}") for number in range(500)]
    menu = menu_of(snapshot(*panes), None, EVERYTHING)
    rows = [item for item in menu.items if item.kind is not Kind.SEPARATOR and not item.is_alternate]
    assert len(rows) <= 43


def test_the_name_of_a_target_that_cannot_be_reached_is_said_once():
    known = snapshot(targets=(target("vm9", "vm9: 10.0.0.9 cannot be reached"),))
    assert item(menu_of(known), "target vm9").label == "vm9: 10.0.0.9 cannot be reached"


def test_a_target_with_many_waits_does_not_push_out_another(count=200):
    def on(target, number):
        made = pane(number)
        return made | {
            "identity": made["identity"] | {"target": target, "session_name": f"s{number}"},
            "ref": f"{target}-{number}",
            "runtime_id": f"{target}-{number}",
        }

    waits = [*(on("vm1", number) for number in range(count)), on("host", 500), on("vm2", 501)]
    menu = build(snapshot(*waits), Settings(), Surroundings(), NOW)
    shown = [item.key.split()[1] for item in menu.items if item.key.startswith("wait ")]
    assert {"host-500", "vm2-501"} <= set(shown)
    assert len(shown) == 10
    sessions = [each.key for each in menu.walk() if each.key.startswith("session ")]
    assert {"session host/s500", "session vm2/s501"} <= set(sessions)


# What is approved is what is shown


def offered(waiting: dict) -> list:
    """The items with which it may be approved, with those that stand around them."""
    [asking] = [each for each in menu_of(snapshot(waiting)).walk() if each.key.startswith("wait ") and each.children]
    return [each for each in asking.children if each.label.startswith(("Approve", "Review"))]


def test_a_short_request_is_approved_where_it_stands():
    [approve] = offered(pane(1, asks="make deploy"))
    assert approve.label == "Approve once" and approve.action.name == "approve"


def test_a_longer_request_is_approved_below_all_of_it():
    detail = "Edit file\nlabel.py\n- weight = 1\n+ weight = 2\n" + "\n".join(f"+ line {n}" for n in range(20))
    for waiting in (pane(1, asks="x" * 90), pane(1, asks="label.py", detail=detail, brief=False)):
        [review] = offered(waiting)
        *text, approve = review.children
        assert (review.label, review.action, approve.label) == ("Review…", None, "Approve once")
        assert not any(line.is_enabled for line in text)
        shown = "".join(line.label for line in text)
        assert "".join((waiting["attention"]["detail"] or waiting["attention"]["summary"]).split("\n")) == shown


@pytest.mark.parametrize("waiting", [pane(1, whole=False), pane(1, brief=False, detail="x\n" * 40)])
def test_a_request_that_cannot_be_shown_whole_is_approved_nowhere_but_in_its_pane(waiting):
    [review] = offered(waiting)
    assert (review.label, review.action.name) == ("Review in its pane…", "attach")
    assert not any(each.label == "Approve once" for each in menu_of(snapshot(waiting)).walk())


def test_a_hint_that_is_cut_says_so():
    menu = menu_of(snapshot(pane(1, detail="x\n" * 900, brief=False)))
    [asking] = [each for each in menu.walk() if each.key.startswith("wait ") and each.children]
    assert len(asking.hint) == 600 and asking.hint.endswith("…")
