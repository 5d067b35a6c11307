"""An agent does not outlive its session, also when that is killed without a chance to say so.

It reads from the session and ends when there is nothing more to read; but first it ends its turn, which may take long
and can be neither seen nor answered any more.
"""

from __future__ import annotations

import subprocess
from typing import Final

# What it reads ends when whoever holds the other end does. A line is the word that all is well.
_SCRIPT: Final = 'read -r _ || kill -TERM "$0" 2>/dev/null'
_LIMIT: Final = 5.0


class Leash:
    """A process that waits for this one to end, and then ends that other."""

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Whatever ends this process's group must not end it first.
            start_new_session=True,
        )

    def release(self) -> None:
        """That other has ended, or need not."""
        try:
            self._process.communicate(b"\n", timeout=_LIMIT)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.communicate()
