"""What the app does about the bridge in agents' settings, and takes back."""

from pathlib import Path

import pytest

from AgtmuxBar.app import App
from AgtmuxBar.tree import Action
from desktop.running import Desktop, Screen
from support.home import PATIENCE, Home, wait_until

BEFORE = '{\n  "numStartups": 3\n}\n'


@pytest.fixture
def claudes(home: Home) -> Path:
    """The settings of an agent that is used here."""
    (home.folder / ".claude").mkdir()
    file = home.folder / ".claude.json"
    file.write_text(BEFORE)
    return file


def app_in(screen: Screen) -> App:
    app = App(screen, Desktop())
    app.start()
    wait_until(lambda: screen.item("bridge claude") is not None, "its tick in the menu")
    return app


def test_agents_are_told_of_the_bridge_while_the_app_is_there(home: Home, claudes: Path) -> None:
    home.agree_to_the_bridge()
    home.start()
    screen = Screen()
    app = app_in(screen)
    wait_until(lambda: screen.item("bridge claude").is_checked, "the tick")
    assert '"agtmux"' in claudes.read_text()
    app.choose(Action("quit"))
    wait_until(lambda: screen.is_ended, "the end of the app")
    wait_until(lambda: claudes.read_text() == BEFORE, "what was there before")
    app.stop()


def test_no_agent_is_told_of_the_bridge_before_the_user_has_agreed(home: Home, claudes: Path) -> None:
    home.start()
    screen = Screen()
    app = app_in(screen)
    assert not screen.item("bridge claude").is_checked and claudes.read_text() == BEFORE
    # A tick agrees, for that agent.
    app.choose(screen.item("bridge claude").action)
    wait_until(lambda: screen.item("bridge claude").is_checked, "the tick")
    app.stop()
    wait_until(lambda: claudes.read_text() == BEFORE, "what was there before")


def test_what_was_unticked_stays_so_when_the_app_comes_again(home: Home, claudes: Path) -> None:
    home.agree_to_the_bridge()
    home.start()
    screen = Screen()
    app = app_in(screen)
    wait_until(lambda: screen.item("bridge claude").is_checked, "the tick")
    app.choose(screen.item("bridge claude").action)
    wait_until(lambda: not screen.item("bridge claude").is_checked, "the tick's end")
    assert claudes.read_text() == BEFORE
    app.stop()
    again = Screen()
    second = app_in(again)
    assert not again.item("bridge claude").is_checked and claudes.read_text() == BEFORE
    second.choose(again.item("bridge claude").action)
    wait_until(lambda: again.item("bridge claude").is_checked, "the tick again")
    second.stop()
    wait_until(lambda: claudes.read_text() == BEFORE, "what was there before")


def test_what_cannot_be_ticked_is_told_with_the_reason(home: Home, claudes: Path) -> None:
    theirs = '{"mcpServers": {"agtmux": {"command": "mine"}}}'
    claudes.write_text(theirs)
    home.start()
    screen = Screen()
    app = app_in(screen)
    assert not screen.item("bridge claude").is_checked
    app.choose(screen.item("bridge claude").action)
    wait_until(lambda: screen.told, "the reason")
    assert screen.told[0][0] == "Not done" and ".claude.json" in screen.told[0][1]
    app.stop()
    assert claudes.read_text() == theirs


def test_leaving_at_once_leaves_nothing_either(home: Home, claudes: Path) -> None:
    """What is on its way to agents' settings is waited for, and taken back."""
    home.start()
    for _ in range(5):
        screen = Screen()
        app = App(screen, Desktop())
        app.start()
        wait_until(lambda app=app: app._introducing is not None, "what tells agents")
        app.stop()
        app._introducing.join(PATIENCE)
        wait_until(lambda: claudes.read_text() == BEFORE, "what was there before")
