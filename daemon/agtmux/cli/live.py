"""The live table: drawn in place, kept current by a watch stream, with ages that tick."""

from __future__ import annotations

import json
import os
import select
import sys
import time

from agtmux.cli.table import cut, terminal_width, wants_colour
from agtmux.cli.terminal import own_screen
from agtmux.cli.view import View
from agtmux.client import Client

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_TICK: Final = 1.0
# A burst is drawn a few times a second, and not line by line.
_FRAME: Final = 0.04
_LEAVE: Final = (b"q", b"Q", b"\x03", b"\x04", b"")


class _Left(Exception):
    """The user has seen enough."""


def show_live(client: Client, path: str = "/v1/watch") -> int:
    """Until q, Ctrl-C or the end of the daemon."""
    view = View()
    try:
        with own_screen(sys.stdin.fileno(), sys.stdout) as woken:
            screen = _Screen(view, woken)
            for line in client.lines(path, screen.wait):
                view.take(json.loads(line))
                screen.is_stale = True
    except _Left:
        return 0
    except (OSError, ValueError):
        # Its daemon was killed within a line.
        pass
    print("agtmuxd has stopped")
    return 0


class _Screen:
    def __init__(self, view: View, woken: int) -> None:
        self._view = view
        self._woken = woken
        self._drawn_at = 0.0
        self.is_stale = True

    def wait(self, connection: int) -> None:
        """Until the stream has more to say; meanwhile ages tick and keys are heard."""
        while True:
            due = self._drawn_at + (_FRAME if self.is_stale else _TICK) - time.monotonic()
            if due <= 0:
                self._draw()
                continue
            ready, _, _ = select.select([sys.stdin, connection, self._woken], [], [], due)
            if sys.stdin in ready and os.read(sys.stdin.fileno(), 64)[:1] in _LEAVE:
                raise _Left
            if self._woken in ready:
                # The window has another size, or we are back from the background.
                os.read(self._woken, 64)
                self.is_stale = True
            if connection in ready:
                return

    def _draw(self) -> None:
        self.is_stale, self._drawn_at = False, time.monotonic()
        if not self._view.has_begun:
            return
        height = os.get_terminal_size(sys.stdout.fileno()).lines
        width = terminal_width()
        lines = self._view.draw(colour=wants_colour(), width=width)
        room = max(1, height - 2)
        if len(lines) > room > 1:
            hidden = len(lines) - room + 1
            lines[room - 1 :] = [cut(f"… and {hidden} more", width)]
        shown = [*lines[:room], "", cut("q leaves; the daemon stays, `agtmux down` stops it", width)]
        body = "\r\n".join(line + "\x1b[K" for line in shown[:height])
        sys.stdout.write("\x1b[H" + body + "\x1b[J")
        sys.stdout.flush()
