"""The app is started, left, killed and started again: what it leaves behind each time is what was promised."""

import subprocess
import sys
from pathlib import Path

import fetched
import pytest

from AgtmuxBar import single
from support.home import home_in, wait_until


@pytest.fixture
def home(short_tmp, monkeypatch):
    with home_in(short_tmp) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        # The first window has been answered.
        made.state.mkdir(mode=0o700, exist_ok=True)
        (made.state / "bar-welcomed").touch()
        yield made


@pytest.fixture
def app(home, tmp_path):
    """Starts it, and waits until its menu is there."""
    try:
        fetched.rumps()
    except fetched.Unavailable as reason:
        pytest.skip(f"rumps cannot be had: {reason}")
    commands = tmp_path / "AgtmuxBar.app" / "Contents" / "Resources" / "bin"
    commands.mkdir(parents=True)
    (commands / "agtmux").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agtmux.cli.main "$@"\n')
    (commands / "agtmux").chmod(0o755)
    (tmp_path / "launchd").mkdir()
    words = [str(tmp_path / "AgtmuxBar.app"), str(tmp_path / "launchd"), str(tmp_path / "home")]

    def start():
        child = home.spawn(
            sys.executable,
            Path(__file__).with_name("process.py"),
            *words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout.readline() == "up\n", child.stderr.read()
        return child

    start.file = tmp_path / "home" / "Library" / "LaunchAgents" / "dev.agtmux.daemon.plist"
    start.loaded = tmp_path / "launchd" / "loaded"
    return start


def choose(child, text):
    _, error = child.communicate(f"{text}\n", timeout=60)
    assert child.returncode == 0, error


def test_start_quit_crash_and_start_again(home, app):
    first = app()
    written = app.file.read_bytes()
    assert app.loaded.exists()
    choose(first, "Quit agtmux")
    # Left: the daemon goes on, and launchd has it.
    assert home.answering_pid() is not None
    assert app.file.read_bytes() == written and app.loaded.exists()
    assert not single.is_running()

    second = app()
    daemon = home.answering_pid()
    second.kill()
    second.communicate(timeout=30)
    # Killed: the same, and nothing in the way of the next.
    assert home.answering_pid() == daemon
    assert app.file.read_bytes() == written and app.loaded.exists()
    assert not single.is_running()

    third = app()
    assert home.answering_pid() == daemon
    # Left with ⌥: nothing runs, and nothing is to start it again.
    choose(third, "Quit and stop the daemon")
    wait_until(lambda: home.lock_holder() is None, "the end of the daemon")
    assert not app.file.exists() and not app.loaded.exists()
    left = {path.name for path in home.state.iterdir()}
    assert not {name for name in left if name.endswith(".sock")}


def test_agtmux_down_ends_the_app_in_order(home, app):
    child = app()
    done = home.run("down")
    assert "has stopped" in done.stdout
    child.communicate(timeout=30)
    assert child.returncode == 0
    assert not single.is_running()
