"""One daemon per user: whoever comes second says whose it is, and everybody finds the one."""

import contextlib
import fcntl
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.home import COMMANDS, PATIENCE, Home, is_alive, wait_until

REFUSAL = re.compile(r"agtmux: E_ALREADY_RUNNING: agtmuxd is already running as process (\d+); .*`agtmux down`\n")


def daemons_of(home: Home) -> list[int]:
    """Processes that are a daemon of this home."""
    mark = f"AGTMUX_STATE_DIR={home.state}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = mark in (entry / "environ").read_bytes().split(b"\0")
            if is_ours and b"agtmux.daemon" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_of_two_daemons_started_at_once_one_survives_and_the_other_says_whose_it_is(home: Home, rounds: int):
    began = time.monotonic()
    wins = [0, 0]
    for number in range(rounds):
        pair = [home.spawn(COMMANDS / "agtmuxd") for _ in range(2)]
        wait_until(lambda pair=pair: any(daemon.poll() is not None for daemon in pair), "one of them to give up")
        loser = next(daemon for daemon in pair if daemon.poll() is not None)
        survivor = next(daemon for daemon in pair if daemon is not loser)
        wins[pair.index(survivor)] += 1
        _, complaint = loser.communicate()
        assert loser.returncode == 1, complaint
        refusal = REFUSAL.fullmatch(complaint)
        assert refusal is not None, complaint
        assert int(refusal[1]) == survivor.pid, f"round {number}"
        # Not its socket: that of the one before may still be there.
        assert wait_until(home.answering_pid, "an answer of the survivor") == survivor.pid
        assert survivor.poll() is None
        if number % 2:
            home.end(survivor)
        else:
            # Leaves its pid in the lock file and its socket behind: the next two must not be misled.
            survivor.kill()
            survivor.communicate()
    print(f"two at once: {rounds} rounds, exactly one survived in each (first {wins[0]}, second {wins[1]}),", end=" ")
    print(f"{time.monotonic() - began:.0f} s")


def test_ten_commands_at_once_start_one_daemon_and_all_are_answered(home: Home):
    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: home.run("list", "panes", "--json"), range(10)))
    assert [(each.returncode, each.stderr) for each in done if each.returncode != 0] == []
    holder = home.lock_holder()
    assert holder == home.health()["pid"]
    listening = [line for line in home.log_lines() if "listens on" in line["message"]]
    assert len(listening) == 1
    # Nine more would take turns at importing everything only to be refused, while the one is needed.
    assert (home.state / "logs" / "agtmuxd.stderr.lock").read_text().split() == ["1", "tried"]
    if Path("/proc/self/environ").exists():
        wait_until(lambda: daemons_of(home) == [holder], "the others to be gone")


def test_a_second_daemon_never_touches_the_first_ones_socket(home: Home):
    first = home.start()
    inode = home.socket.stat().st_ino
    second = home.run(command="agtmuxd")
    assert second.returncode == 1
    assert REFUSAL.fullmatch(second.stderr)
    assert home.socket.stat().st_ino == inode
    assert home.health()["pid"] == first.pid


def test_another_state_directory_with_the_same_socket_is_refused(home: Home):
    first = home.start()
    other = home.run(
        command="agtmuxd", env={"AGTMUX_STATE_DIR": str(home.folder / "other"), "AGTMUX_SOCKET": str(home.socket)}
    )
    assert other.returncode == 1
    assert other.stderr.startswith(f"agtmux: E_ALREADY_RUNNING: another agtmuxd already answers on {home.socket}")
    assert home.health()["pid"] == first.pid


def test_a_daemon_that_ends_leaves_another_ones_socket_alone(home: Home):
    first = home.start()
    # A cleaner of old files took it; then a daemon with another state took the name.
    home.socket.unlink()
    second = home.start(env={"AGTMUX_STATE_DIR": str(home.folder / "other"), "AGTMUX_SOCKET": str(home.socket)})
    home.end(first)
    assert home.health()["pid"] == second.pid


def test_a_stale_pid_in_the_lock_file_is_nobody(home: Home):
    home.state.mkdir(mode=0o700)
    stranger = home.spawn("sleep", "60")
    home.lock.write_text(f"{stranger.pid}\n")
    done = home.run("down")
    assert (done.returncode, done.stdout) == (0, "agtmuxd was not running\n")
    assert stranger.poll() is None
    daemon = home.start()
    assert home.lock.read_text() == f"{daemon.pid}\n"


def test_a_look_at_the_lock_does_not_keep_a_daemon_from_starting(home: Home):
    """`agtmux down` asks who holds the lock by taking it for a moment."""
    home.state.mkdir(mode=0o700)
    home.lock.touch()
    with home.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        daemon = home.spawn(COMMANDS / "agtmuxd")
        # Long enough to have met the lock, short enough to be a look.
        wait_until(lambda: _waits_or_ended(daemon), "agtmuxd to find the lock taken")
    assert daemon.poll() is None, daemon.communicate()
    assert wait_until(home.answering_pid, "an answer") == daemon.pid


def _waits_or_ended(daemon: subprocess.Popen) -> bool:
    """Whether it has opened the lock file, or is gone."""
    if daemon.poll() is not None:
        return True
    descriptors = Path(f"/proc/{daemon.pid}/fd")
    if not descriptors.exists():
        pytest.skip("needs /proc to see what a process has open")
    for each in descriptors.iterdir():
        with contextlib.suppress(OSError):
            if each.readlink().name == "agtmuxd.lock":
                return True
    return False


def test_down_while_it_starts_and_up_again_go_well_together(home: Home):
    """Nobody is left waiting for a daemon that another command has just ended."""
    for _ in range(5):
        assert home.run("list", "panes").returncode == 0
        down = home.run("down")
        assert down.returncode == 0, down.stderr
        assert re.fullmatch(r"agtmuxd \(process \d+\) has stopped\n", down.stdout)
        assert home.lock_holder() is None


def test_down_survives_a_daemon_that_ends_first(home: Home):
    daemon = home.start()
    daemon.send_signal(signal.SIGSTOP)
    down = home.spawn(COMMANDS / "agtmux", "down")
    daemon.kill()
    daemon.communicate(timeout=PATIENCE)
    out, complaint = down.communicate(timeout=PATIENCE)
    assert (down.returncode, complaint) == (0, "")
    assert "agtmuxd" in out
    assert not is_alive(daemon.pid)
