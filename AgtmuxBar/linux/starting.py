"""Whether this session has a tray to be in, and the start of the app in it."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Final

from jeepney import message_bus
from jeepney.io.blocking import open_dbus_connection

from agtmux import paths
from AgtmuxBar import single
from AgtmuxBar.linux.item import WATCHER
from AgtmuxBar.linux.terminals import DROPPED

_TIME_LIMIT: Final = 2.0
_START_LIMIT: Final = 5.0


def start() -> bool:
    """False if no panel here shows trays; nothing is started then."""
    if not _has_watcher():
        return False
    if not single.is_running():
        _start()
    return True


def _has_watcher() -> bool:
    try:
        with open_dbus_connection("SESSION") as connection:
            reply = connection.send_and_get_reply(message_bus.NameHasOwner(WATCHER), timeout=_TIME_LIMIT)
            return bool(reply.body[0])
    except (OSError, KeyError, ValueError, IndexError):
        return False


def _start() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    # It runs in another folder, where a relative path would lead elsewhere.
    environment |= {
        "AGTMUX_STATE_DIR": paths.state_directory(),
        "AGTMUX_CONFIG_DIR": paths.config_directory(),
        "AGTMUX_SOCKET": paths.socket_path(),
    }
    process = subprocess.Popen(
        paths.python_module("AgtmuxBar.linux"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    deadline = time.monotonic() + _START_LIMIT
    while not single.is_running() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    # It lives on by itself.
    process.returncode = 0
