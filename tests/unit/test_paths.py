"""Where things are kept: what the environment says, in its order, and directories for their owner alone."""

import os
from pathlib import Path

import pytest

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode

VARIABLES = [
    *("AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "AGTMUX_SOCKET"),
    *("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


STATE, CONFIG = "/home/ada/.local/state/agtmux", "/home/ada/.config/agtmux"
CASES: list[tuple[dict[str, str], str, str, str]] = [
    ({}, STATE, CONFIG, f"{STATE}/agtmuxd.sock"),
    ({"XDG_STATE_HOME": "/s"}, "/s/agtmux", CONFIG, "/s/agtmux/agtmuxd.sock"),
    ({"XDG_CONFIG_HOME": "/c"}, STATE, "/c/agtmux", f"{STATE}/agtmuxd.sock"),
    ({"XDG_RUNTIME_DIR": "/r"}, STATE, CONFIG, "/r/agtmux/agtmuxd.sock"),
    ({"AGTMUX_STATE_DIR": "/own", "XDG_STATE_HOME": "/s"}, "/own", CONFIG, "/own/agtmuxd.sock"),
    ({"AGTMUX_CONFIG_DIR": "/own", "XDG_CONFIG_HOME": "/c"}, STATE, "/own", f"{STATE}/agtmuxd.sock"),
    ({"AGTMUX_SOCKET": "/x.sock", "XDG_RUNTIME_DIR": "/r"}, STATE, CONFIG, "/x.sock"),
    ({"AGTMUX_STATE_DIR": "", "AGTMUX_SOCKET": ""}, STATE, CONFIG, f"{STATE}/agtmuxd.sock"),
]


@pytest.mark.parametrize(("environment", "state", "config", "socket"), CASES)
def test_paths_follow_the_environment_in_its_order(monkeypatch, environment, state, config, socket) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert paths.state_directory() == state
    assert paths.config_directory() == config
    assert paths.config_file() == f"{config}/config.toml"
    assert paths.socket_path() == socket


def test_a_relative_directory_does_not_move_with_the_process(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGTMUX_STATE_DIR", "here")
    monkeypatch.setenv("AGTMUX_SOCKET", "s.sock")
    assert paths.state_directory() == str(tmp_path / "here")
    assert paths.socket_path() == str(tmp_path / "s.sock")


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_socket_path_that_the_system_cannot_take_is_refused_in_bytes(monkeypatch, letter: str) -> None:
    width = len(letter.encode())
    fits = "/" + letter * ((paths.SOCKET_PATH_LIMIT - 1) // width)
    monkeypatch.setenv("AGTMUX_SOCKET", fits)
    assert paths.socket_path() == fits
    monkeypatch.setenv("AGTMUX_SOCKET", fits + letter)
    with pytest.raises(AgtmuxError, match="set AGTMUX_SOCKET to a shorter one") as refused:
        paths.socket_path()
    assert refused.value.code is ErrorCode.CONFIG


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_private_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        paths.private_directory(str(tmp_path / "a" / "b"))
    finally:
        os.umask(previous)
    assert mode(tmp_path / "a" / "b") == 0o700


def test_a_directory_that_others_may_enter_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    paths.private_directory(str(tmp_path))
    assert mode(tmp_path) == 0o700


def test_a_directory_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AgtmuxError, match="make it writable or set AGTMUX_STATE_DIR") as refused:
        paths.private_directory(str(tmp_path / "file" / "below"))
    assert refused.value.code is ErrorCode.CONFIG


def test_a_directory_that_is_shared_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """AGTMUX_STATE_DIR=/tmp, by root: closing it would lock everybody else out."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(AgtmuxError, match="is shared with others; choose a directory of your own in it") as refused:
        paths.private_directory(str(shared))
    assert refused.value.code is ErrorCode.CONFIG
    assert shared.stat().st_mode & 0o7777 == 0o1777


def test_a_directory_of_another_user_is_refused(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(AgtmuxError, match="belongs to another user") as refused:
        paths.private_directory(str(tmp_path))
    assert refused.value.code is ErrorCode.CONFIG
    assert mode(tmp_path) == 0o700, "it was left as it is"
