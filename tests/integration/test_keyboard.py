"""A key goes to what was looked at or to nobody: each thing that may have changed since, changed alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agtmux.probe import keyboard, processes
from agtmux.probe.keyboard import Front, HinderedError, Screen
from agtmux.probe.panes import Inhabited, MovedError
from support.home import PATIENCE, Home, wait_until

MARKED = "^❯ [0-9]+[.]"


@dataclass
class Scene:
    """A program that shows a few lines and writes down every byte it is given, and how it was looked at."""

    home: Home
    pane: str
    who: Inhabited
    front: Front
    screen: Screen = field(default_factory=lambda: Screen([(2, "> hello")], 0, MARKED, False, []))

    def press(self) -> bool:
        socket = self.home.tmux("display-message", "-p", "#{socket_path}")
        return keyboard.press(socket, self.who, self.front, self.screen, "y", PATIENCE)

    def tmux(self, verb: str, *words: str) -> None:
        self.home.tmux(verb, "-t", self.pane, *words)

    def shows(self, line: str) -> None:
        """Below what is there."""
        self.home.tmux("run-shell", f"printf '{line}\\r\\n' > {self.about('#{pane_tty}')}")
        wait_until(lambda: line in self.home.tmux("capture-pane", "-p", "-t", self.pane), line)

    def about(self, what: str) -> str:
        return self.home.tmux("display-message", "-p", "-t", self.pane, what)

    def given(self) -> str:
        """All that came, once it has: a last key of the user's own comes after it."""
        if self.about("#{pane_in_mode}") == "1":
            self.tmux("send-keys", "-X", "cancel")
        self.tmux("set-option", "-w", "synchronize-panes", "off")
        self.tmux("select-pane", "-e")
        self.tmux("send-keys", ".")
        log = self.home.folder / "given"
        wait_until(lambda: log.read_text().endswith("."), "the last key")
        return log.read_text().removesuffix(".")


@pytest.fixture
def scene(home: Home) -> Scene:
    shown = "printf 'earlier\\r\\n> hello\\r\\n'"
    pane = home.pane(None, f"sh -c \"stty raw -echo; {shown}; exec cat > '{home.folder}/given'\"")
    asked = "#{pid}-#{start_time}\t#{pane_pid}\t#{pane_current_command}"

    def is_up() -> bool:
        return home.tmux("display-message", "-p", "-t", pane, "#{pane_current_command}") == "cat"

    wait_until(is_up, "the program")
    wait_until(lambda: "> hello" in home.tmux("capture-pane", "-p", "-t", pane), "its lines")
    server, pid, command = home.tmux("display-message", "-p", "-t", pane, asked).split("\t")
    process = processes.read_one(int(pid))
    assert process is not None
    front = Front((process.pid, process.started), process.tpgid, command)
    return Scene(home, pane, Inhabited(server, pane, process.pid), front)


def test_where_nothing_has_changed_the_key_is_pressed(scene: Scene) -> None:
    scene.shows("and more")
    assert scene.press()
    assert scene.given() == "y"


def _another_start(scene: Scene) -> None:
    pid, started = scene.front.agent
    scene.front = scene.front._replace(agent=(pid, started - 10))


def _another_group(scene: Scene) -> None:
    scene.front = scene.front._replace(group=scene.front.group + 1)


def _another_command(scene: Scene) -> None:
    scene.front = scene.front._replace(command="vim")


def _another_process(scene: Scene) -> None:
    # As where the system does not tell of one process alone.
    scene.front = scene.front._replace(agent=None, group=None)
    scene.who = scene.who._replace(pid=scene.who.pid + 1)


def _another_server(scene: Scene) -> None:
    scene.who = scene.who._replace(server="1-1")


@pytest.mark.parametrize(
    "change", [_another_start, _another_group, _another_command, _another_process, _another_server]
)
def test_nobody_else_gets_the_key(scene: Scene, change: Callable[[Scene], None]) -> None:
    change(scene)
    with pytest.raises(MovedError):
        scene.press()
    assert scene.given() == ""


def _copy_mode(scene: Scene) -> None:
    scene.tmux("copy-mode")


def _input_off(scene: Scene) -> None:
    scene.tmux("select-pane", "-d")


def _synchronized(scene: Scene) -> None:
    scene.tmux("split-window", "-d", "cat")
    scene.tmux("set-option", "-w", "synchronize-panes", "on")


@pytest.mark.parametrize(
    ("change", "why"), [(_copy_mode, "copy mode"), (_input_off, "switched off"), (_synchronized, "all of its panes")]
)
def test_tmux_gets_no_key_that_it_would_keep_or_give_to_others(
    scene: Scene, change: Callable[[Scene], None], why: str
) -> None:
    change(scene)
    with pytest.raises(HinderedError, match=why):
        scene.press()
    assert scene.given() == ""


@pytest.mark.parametrize(
    "looked_at",
    [
        {"lines": [(3, "> hello")]},
        {"lines": [(2, "> hell")]},
        {"history": 1},
        {"telling": [(2, "> hullo")]},
    ],
)
def test_at_another_screen_no_key_is_pressed(scene: Scene, looked_at: dict[str, Any]) -> None:
    scene.screen = scene.screen._replace(**looked_at)
    assert not scene.press()
    assert scene.given() == ""


def test_where_an_option_is_marked_by_now_no_key_is_pressed_though_the_prompt_is_still_there(scene: Scene) -> None:
    scene.shows("❯ 1. Yes")
    assert not scene.press()
    assert scene.given() == ""
