"""The start of the app in the menu bar, for commands; nothing here knows Cocoa."""

from __future__ import annotations

import time

from AgtmuxBar import single
from AgtmuxBar.mac import spawn
from AgtmuxBar.mac.bundle import IDENTIFIER, own_bundle


def start(program: str = "/usr/bin/open", limit: float = 10.0) -> bool:
    """False if there is no AgtmuxBar.app; nothing is started then. Without a bundle, macOS may show no item at all."""
    if single.is_running():
        return True
    bundle = own_bundle()
    which = ["-b", IDENTIFIER] if bundle is None else [str(bundle.path)]
    # -g: it stays behind what the user is typing into.
    if spawn.run([program, "-g", *which]).returncode != 0:
        return False
    deadline = time.monotonic() + limit
    while not single.is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    return True
