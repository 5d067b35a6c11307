"""The tray is started, left, killed and started again, with its daemon under systemd: agents' settings and what starts
at login are as promised each time."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("jeepney", reason="the tray's own library, on Linux alone")

from agtmux.probe.peer import is_answered
from AgtmuxBar.linux import login
from desktop.desk import Desk
from support.home import COMMANDS, Home, home_in, wait_until

CLAUDE = '{\n  // mine\n  "numStartups": 7\n}\n'
CODEX = 'model = "gpt-5"\n\n[tui]\nnotifications = true\n'

pytestmark = pytest.mark.timeout(180)


class Life:
    """A user of two agents, with a session bus and a systemd, and no panel that would have to be drawn."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.systemd = home.folder / "run" / "systemd"
        self.systemd.mkdir(parents=True)
        (self.systemd / "private").touch()
        programs = home.folder / "bin"
        programs.mkdir()
        standin = Path(__file__).with_name("systemctl.py")
        (programs / "systemctl").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{standin}" {self.systemd} "$@"\n')
        (programs / "systemctl").chmod(0o755)
        home.env |= {
            "PATH": f"{programs}:{COMMANDS}:/usr/bin:/bin",
            "XDG_RUNTIME_DIR": str(self.systemd.parent),
            "AGTMUX_SOCKET": str(home.socket),
        }
        (home.folder / ".claude").mkdir()
        (home.folder / ".claude.json").write_text(CLAUDE)
        home.agree_to_the_bridge()
        (home.folder / ".codex").mkdir()
        (home.folder / ".codex" / "config.toml").write_text(CODEX)
        self.desk = Desk(home, home.folder, dark=False)
        self.desk.start_bus()
        self.tray: subprocess.Popen[str] | None = None

    def start(self, *words: str) -> int:
        """The tray, until it has told the agents; the daemon's pid."""
        command = words or (sys.executable, "-m", "AgtmuxBar.linux")
        self.tray = self.home.spawn(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.desk.items, "the tray's name on the bus")
        wait_until(lambda: "claude" in self.desk.labels(), "the bridge in the menu")
        wait_until(self.are_told, "the bridge in agents' settings")
        return self.daemon()

    def start_as_at_login(self) -> int:
        """By the words of the autostart entry."""
        (line,) = [each for each in self.entry.read_text().splitlines() if each.startswith("Exec=")]
        return self.start(*shlex.split(line.removeprefix("Exec=")))

    def daemon(self) -> int:
        pid = self.home.answering_pid()
        assert pid is not None
        return pid

    def ends(self, status: int = 0) -> None:
        assert self.tray is not None and self.tray.wait(30) == status
        wait_until(lambda: not self.desk.items(), "the end of its name")

    def kill(self, *pids: int) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_answered(str(self.home.socket)) or not set(pids) - {self.tray.pid}, "their end")

    # What is on the disk

    @property
    def entry(self) -> Path:
        return self.home.folder / ".config" / "autostart" / login.ENTRY

    @property
    def unit(self) -> Path:
        return self.home.folder / ".config" / "systemd" / "user" / login.UNIT

    @property
    def link(self) -> Path:
        return self.unit.parent / "default.target.wants" / login.UNIT

    def files(self) -> dict[str, bytes]:
        """All that starts something by itself."""
        return {str(path): path.read_bytes() for path in (self.entry, self.unit, self.link) if os.path.lexists(path)}

    def systemds(self) -> int | None:
        """The process that systemd started last."""
        file = self.systemd / login.UNIT
        return int(file.read_text()) if file.exists() else None

    def settings(self) -> tuple[str, str]:
        return (self.home.folder / ".claude.json").read_text(), (self.home.folder / ".codex/config.toml").read_text()

    def are_told(self) -> bool:
        """Both, of this bridge and daemon, and once."""
        claude, codex = self.settings()
        if claude.count("agtmux-mcp") != 1 or codex.count("agtmux-mcp") != 1:
            return False
        entry = tomllib.loads(codex)["mcp_servers"]["agtmux"]
        assert entry["command"] == str(COMMANDS / "agtmux-mcp") and entry["args"] == ["--socket", str(self.home.socket)]
        noted = json.loads((self.home.state / "mcp-state.json").read_text())
        return noted["agents"] == ["claude", "codex"] and noted["pid"] == self.home.answering_pid()

    def are_as_they_were(self) -> bool:
        return self.settings() == (CLAUDE, CODEX)


@pytest.fixture
def life(short_tmp: Path) -> Iterator[Life]:
    if sys.platform != "linux":
        pytest.skip("trays are Linux's")
    with home_in(short_tmp) as home:
        yield Life(home)


