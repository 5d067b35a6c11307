"""Woken by tmux itself, where the user has set its hooks so: a `tmux wait-for` that returns when one of them fires.

It is a plain client that waits, not one in control mode. tmux latches a signal that nobody waits for, so none is lost
between two waits, and there is one wait for each look. A title that turns all the time would still make for one look
after the other: after a few in a row there are two a second, no more than there are without it.
"""

from __future__ import annotations

import re
import subprocess
import time

from agtmux.probe import tmux

_CHANNEL = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
_AT_ONCE = 5.0
_A_SECOND = 2.0


class Wake:
    def __init__(self) -> None:
        self._channel = ""
        self._command: list[str] | None = None
        self._waiting: subprocess.Popen[bytes] | None = None
        # How often it may still be woken before it has to pause.
        self._allowance = _AT_ONCE
        self._counted = time.monotonic()

    @property
    def is_followed(self) -> bool:
        return self._command is not None

    def follow(self, channel: str, command: list[str]) -> None:
        """Wait for that channel from now on, until it rings; none if it is empty."""
        if channel == self._channel and self._waiting is not None:
            return
        self.close()
        self._channel = channel
        self._command = command if _CHANNEL.fullmatch(channel) else None
        self.resume()

    def resume(self) -> None:
        """Wait, if that is wanted and the pause is over."""
        if self._command is None or self._waiting is not None:
            return
        now = time.monotonic()
        self._allowance = min(_AT_ONCE, self._allowance + (now - self._counted) * _A_SECOND)
        self._counted = now
        if self._allowance < 1:
            return
        try:
            # Its output is never written to: it is the end of it that tells.
            self._waiting = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=tmux.environment(),
            )
        except OSError:
            # No process or no descriptor left, which passes: tried again, and not at every turn.
            self._allowance -= 1

    def fileno(self) -> int | None:
        return self._waiting.stdout.fileno() if self._waiting is not None and self._waiting.stdout else None

    def has_rung(self) -> bool:
        """Called when there is something to read, which is the end of the one that waited."""
        if self._waiting is None:
            return False
        status = self._waiting.wait()
        self.close()
        self._allowance -= 1
        return status == 0

    def close(self) -> None:
        self._command = None
        if self._waiting is not None:
            if self._waiting.poll() is None:
                self._waiting.kill()
            self._waiting.communicate()
            self._waiting = None
