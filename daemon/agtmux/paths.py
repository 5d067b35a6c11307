"""Where agtmux keeps things. Nothing is created here except by `private_directory`."""

from __future__ import annotations

import errno
import os
import stat
import sys

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.owners import NotOurs, check_path, make_private_folders

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


def python_module(name: str) -> list[str]:
    """The words that run a module with this Python. Without -P, files of the working directory would be imported:
    ~/logging.py instead of Python's own."""
    return [sys.executable, "-P", "-m", name]


def private_directory(path: str) -> None:
    """The directory, there and for its owner alone. One that others own, share or could replace is refused."""
    try:
        make_private_folders(os.fsencode(os.path.abspath(path)))
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        if found.st_uid != os.geteuid():
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} belongs to another user; choose a directory of your own")
        if found.st_mode & stat.S_ISVTX:
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} is shared with others; choose a directory of your own in it")
        if found.st_mode & 0o077:
            os.chmod(path, 0o700)
        check_path(os.fsencode(os.path.abspath(path)))
    except NotOurs as error:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"cannot use the directory {path}: {error.strerror}; take that right away (`chmod go-w`), or set"
            " AGTMUX_STATE_DIR to a folder that is yours alone",
        ) from None
    except OSError as error:
        raise AgtmuxError(
            ErrorCode.CONFIG,
            f"cannot use the directory {path}: {error.strerror}; make it writable or set AGTMUX_STATE_DIR",
        ) from None


def write_private(path: os.PathLike[str], text: str) -> None:
    """A whole file for its owner alone, put in place of the one that is there."""
    half = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    os.replace(half, path)


def _directory(own: str, xdg: str, below_home: str) -> str:
    if explicit := os.environ.get(own):
        return os.path.abspath(explicit)
    if base := os.environ.get(xdg):
        return os.path.join(os.path.abspath(base), "agtmux")
    return os.path.join(os.path.expanduser("~"), below_home, "agtmux")
