"""The tray in a real panel, clicked, with a real notification server and the demo's agents in real tmux panes.

Pictures of what was seen are kept in build/pictures.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("jeepney", reason="the tray's own library, on Linux alone")

from desktop.desk import ICON, SIZE, Desk, desk_in
from support.home import Home, home_in, wait_until

PICTURES = Path(__file__).resolve().parents[2] / "build" / "pictures"
COMMAND = "npm install --save-dev vitest@3"
PLAN = "Move the queue to the new cluster in three steps"
QUESTION = "Which readers is the new page for?"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Home]:
    with home_in(short_tmp) as made:
        try:
            yield made
        finally:
            # Their tmux server is not this home's own, and would outlive it.
            made.run("demo", "--stop")
            made.run("down")


@pytest.fixture
def desk(home: Home) -> Iterator[Desk]:
    with desk_in(home, PICTURES) as made:
        yield made


def demo(home: Home) -> str:
    """Started anew: the first of its scenes wait for half a minute and more. Returns its tmux server."""
    done = home.run("demo", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["tmux_socket"]


def waiting(home: Home) -> dict[str, dict]:
    """By what they ask."""
    items = home.ask("GET", "/v1/panes").json["items"]
    return {item["attention"]["summary"]: item for item in items if item["state"].startswith("waiting")}


def plan(home: Home) -> dict:
    """The one that asks about it; its summary has all of the plan that fits."""
    return next((item for asks, item in waiting(home).items() if asks.startswith(PLAN)), {})


def test_with_many_sessions_the_end_of_the_menu_is_on_the_screen(home: Home, desk: Desk):
    """At 1280 × 800 eight sessions and four that wait had Notifications, the board and Quit below the edge."""
    home.start()
    demo(home)
    for number in range(8):
        name = f"session-{number}"
        home.tmux("new-session", "-d", "-s", name, "sleep 3600")
        home.tmux("set-option", "-p", "-t", name, "@agtmux_agent", "claude")
    wait_until(lambda: len({each["identity"]["session_name"] for each in panes(home)}) >= 8, "all sessions")
    wait_until(lambda: len(waiting(home)) >= 3, "agents that wait")
    desk.start_tray()
    wait_until(lambda: "Quit agtmux" in desk.labels(), "the menu")
    wait_until(lambda: "session-7" in str(desk.layout()), "the sessions")
    # Opened for the first time, it is as tall as the panel thought before it had asked.
    desk.click(*ICON)
    wait_until(desk.menus, "the open menu")
    desk.press("Escape")
    wait_until(lambda: not desk.menus(), "the closed menu")
    desk.click(*ICON)
    wait_until(lambda: desk.menus() and desk.menus()[0][3] > SIZE[1] // 3, "the whole menu")
    (_, top, _, height) = desk.menus()[0]
    desk.picture("tray-many-sessions")
    # One that is too tall is made as tall as the screen and scrolls.
    assert top + height < SIZE[1] - 1, (top, height)


def panes(home: Home) -> list[dict]:
    return list(home.ask("GET", "/v1/panes").json["items"])


def answered(home: Home, kind: str) -> dict:
    """The only action there was, once it is over."""

    def ended() -> dict | None:
        (action,) = home.ask("GET", "/v1/actions").json["items"]
        return action if action["result_code"] != "pending" else None

    action = wait_until(ended, "the end of the action")
    assert action["action_type"] == kind
    return action


def tip(desk: Desk) -> str:
    return desk.item_property("ToolTip")[3]


def open_submenu_of(desk: Desk, label: str) -> tuple[int, int, int, int]:
    """Opens the menu by a click on the icon, and by keys the submenu of the item with that label."""
    desk.click(*ICON)
    wait_until(lambda: len(desk.menus()) == 1, "the open menu")
    # The ones that can be chosen, in order; the keyboard passes over the others.
    top = [child for _, child in desk.layout()[2]]
    can_be = [properties for _, properties, _ in top if "label" in properties and "enabled" not in properties]
    place = next(number for number, properties in enumerate(can_be) if label in properties["label"][1])
    desk.press(*["Down"] * (place + 1), "Right")
    wait_until(lambda: len(desk.menus()) == 2, "the open submenu")
    return desk.menus()[1]


def test_a_click_on_approve_answers_the_dialog_in_the_pane(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    wait_until(lambda: tip(desk) == "No agent is running", "a menu without agents")
    desk.picture("1-nobody")
    server = demo(home)
    wait_until(lambda: "3 wait for you" in tip(desk), "the count of those who wait")
    wait_until(lambda: desk.amber() > 100, "the icon of a wait, in the panel")
    # What was seen on the screen is known a moment after the hook.
    wait_until(lambda: waiting(home)[COMMAND]["attention"]["fingerprint"], "the dialog on its screen")
    x, y, width, height = open_submenu_of(desk, COMMAND)
    desk.picture("2-menu")
    # Attach, Show request…, Approve once, Deny, Snooze, Copy: the third of six.
    desk.click(x + width // 3, y + int(height * 2.5 / 6))
    wait_until(lambda: COMMAND not in waiting(home), "an answer")

    def pane() -> dict:
        items = home.ask("GET", "/v1/panes").json["items"]
        (found,) = (item for item in items if item["title"] == "move the tests to vitest")
        return found

    wait_until(lambda: pane()["state"] == "running", "the agent at work again")
    screen = ("-L", server, "capture-pane", "-p", "-t", pane()["identity"]["pane_id"])
    wait_until(lambda: "added 31 packages" in home.tmux(*screen), "what it has gone on with")
    action = answered(home, "approve")
    assert action["result_code"] == "delivered" and action["about"]["actor"] == "bar"
    wait_until(lambda: "2 wait for you" in tip(desk), "the next count")
    desk.picture("3-approved")


def test_a_notification_comes_with_the_question_and_goes_when_it_is_answered_in_the_terminal(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    wait_until(lambda: tip(desk) == "No agent is running", "a menu without agents")
    server = demo(home)
    wait_until(lambda: len(desk.popups()) == 3, "three notifications on the screen")
    assert f'string "{COMMAND}' in desk.notified() and f'string "{QUESTION}' in desk.notified()
    three = desk.icon()
    desk.picture("4-notified")
    # As a user at the terminal would: the question's first option.
    asking = waiting(home)[QUESTION]
    home.tmux("-L", server, "send-keys", "-t", asking["identity"]["pane_id"], "1")
    wait_until(lambda: QUESTION not in waiting(home), "an answer in the terminal")
    wait_until(lambda: len(desk.popups()) == 2, "the end of its notification")
    assert "member=CloseNotification" in desk.notified()
    wait_until(lambda: desk.icon() != three, "the next count in the icon")
    desk.picture("5-answered")


def test_a_button_of_a_notification_answers(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    wait_until(lambda: tip(desk) == "No agent is running", "a menu without agents")
    demo(home)
    wait_until(lambda: len(desk.popups()) == 3, "three notifications on the screen")
    wait_until(lambda: plan(home)["attention"]["fingerprint"], "the dialog on its screen")
    desk.picture("6-buttons")
    # The longest text makes the widest of them. Its last button is Deny.
    x, y, width, height = max(desk.popups(), key=lambda each: each[2])
    desk.click(x + width - 40, y + height - 30)
    wait_until(lambda: not plan(home), "an answer")
    wait_until(lambda: len(desk.popups()) == 2, "the end of its notification")
    assert answered(home, "deny")["result_code"] == "delivered"


def test_the_tray_is_there_again_when_the_panel_is(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    demo(home)
    wait_until(lambda: desk.amber() > 100, "the icon of a wait, in the panel")
    desk.end_panel()
    desk.start_panel()
    wait_until(lambda: desk.amber() > 100, "the icon in the next panel")


def test_items_keep_their_numbers_while_their_labels_change(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    wait_until(lambda: tip(desk) == "No agent is running", "a menu without agents")
    before = desk.labels()
    demo(home)
    wait_until(lambda: "3 wait for you" in tip(desk), "the count of those who wait")
    after = desk.labels()
    assert {label: after[label] for label in ("Quit agtmux", "Daemon", "Settings")} == {
        label: before[label] for label in ("Quit agtmux", "Daemon", "Settings")
    }
    assert len(set(after.values())) == len(after)


def test_a_daemon_that_ends_is_shown_and_one_that_comes_back_too(home: Home, desk: Desk):
    home.run("up", "--headless")
    desk.start_tray()
    demo(home)
    wait_until(lambda: "3 wait for you" in tip(desk), "the count of those who wait")
    assert home.run("down", "--headless").returncode == 0
    wait_until(lambda: tip(desk) == "agtmuxd does not answer", "the news of its end")
    wait_until(lambda: desk.amber() == 0, "another icon")
    assert home.ask is not None and home.answering_pid() is None, "whoever stopped it had a reason"
    home.run("up", "--headless")
    wait_until(lambda: "wait for you" in tip(desk), "the count again")


def test_up_starts_the_tray_once_and_down_ends_it(home: Home, desk: Desk):
    said = home.run("up").stdout
    assert "agtmux is in the tray" in said
    wait_until(desk.items, "the tray's name on the bus")
    first = desk.items()
    home.run("up")
    assert desk.items() == first
    stopped = json.loads(home.run("down", "--json").stdout)
    assert stopped["stopped"] and stopped["stopped_app"]
    wait_until(lambda: not desk.items(), "the end of the tray")


def test_after_a_crash_the_next_tray_takes_its_place(home: Home, desk: Desk):
    home.run("up", "--headless")
    tray = desk.start_tray()
    first = desk.items()
    tray.kill()
    tray.wait(20)
    wait_until(lambda: not desk.items(), "the end of its name")
    assert "agtmux is in the tray" in home.run("up").stdout
    wait_until(desk.items, "the next tray's name on the bus")
    assert desk.items() != first
    assert home.answering_pid(), "the daemon went on"


def test_a_tray_that_is_told_to_end_takes_its_notifications_along(home: Home, desk: Desk):
    home.run("up", "--headless")
    tray = desk.start_tray()
    wait_until(lambda: tip(desk) == "No agent is running", "a menu without agents")
    demo(home)
    wait_until(lambda: len(desk.popups()) == 3, "three notifications on the screen")
    tray.send_signal(signal.SIGTERM)
    assert tray.wait(20) == 0
    wait_until(lambda: not desk.popups(), "the end of its notifications")
