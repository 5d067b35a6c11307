"""The daemon as the app has it: launchd's where that can last, and never a second one beside one that runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from AgtmuxBar.mac.bundle import Bundle
from AgtmuxBar.mac.launchd import Launchd
from support.home import home_in, wait_until


@pytest.fixture
def home(short_tmp, monkeypatch):
    with home_in(short_tmp) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def root(tmp_path):
    (tmp_path / "launchd").mkdir()
    return tmp_path / "launchd"


@pytest.fixture
def launchd(tmp_path, root):
    def run(argv):
        command = [sys.executable, str(Path(__file__).with_name("launchctl.py")), *argv[1:]]
        return subprocess.run(
            command,
            env={"LAUNCHD": str(root), "HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=30,
        )

    made = Launchd(tmp_path / "home", run, limit=10)
    yield made
    # What it has started outlives whoever asked for it.
    made.remove()


@pytest.fixture
def bundle(tmp_path, home):
    """Whose command is this installation's."""
    made = Bundle(tmp_path / "AgtmuxBar.app")
    made.commands.mkdir(parents=True)
    script = made.commands / "agtmux"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agtmux.cli.main "$@"\n')
    script.chmod(0o755)
    return made


@pytest.fixture
def made(world):
    from AgtmuxBar.mac.desktop import MacDesktop

    return MacDesktop


def test_where_none_answers_launchd_starts_the_bundles(made, bundle, launchd, root, home):
    assert made(bundle, launchd).start_daemon() is True
    assert (root / "loaded").read_text() == str(bundle.daemon)
    assert launchd.file.exists()


def test_one_that_answers_is_left_alone_whoever_started_it(made, bundle, launchd, root, home):
    daemon = home.start()
    assert made(bundle, launchd).start_daemon() is False
    assert not (root / "calls").exists()
    assert not launchd.file.exists()
    assert home.answering_pid() == daemon.pid


@pytest.mark.parametrize("place", ["/private/var/folders/x/AppTranslocation/0/d/AgtmuxBar.app", None])
def test_without_a_place_that_lasts_launchd_hears_nothing(made, launchd, root, home, place):
    desktop = made(Bundle(Path(place)) if place else None, launchd)
    # Then it is the app's own to start, as every front end does.
    assert desktop.start_daemon() is False
    assert not (root / "calls").exists()


def test_a_restart_of_launchds_is_launchds_and_of_anothers_is_ours(made, bundle, launchd, root, home):
    desktop = made(bundle, launchd)
    daemon = home.start()
    desktop.restart_daemon()
    # The one from a terminal has ended, and launchd has the next.
    assert daemon.wait(20) == 0
    assert (root / "loaded").read_text() == str(bundle.daemon)
    desktop.restart_daemon()
    assert "kickstart -k" in (root / "calls").read_text().splitlines()[-1]


def test_one_from_a_terminal_makes_room_for_launchds_that_is_loaded_and_at_rest(made, bundle, launchd, root, home):
    """`agtmux down` ends launchd's in good order, which leaves it loaded; the next command then starts another."""
    bundle.daemon.parent.mkdir(parents=True)
    bundle.daemon.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agtmux.daemon\n')
    bundle.daemon.chmod(0o755)
    desktop = made(bundle, launchd)
    assert desktop.start_daemon() is True
    wait_until(lambda: home.answering_pid() == launchd.pid() is not None, "launchd's daemon")
    desktop._down()
    wait_until(lambda: launchd.pid() is None, "its end")
    assert launchd.is_loaded()
    theirs = home.start()
    desktop.restart_daemon()
    assert theirs.wait(20) == 0
    # launchd's is the one that answers, and was not turned away.
    wait_until(lambda: home.answering_pid() == launchd.pid() is not None, "launchd's daemon again")
    first = launchd.pid()
    desktop.restart_daemon()
    wait_until(lambda: home.answering_pid() == launchd.pid() != first, "the next one of launchd's")
    desktop.stop_daemon()
    assert home.lock_holder() is None


def test_one_that_answers_in_the_place_of_launchds_makes_room(made, bundle, launchd, root, home):
    """As launchd's has a process for a moment, each time that it is turned away."""
    bundle.daemon.parent.mkdir(parents=True)
    bundle.daemon.write_text("#!/bin/sh\nexec sleep 600\n")
    bundle.daemon.chmod(0o755)
    desktop = made(bundle, launchd)
    assert desktop.start_daemon() is True
    theirs = home.start()
    assert launchd.pid() not in (None, theirs.pid)
    desktop.restart_daemon()
    assert theirs.wait(20) == 0
    desktop.stop_daemon()


def test_stopping_leaves_neither_a_daemon_nor_a_file(made, bundle, launchd, root, home):
    desktop = made(bundle, launchd)
    desktop.start_daemon()
    daemon = home.start()
    desktop.stop_daemon()
    assert daemon.wait(20) == 0
    assert not (root / "loaded").exists()
    assert not launchd.file.exists()