def test_start_quit_crash_and_start_again(life: Life) -> None:
    # Started: agents are told, and nothing starts by itself.
    first = life.start()
    assert life.files() == {} and life.systemds() is None

    # Left: agents' settings are as they were, and the daemon stays.
    life.desk.choose("Quit agtmux")
    life.ends()
    assert life.are_as_they_were()
    assert life.daemon() == first and life.files() == {}

    # Launch at login: three files, and no second daemon beside the one that runs.
    assert life.start() == first
    life.desk.choose("Launch at login")
    wait_until(lambda: len(life.files()) == 3, "the entry, the unit and its link")
    written = life.files()
    life.desk.choose("Quit and stop the daemon")
    life.ends()
    assert life.are_as_they_were() and life.home.lock_holder() is None
    assert life.files() == written and life.systemds() is None

    # At the next login the daemon is systemd's.
    second = life.start_as_at_login()
    assert life.systemds() == second
    life.desk.choose("Quit agtmux")
    life.ends()
    assert life.are_as_they_were()
    assert life.daemon() == second and life.files() == written

    # Both killed: what is left in agents' settings is cleared up and made good by the next ones, once.
    assert life.start_as_at_login() == second
    life.kill(life.tray.pid, second)
    life.ends(-signal.SIGKILL)
    assert "agtmux-mcp" in life.settings()[0] and life.files() == written
    third = life.start_as_at_login()
    assert third != second and life.systemds() == third
    assert life.files() == written

    # The tray alone: its daemon goes on, agents know it, and the next tray finds it.
    life.tray.kill()
    life.ends(-signal.SIGKILL)
    assert life.are_told() and life.daemon() == third
    assert life.start_as_at_login() == third

    # The daemon alone: the tray says so, and has systemd start another, which tells agents anew.
    life.kill(third)
    wait_until(lambda: "Start the daemon" in life.desk.labels(), "the news of its end")
    life.desk.choose("Start the daemon")
    wait_until(lambda: life.home.answering_pid() not in (None, third), "another daemon")
    assert life.systemds() == life.daemon()
    wait_until(life.are_told, "the bridge in agents' settings")

    # Ended with the session, by a signal: as if it had been left.
    fourth = life.daemon()
    life.tray.terminate()
    life.ends()
    assert life.are_as_they_were()
    assert life.daemon() == fourth and life.files() == written

    # Turned off and left for good: nothing is there that was not before.
    life.start_as_at_login()
    life.desk.choose("Launch at login")
    wait_until(lambda: not life.files(), "the end of what starts at login")
    life.desk.choose("Quit and stop the daemon")
    life.ends()
    assert life.are_as_they_were() and life.home.lock_holder() is None
    assert not (life.home.state / "mcp-state.json").exists() and not life.home.socket.exists()


def test_who_leaves_after_its_daemon_was_killed_leaves_settings_as_they_were(life: Life) -> None:
    life.kill(life.start())
    wait_until(lambda: "Start the daemon" in life.desk.labels(), "the news of its end")
    assert "agtmux-mcp" in life.settings()[0]
    life.desk.choose("Quit agtmux")
    life.ends()
    assert life.are_as_they_were() and not (life.home.state / "mcp-state.json").exists()


def test_agtmux_down_ends_both_and_leaves_settings_as_they_were(life: Life) -> None:
    life.start()
    stopped = json.loads(life.home.run("down", "--json").stdout)
    assert stopped["stopped_app"] == life.tray.pid and stopped["stopped"]
    life.ends()
    assert life.are_as_they_were() and life.files() == {}


def test_a_daemon_from_a_terminal_is_not_fought_by_systemds(life: Life) -> None:
    """Its unit is there, but somebody was first."""
    life.start()
    life.desk.choose("Launch at login")
    wait_until(lambda: len(life.files()) == 3, "what starts at login")
    life.desk.choose("Quit and stop the daemon")
    life.ends()
    life.home.run("up", "--headless")
    own = life.daemon()
    (life.systemd / "calls").write_text("")
    assert life.start_as_at_login() == own
    assert (life.systemd / "calls").read_text() == ""
    # Restarted from the menu it is systemd's, and there is one.
    life.desk.choose("Restart")
    wait_until(lambda: life.home.answering_pid() not in (None, own), "another daemon")
    assert life.systemds() == life.daemon()
    wait_until(life.are_told, "the bridge in agents' settings")
    life.desk.choose("Quit and stop the daemon")
    life.ends()
    assert life.are_as_they_were() and life.home.lock_holder() is None
