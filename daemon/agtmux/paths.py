"""Where agtmux keeps things. Nothing is created here except by `private_directory`."""

from __future__ import annotations

import os
import stat
import sys

from agtmux.domain.errors import AgtmuxError, ErrorCode

# sizeof(sun_path) less its final zero.
SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107


def state_directory() -> str:
    return _directory("AGTMUX_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def config_directory() -> str:
    return _directory("AGTMUX_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def config_file() -> str:
    return os.path.join(config_directory(), "config.toml")


def socket_path() -> str:
    explicit = os.environ.get("AGTMUX_SOCKET")
    if explicit:
        path = os.path.abspath(explicit)
    elif runtime_directory := os.environ.get("XDG_RUNTIME_DIR"):
        path = os.path.join(runtime_directory, "agtmux", "agtmuxd.sock")
    else:
        path = os.path.join(state_directory(), "agtmuxd.sock")
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"the socket path {path} is longer than the {SOCKET_PATH_LIMIT} bytes this system allows; "
            "set AGTMUX_SOCKET to a shorter one",
        )
    return path


def chat_directory() -> str:
    """Where chat sessions listen."""
    runtime_directory = os.environ.get("XDG_RUNTIME_DIR")
    base = os.path.join(runtime_directory, "agtmux") if runtime_directory else state_directory()
    return os.path.join(base, "chat")


def hook_command() -> str | None:
    return beside("agtmux-hook")


def beside(program: str) -> str | None:
    """A program of ours, as it was installed with this Python; None if it was not."""
    found = os.path.join(os.path.dirname(sys.executable), program)
    if os.path.exists(found):
        return found
    # Only then: importing it costs every command milliseconds.
    from shutil import which

    return which(program)


def private_directory(path: str) -> None:
    """The directory, there and for its owner alone. One that others own or share is refused."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
        if found.st_uid != os.geteuid():
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} belongs to another user; choose a directory of your own")
        if found.st_mode & stat.S_ISVTX:
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} is shared with others; choose a directory of your own in it")
        if found.st_mode & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"cannot use the directory {path}: {error.strerror}; make it writable or set AGTMUX_STATE_DIR",
        ) from None


def _directory(own: str, xdg: str, below_home: str) -> str:
    if explicit := os.environ.get(own):
        return os.path.abspath(explicit)
    if base := os.environ.get(xdg):
        return os.path.join(os.path.abspath(base), "agtmux")
    return os.path.join(os.path.expanduser("~"), below_home, "agtmux")
