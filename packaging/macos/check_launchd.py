"""The launchd agent on a real Mac, with the app's own code: `python check_launchd.py /Applications/AgtmuxBar.app`.

It is started, killed and found again, restarted, and removed with its file. For machines that are thrown away: it ends
whatever daemon the user has.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agtmux import paths
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError
from AgtmuxBar.mac.bundle import Bundle
from AgtmuxBar.mac.launchd import Launchd

LIMIT = 60.0


def pid() -> int | None:
    try:
        return int(Client(start=False).get("/v1/health")["pid"])
    except (AgtmuxError, LookupError):
        return None


def wait_for(condition, what: str) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            subprocess.run(["launchctl", "print", f"gui/{os.getuid()}/dev.agtmux.daemon"], check=False)
            sys.exit(f"{what}: not within {LIMIT:.0f} seconds")
        time.sleep(0.2)
    print(f"ok  {what}", flush=True)


bundle = Bundle(Path(sys.argv[1]))
launchd = Launchd()
paths.private_directory(paths.state_directory())
launchd.start(bundle.daemon, Path(paths.state_directory(), "agtmuxd.stderr"))
wait_for(lambda: pid() is not None, "started")
first = pid()
os.kill(first, signal.SIGKILL)
wait_for(lambda: pid() not in (None, first), "back after a crash")
second = pid()
launchd.restart()
wait_for(lambda: pid() not in (None, second), "another after a restart")
launchd.remove()
wait_for(lambda: pid() is None and not launchd.is_loaded() and not launchd.file.exists(), "removed")
