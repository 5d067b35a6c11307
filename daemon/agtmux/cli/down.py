"""`agtmux down`: stop the daemon and the app in the menu bar or the tray, and wait until they are gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from argparse import ArgumentParser, Namespace

from agtmux import paths
from agtmux.cli.options import add_json, print_json
from agtmux.domain.errors import AgtmuxError, ErrorCode

_LIMIT = 15.0
_SETTLED = 0.05


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--headless", action="store_true", help="stop only the daemon")
    add_json(parser)


def run(options: Namespace) -> int:
    # First, as it would wait for the daemon to come back.
    app = None if options.headless else _stop("agtmux-bar")
    pid = _stop("agtmuxd")
    is_withdrawn = pid is None and _withdraw()
    if options.json:
        print_json({"schema_version": 1, "stopped": pid, "stopped_app": app})
    else:
        print("agtmuxd was not running" if pid is None else f"agtmuxd (process {pid}) has stopped")
        if app is not None:
            print(f"the app in the menu bar or the tray (process {app}) has stopped")
        if is_withdrawn:
            print("what a daemon before it had left in agents' settings is taken out")
        if _has_demo():
            print("the demo still runs; `agtmux demo --stop` ends it")
    return 0


def _withdraw() -> bool:
    """A daemon that was killed has taken nothing back. Whether there was something, and it is gone now."""
    if not os.path.exists(paths.state_directory()):
        return False
    from agtmux.withdrawal import withdraw

    is_out = withdraw()
    if is_out is False:
        print(
            "agtmux: the bridge may still be in agents' settings, as a daemon was killed; `agtmux mcp status` tells,"
            " and `agtmux mcp unregister` takes it out",
            file=sys.stderr,
        )
    return is_out is True


def _has_demo() -> bool:
    folder = os.path.join(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")
    with contextlib.suppress(OSError):
        if any(name.startswith("agtmux-demo") for name in os.listdir(folder)):
            from agtmux.cli.demo import is_running

            return is_running()
    return False


def _stop(name: str) -> int | None:
    """The process that has ended, by the lock it held."""
    lock_path = os.path.join(paths.state_directory(), f"{name}.lock")
    pid = lock_holder(lock_path)
    if pid is not None:
        # A daemon that has just taken the lock of one that was killed has not written its own pid over that yet.
        time.sleep(_SETTLED)
        pid = lock_holder(lock_path)
    if pid is not None:
        # It may have ended by itself in between.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _LIMIT
        while lock_holder(lock_path) == pid:
            if time.monotonic() > deadline:
                raise AgtmuxError(
                    ErrorCode.TIMEOUT, f"{name} (process {pid}) has not ended; look at it with `ps -p {pid}`"
                )
            time.sleep(0.01)
    return pid


def lock_holder(lock_path: str) -> int | None:
    """The pid that holds the lock. A pid in a lock file that nobody holds is history and may be anyone's now."""
    try:
        descriptor = os.open(lock_path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 32).strip()
        return int(text) if text.isdigit() else None
    else:
        return None
    finally:
        os.close(descriptor)
