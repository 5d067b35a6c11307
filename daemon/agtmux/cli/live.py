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


# Below this many lines, those that need you are worth more than heads and help.
_ROOMY: Final = 6
_FOOTER: Final = "q leaves, and the daemon stays; `agtmux pick` jumps and answers, `agtmux down` stops it"


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
        shown = within(lines, height, width, self._view.needs_you)
        if height >= _ROOMY:
            shown += ["", cut(_FOOTER, width)]
        body = "\r\n".join(line + "\x1b[K" for line in shown)
        sys.stdout.write("\x1b[H" + body + "\x1b[J")
        sys.stdout.flush()


def within(lines: list[str], height: int, width: int | None, needs_you: int) -> list[str]:
    """As much of a table as fits: its summary, its heads if there is room, and its rows, most urgent first. What does
    not fit is told in the last line; in a single one the summary says it all."""
    summary, heads, rows = lines[:1], lines[1:2], lines[2:]
    if height < _ROOMY:
        heads, room = [], height - 1
    else:
        # Beside these two, an empty line and one of help.
        room = height - 4
    if len(rows) <= room:
        return [*summary, *heads, *rows]
    if room < 1:
        return summary
    shown, hidden = rows[: room - 1], len(rows) - room + 1
    waiting = max(0, needs_you - len(shown))
    need = f", {waiting} of them {'needs' if waiting == 1 else 'need'} you" if waiting else ""
    return [*summary, *heads, *shown, cut(f"… and {hidden} more{need}", width)]
