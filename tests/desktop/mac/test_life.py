"""The app is started, left, killed and started again, with its daemon under launchd: agents' settings, launchd's file
and the lock are as promised each time."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import fetched
import pytest

from AgtmuxBar import single
from support.home import COMMANDS, home_in, wait_until

CLAUDE = '{\n  // mine\n  "numStartups": 7\n}\n'
CODEX = 'model = "gpt-5"\n\n[tui]\nnotifications = true\n'

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def home(short_tmp, monkeypatch):
    with home_in(short_tmp) as made:
        # Somebody's who uses two agents, and has no others in the PATH.
        made.env["PATH"] = f"{COMMANDS}:/usr/bin:/bin"
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        (made.folder / ".claude").mkdir()
        (made.folder / ".claude.json").write_text(CLAUDE)
        (made.folder / ".codex").mkdir()
        (made.folder / ".codex" / "config.toml").write_text(CODEX)
        # The first window has been answered.
        made.state.mkdir(mode=0o700, exist_ok=True)
        (made.state / "bar-welcomed").touch()
        yield made


class Apps:
    """Each life of the app, and what is there of it on the disk."""

    def __init__(self, home, folder):
        self.home = home
        self.launchd = folder / "launchd"
        self.launchd.mkdir()
        self._bundle = folder / "AgtmuxBar.app"
        scripts = {"Resources/bin/agtmux": "agtmux.cli.main", "MacOS/agtmuxd": "agtmux.daemon"}
        for place, module in scripts.items():
            script = self._bundle / "Contents" / place
            script.parent.mkdir(parents=True)
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            script.chmod(0o755)
        self.file = home.folder / "Library" / "LaunchAgents" / "dev.agtmux.daemon.plist"
        self.loaded = self.launchd / "loaded"

    def start(self):
        """Until its menu is there and agents are told."""
        child = self.home.spawn(
            sys.executable,
            Path(__file__).with_name("process.py"),
            *(self._bundle, self.launchd, self.home.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout.readline() == "up\n", child.stderr.read()
        wait_until(self.are_told, "the bridge in agents' settings")
        return child

    def launchds(self):
        """The process that launchd started last."""
        return int((self.launchd / "pid").read_text())

    def settings(self):
        return (self.home.folder / ".claude.json").read_text(), (self.home.folder / ".codex/config.toml").read_text()

    def are_told(self):
        """Both, of this daemon, and once."""
        claude, codex = self.settings()
        if claude.count("agtmux-mcp") != 1 or codex.count("agtmux-mcp") != 1:
            return False
        assert tomllib.loads(codex)["mcp_servers"]["agtmux"]["args"] == ["--socket", str(self.home.socket)]
        noted = json.loads((self.home.state / "mcp-state.json").read_text())
        return noted["agents"] == ["claude", "codex"] and noted["pid"] == self.home.answering_pid()

    def are_as_they_were(self):
        return self.settings() == (CLAUDE, CODEX)


@pytest.fixture
def apps(home, tmp_path):
    # Their user has agreed.
    home.configure("[mcp]\nregister = true\n")
    try:
        fetched.rumps()
    except fetched.Unavailable as reason:
        pytest.skip(f"rumps cannot be had: {reason}")
    return Apps(home, tmp_path)


def choose(child, text):
    _, error = child.communicate(f"{text}\n", timeout=60)
    assert child.returncode == 0, error


def test_start_quit_crash_and_start_again(home, apps):
    # Started: launchd has the daemon, the only one, and agents are told.
    first = apps.start()
    written, daemon = apps.file.read_bytes(), home.answering_pid()
    assert apps.loaded.exists() and apps.launchds() == daemon
    choose(first, "Quit agtmux")
    # Left: the daemon goes on, launchd has it, and agents' settings are as they were.
    assert apps.are_as_they_were()
    assert home.answering_pid() == daemon
    assert apps.file.read_bytes() == written and apps.loaded.exists()
    assert not single.is_running()

    second = apps.start()
    second.kill()
    second.communicate(timeout=30)
    # Killed: the daemon goes on, agents know it, and nothing is in the way of the next.
    assert apps.are_told() and home.answering_pid() == daemon
    assert apps.file.read_bytes() == written and apps.loaded.exists()
    assert not single.is_running()

    third = apps.start()
    assert home.answering_pid() == daemon
    for pid in (third.pid, daemon):
        os.kill(pid, signal.SIGKILL)
    third.communicate(timeout=30)
    wait_until(lambda: home.lock_holder() is None, "the end of the daemon")
    # Both killed: what is left in agents' settings is cleared up and made good by the next ones, once.
    assert "agtmux-mcp" in apps.settings()[0] and apps.file.read_bytes() == written
    fourth = apps.start()
    assert apps.launchds() == home.answering_pid() != daemon
    assert apps.file.read_bytes() == written

    fourth.terminate()
    fourth.communicate(timeout=30)
    # Logged out: as if it had been left.
    assert fourth.returncode == 0
    assert apps.are_as_they_were() and home.answering_pid() == apps.launchds()

    fifth = apps.start()
    # Left with ⌥: nothing runs, nothing is to start it again, and nothing is there that was not before.
    choose(fifth, "Quit and stop the daemon")
    wait_until(lambda: home.lock_holder() is None, "the end of the daemon")
    assert apps.are_as_they_were()
    assert not apps.file.exists() and not apps.loaded.exists()
    assert not home.socket.exists() and not (home.state / "mcp-state.json").exists()


def test_agtmux_down_ends_the_app_in_order(home, apps):
    child = apps.start()
    done = home.run("down")
    assert "has stopped" in done.stdout
    child.communicate(timeout=30)
    assert child.returncode == 0
    assert apps.are_as_they_were()
    assert not single.is_running()
