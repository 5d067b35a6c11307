"""The app's core with a real daemon: what it shows, and what it does."""

import os
import shlex
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agtmux import paths
from AgtmuxBar import app as app_module
from AgtmuxBar.app import App
from AgtmuxBar.settings import Settings, Surroundings, read_settings
from AgtmuxBar.tree import Action
from desktop.running import Desktop, Screen, asks, report
from support.door import Door
from support.home import COMMANDS, PATIENCE, event, wait_until
from support.puppets import Puppet


def test_a_wait_is_counted_and_shown(home, started):
    _, screen, _ = started
    asks(home)
    wait_until(lambda: screen.menu.title == "1", "the count")
    assert "make deploy" in screen.item("wait ").label


def test_a_wait_is_told_once_and_taken_back_when_it_is_over(home, started):
    _, screen, _ = started
    asks(home)
    wait_until(lambda: screen.shown, "a notification")
    (told,) = screen.shown.values()
    assert told.body == "make deploy"
    report(home, event("%0", "state.running"))
    wait_until(lambda: not screen.shown, "its end")


def test_what_an_app_before_has_left_is_taken_back_once(home, started):
    app, screen, _ = started
    withdrawn = []
    screen.withdraw = withdrawn.append
    app.inherit({"gone": "f00d"})
    wait_until(lambda: withdrawn, "its end")
    for count in (1, 2):
        asks(home, f"step {count}")
        wait_until(lambda count=count: f"step {count}" in getattr(screen.item("wait "), "label", ""), "the question")
    assert withdrawn == ["gone"]


def test_the_count_waits_for_no_answer_of_the_desktop(home, started, monkeypatch):
    """A disk may be slow, and a tmux server busy: both are asked beside."""
    monkeypatch.setattr(app_module, "_LOOK", PATIENCE)
    app, screen, desktop = started
    desktop.may_describe.clear()
    desktop.may_look.clear()
    app.opened()
    asks(home)
    wait_until(lambda: screen.menu.title == "1", "the count")
    wait_until(lambda: app._looking is not None and app._is_describing, "the desktop being asked")
    report(home, event("%0", "state.running"))
    wait_until(lambda: not screen.menu.title, "the next count")
    asks(home, "make again")
    wait_until(lambda: screen.menu.title == "1", "the one after it")
    assert not screen.shown
    # What is told is what is asked by then, and once.
    desktop.may_look.set()
    wait_until(lambda: screen.shown, "a notification")
    (told,) = screen.shown.values()
    assert told.body == "make again"
    desktop.may_describe.set()
    wait_until(lambda: not app._is_describing, "what was found out, taken in")


def test_what_fails_beside_is_asked_again(home, started):
    app, _, desktop = started
    describe, failed = desktop.surroundings, threading.Event()

    def fail():
        failed.set()
        raise OSError("the disk is gone")

    desktop.surroundings = fail
    app.opened()
    wait_until(lambda: failed.is_set() and not app._is_describing, "the end of it")
    desktop.surroundings = describe
    app.hand(lambda: setattr(app, "_surroundings", Surroundings(has_command_line_tool=False)))
    app.opened()
    wait_until(lambda: app._surroundings.has_command_line_tool is None, "what it found out")


def test_a_desktop_that_hangs_keeps_nobody_from_hearing_the_daemon(home, started):
    app, _, desktop = started
    desktop.may_describe.clear()
    app.opened()
    wait_until(lambda: app._is_describing, "the desktop being asked")
    app.hand(lambda: setattr(app, "snapshot", replace(app.snapshot, health=None)))
    app.opened()
    wait_until(lambda: app.snapshot.health is not None, "what the daemon says")
    desktop.may_describe.set()


def test_who_looks_is_not_waited_for_for_long(home, started, monkeypatch):
    monkeypatch.setattr(app_module, "_LOOK", 0.2)
    app, screen, desktop = started
    desktop.may_look.clear()
    asks(home)
    wait_until(lambda: screen.shown, "a notification")
    # What it says after all is an old story.
    desktop.fronted = {("host", "%0")}
    desktop.may_look.set()
    wait_until(lambda: app._looking is None, "nobody who looks")
    assert screen.shown


def test_nothing_is_told_of_a_pane_that_is_looked_at(home, started):
    app, screen, desktop = started
    desktop.fronted = {("host", "%0")}
    asks(home)
    wait_until(lambda: any(told.is_settled for told in app._memory.values()), "what would be shown, judged")
    assert screen.menu.title == "1" and not screen.shown


def test_what_an_agent_writes_to_its_user_is_told_and_read_once(home, started):
    app, screen, _ = started
    says = f'"{COMMANDS}/agtmux" message send user labels'
    pane = home.pane(command=f"sh -c 'read _; {says}; exec sleep 3600'")
    wait_until(lambda: pane in home.panes(), "the agent")
    home.tmux("send-keys", "-t", pane, "Enter")
    wait_until(lambda: home.ask("GET", "/v1/messages?to=user").json["items"], "what it has written")
    app.opened()
    wait_until(lambda: screen.item("letter "), "the item")
    assert screen.item("letter ").label == f"claude-{pane[1:]} · labels · now"
    wait_until(lambda: screen.shown, "a notification")
    app.choose(screen.item("letter ").action)
    wait_until(lambda: screen.told, "the message")
    assert screen.told[0][0] == "Messages for you" and "labels" in screen.told[0][1]
    wait_until(lambda: screen.item("letter ") is None and not screen.shown, "its end")
    assert [item["status"] for item in home.ask("GET", "/v1/messages?to=user").json["items"]] == ["delivered"]


def test_attach_opens_a_terminal_with_the_daemons_words(home, started):
    app, screen, desktop = started
    app.choose(screen.item("pane ").action)
    wait_until(lambda: desktop.opened, "a terminal")
    assert "attach-session" in " ".join(desktop.opened[0])


