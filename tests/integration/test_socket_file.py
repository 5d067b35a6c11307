"""The door is for its owner alone, and what lies in its place is dealt with in a sentence."""

import os
import socket
import stat
from pathlib import Path

import pytest

from agtmux.paths import SOCKET_PATH_LIMIT
from support.home import COMMANDS, Home, wait_until


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o000, 0o077])
def test_socket_is_0600_in_a_0700_directory_whatever_the_umask(home: Home, mask: int):
    home.start(preexec_fn=lambda: os.umask(mask))
    assert stat.S_ISSOCK(home.socket.stat().st_mode)
    assert mode(home.socket) == 0o600
    assert mode(home.state) == 0o700
    for name in ("agtmux.db", "agtmux.db-wal", "agtmux.db-shm", "agtmuxd.lock"):
        assert mode(home.state / name) == 0o600, name
    assert mode(home.state / "logs") == 0o700


def test_state_directory_that_was_open_to_others_is_tightened(home: Home):
    home.state.mkdir(mode=0o755)
    home.state.chmod(0o755)
    home.start()
    assert mode(home.state) == 0o700


def test_socket_in_xdg_runtime_dir(home: Home):
    runtime = home.folder / "run"
    runtime.mkdir(mode=0o700)
    home.socket = runtime / "agtmux" / "agtmuxd.sock"
    home.start(env={"XDG_RUNTIME_DIR": str(runtime)})
    assert mode(home.socket) == 0o600
    assert mode(home.socket.parent) == 0o700


def test_a_shared_directory_that_the_user_named_is_refused_and_not_changed(home: Home):
    """To make /tmp, or a home, private because a socket was put there would be worse than not starting."""
    shared = home.folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    done = home.run(command="agtmuxd", env={"AGTMUX_SOCKET": str(shared / "agtmuxd.sock")})
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert done.returncode == 2
    assert done.stderr.startswith("agtmux: E_CONFIG: ")
    assert str(shared) in done.stderr


def test_stale_socket_is_recovered(home: Home):
    home.state.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(home.socket))
    assert home.socket.exists()
    home.start()
    assert home.run("status").returncode == 0


def test_regular_file_in_the_sockets_place_is_kept_and_named(home: Home):
    home.state.mkdir(mode=0o700)
    home.socket.write_text("notes of a lifetime")
    done = home.run(command="agtmuxd")
    assert home.socket.read_text() == "notes of a lifetime"
    assert done.returncode == 2
    assert done.stderr.startswith(f"agtmux: E_CONFIG: cannot listen on {home.socket}: ")
    assert "Traceback" not in done.stderr
    started = home.run("list", "panes")
    assert started.returncode == 3
    assert "E_CONFIG" in started.stderr and "Traceback" not in started.stderr


def test_directory_in_the_sockets_place_is_named(home: Home):
    home.socket.mkdir(parents=True)
    done = home.run(command="agtmuxd")
    assert done.returncode == 2
    assert done.stderr.startswith("agtmux: E_CONFIG: ") and str(home.socket) in done.stderr


def test_a_link_in_the_sockets_place_is_not_followed(home: Home):
    """Whoever plants one must not choose which file is replaced."""
    home.state.mkdir(mode=0o700)
    precious = home.folder / "precious"
    precious.write_text("precious")
    home.socket.symlink_to(precious)
    daemon = home.spawn(COMMANDS / "agtmuxd")
    wait_until(lambda: daemon.poll() is not None or home.socket.is_socket(), "an end or a socket")
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("command", [["agtmuxd"], ["agtmux", "status"], ["agtmux", "list", "panes"], ["agtmux", "up"]])
def test_socket_path_that_is_too_long_is_refused_with_its_sentence(home: Home, command: list[str]):
    long = home.folder / ("d" * (SOCKET_PATH_LIMIT - len(str(home.folder)) - 1))
    done = home.run(*command[1:], command=command[0], env={"AGTMUX_STATE_DIR": str(long)})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"agtmux: E_CONFIG: the socket path {long}/agtmuxd.sock is longer than the {SOCKET_PATH_LIMIT} bytes this "
        "system allows; set AGTMUX_SOCKET to a shorter one\n"
    )


def test_socket_path_of_just_the_allowed_length_works(home: Home):
    fill = SOCKET_PATH_LIMIT - len(str(home.folder)) - len("//agtmuxd.sock")
    home.state = home.folder / ("d" * fill)
    home.socket = home.state / "agtmuxd.sock"
    home.lock = home.state / "agtmuxd.lock"
    home.env["AGTMUX_STATE_DIR"] = str(home.state)
    assert len(str(home.socket)) == SOCKET_PATH_LIMIT
    home.start()
    assert home.run("status").returncode == 0
