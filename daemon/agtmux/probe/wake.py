"""Woken by tmux itself, where the user has set its hooks so: a `tmux wait-for` that returns when one of them fires.

It is a plain client that waits, not one in control mode. tmux latches a signal that nobody waits for, so none is lost
between two waits, and there is one wait for each look: a pane that never rests starts no flood of processes.
"""

from __future__ import annotations

import re
import subprocess

from agtmux.probe import tmux

_CHANNEL = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")


class Wake:
    def __init__(self) -> None:
        self._channel = ""
        self._waiting: subprocess.Popen[bytes] | None = None

    def follow(self, channel: str, command: list[str]) -> None:
        """Wait for that channel from now on; none if it is empty."""
        if channel == self._channel and self._waiting is not None:
            return
        self.close()
        self._channel = channel
        if _CHANNEL.fullmatch(channel):
            # Its output is never written to: it is the end of it that tells.
            self._waiting = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=tmux.environment(),
            )

    def fileno(self) -> int | None:
        return self._waiting.stdout.fileno() if self._waiting is not None and self._waiting.stdout else None

    def has_rung(self) -> bool:
        """Called when there is something to read, which is the end of the one that waited."""
        if self._waiting is None:
            return False
        status = self._waiting.wait()
        self.close()
        return status == 0

    def close(self) -> None:
        if self._waiting is not None:
            if self._waiting.poll() is None:
                self._waiting.kill()
            self._waiting.communicate()
            self._waiting = None