def test_the_attach_command_is_copied(home, started):
    app, screen, desktop = started
    asks(home)
    wait_until(lambda: screen.item("wait copy"), "the item")
    app.choose(screen.item("wait copy").action)
    wait_until(lambda: desktop.copied, "what is copied")
    words = shlex.split(desktop.copied[0])
    assert words[:3] == ["agtmux", "attach", "pane:host/work/@0/%0"]
    # Pasted, it does what it says, and not to another agent that is there by then.
    done = home.run(*words[1:], "--print")
    assert "attach-session" in done.stdout, done.stderr
    done = home.run(*words[1:4], f"{words[4]}0", "--print")
    assert done.returncode == 4, done


@pytest.mark.skipif(sys.platform == "darwin", reason="a browser of its own is opened there")
def test_the_board_is_opened_in_the_browser_with_a_code_that_works_once(home, started, monkeypatch):
    app, screen, desktop = started
    home.run("board", "--no-open", "--port", "0", "--token-file")
    programs = home.folder / "bin"
    programs.mkdir()
    opened = home.folder / "opened"
    (programs / "xdg-open").write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    (programs / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":99")
    desktop.command = lambda: [str(COMMANDS / "agtmux")]
    app.choose(screen.item("board").action)
    wait_until(lambda: opened.exists() or screen.told, "a browser")
    assert screen.told == []
    url, _, code = opened.read_text().partition("#code=")
    token = (home.state / "board-token").read_text().strip()
    assert url == home.ask("GET", "/v1/board").json["url"] and code and token not in code
    door = Door(home)
    for status in (200, 401):
        assert door.ask("POST", "/v1/board/login", {"code": code}, {"Origin": door.origin}).status == status


def test_an_answer_is_for_the_dialog_that_was_shown_and_for_no_other(home):
    puppet = Puppet(home, "one")
    home.start()
    puppet.wait_for("idle")
    screen = Screen()
    app = App(screen, Desktop())
    app.start()

    def answer_to(dialog_id: str, question: str) -> Action:
        """What choosing Approve does while that is shown."""
        dialog = puppet.ask(dialog_id, question)["attention"]["fingerprint"]

        def shown() -> Action | None:
            item = screen.item("approve ")
            return item.action if item is not None and item.action.parameters["fingerprint"] == dialog else None

        return wait_until(shown, f"the answer to {question}")

    try:
        first = answer_to("d1", "touch label.txt")
        second = answer_to("d2", "rm -r labels")
        app.choose(first)
        wait_until(lambda: screen.told, "the refusal")
        assert [title for title, _ in screen.told] == ["Not approved"]
        # The next one is there to be answered, and has been given nothing.
        assert puppet.given() == []
        app.choose(second)
        wait_until(lambda: not screen.menu.title, "the end of the wait")
        assert puppet.given() == [("key", "1")]

        def results() -> list[str]:
            return sorted(item["result_code"] for item in home.ask("GET", "/v1/actions").json["items"])

        wait_until(lambda: results() == ["delivered", "refused"], "what came of both")
        assert len(screen.told) == 1
    finally:
        app.stop()


def test_a_snooze_is_kept_and_a_new_question_breaks_it(home, started):
    app, screen, _ = started
    asks(home)
    wait_until(lambda: screen.item("snooze 1h"), "the item")
    app.choose(screen.item("snooze 1h").action)
    wait_until(lambda: screen.menu.title == "" and screen.item("snoozed pane"), "the snooze")
    assert read_settings().snoozed
    assert Path(paths.state_directory(), "bar.json").stat().st_mode & 0o777 == 0o600
    report(home, event("%0", "state.running"))
    asks(home, "another")
    wait_until(lambda: screen.menu.title == "1", "the count")


def test_switches_are_kept(home, started):
    app, screen, _ = started
    app.choose(screen.item("switch has_sound").action)
    app.choose(Action("pause", {"seconds": "3600"}))
    app.choose(Action("terminal", {"name": "kitty"}))
    wait_until(lambda: read_settings().terminal == "kitty" and read_settings().paused_until, "what was chosen")
    wait_until(lambda: not read_settings().has_sound, "what was chosen")
    assert read_settings().paused_until == pytest.approx(time.time() + 3600, abs=30)


def test_a_request_is_shown_whole(home, started):
    app, screen, _ = started
    asks(home)
    wait_until(lambda: screen.item("wait show"), "the item")
    app.choose(screen.item("wait show").action)
    wait_until(lambda: screen.told, "a text")
    assert "make deploy" in screen.told[0][1]


def test_what_only_the_screen_says_is_shown_with_the_request(home):
    home.pane(command="printf 'first move the queue\\n------\\n\\n| then the workers   \\n------\\n'; sleep 3600")
    home.start()
    screen = Screen()
    app = App(screen, Desktop())
    app.start()
    try:
        wait_until(lambda: screen.item("pane ") is not None, "the pane of an agent in the menu")
        asks(home, "Is this the plan to follow?")
        wait_until(lambda: screen.item("wait show"), "the item")
        app.choose(screen.item("wait show").action)
        wait_until(lambda: screen.told, "a text")
        title, text = screen.told[0]
        assert title == "claude in host-work %0" and title not in text
        assert "Is this the plan to follow?" in text
        assert text.endswith("?\n\nfirst move the queue\n\n| then the workers")
    finally:
        app.stop()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"has_sound": 3, "snoozed": {"a": "b"}, "paused_until": true}'])
def test_settings_that_cannot_be_read_count_as_not_set(tmp_path, content):
    file = tmp_path / "bar.json"
    file.write_text(content)
    assert read_settings(file) == Settings()
