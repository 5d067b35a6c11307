"""The live table: drawn in place, kept current by a watch stream, with ages that tick."""

from __future__ import annotations

import os
import select
import sys
import time

from agtmux.cli.table import cut, paint, terminal_width, wants_colour
from agtmux.cli.terminal import own_screen
from agtmux.cli.view import View
from agtmux.client import Client
from agtmux.domain.durations import SECOND, format_age
from agtmux.follow import follow

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
_AWAY: Final = "agtmuxd has been away for {}; this is what it last said:"
_AWAY_FOOTER: Final = "waiting for the daemon; `agtmux up` starts it, q leaves"
_FOOTER: Final = "q leaves the table; `agtmux pick` jumps and answers; `agtmux down` stops the daemon"


class _Left(Exception):
    """The user has seen enough."""


def show_live(client: Client, asked: dict[str, str | None], notice: str = "") -> int:
    """Until q or Ctrl-C, also while the daemon is away: it is waited for and not started. `asked` is what a watch
    stream takes; `notice` is shown below the table."""
    view = View()
    try:
        with own_screen(sys.stdin.fileno(), sys.stdout) as woken:
            screen = _Screen(view, woken, notice)
            for _, said in follow(client, asked, screen, tell=screen.lost):
                view.take(said)
                screen.heard()
    except (_Left, OSError):
        # OSError: the terminal is gone. What is wrong with the daemon is seen to above.
        return 0
    raise AssertionError("the stream has no end")


class _Screen:
    """The terminal, as the pace of a watch stream: drawn, and its keys heard, while there is nothing to read."""

    def __init__(self, view: View, woken: int, notice: str) -> None:
        self._view = view
        self._woken = woken
        self._notice = notice
        self._drawn_at = 0.0
        self._is_stale = True
        self._last_heard = time.monotonic()
        self._is_away = False

    def heard(self) -> None:
        """The daemon has said something."""
        self._is_stale, self._is_away, self._last_heard = True, False, time.monotonic()

    def lost(self, _: str) -> None:
        """The daemon has been away for longer than a restart takes."""
        self._is_stale = self._is_away = True

    def wait(self, connection: int) -> None:
        """Until the stream has more to say; meanwhile ages tick and keys are heard."""
        if not self._is_away:
            # The connection is open, however long the daemon has nothing to say.
            self._last_heard = time.monotonic()
        while not self._pass(None, connection):
            self._last_heard = time.monotonic()

    def rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._pass(until)

    def _pass(self, until: float | None, *connections: int) -> bool:
        """Until there is something to read, to draw or to obey, or until then. Whether there is something to read."""
        due = self._drawn_at + (_FRAME if self._is_stale else _TICK) - time.monotonic()
        if due <= 0:
            self._draw()
            return False
        if until is not None:
            due = min(due, max(until - time.monotonic(), 0))
        ready, _, _ = select.select([sys.stdin, *connections, self._woken], [], [], due)
        if sys.stdin in ready and os.read(sys.stdin.fileno(), 64)[:1] in _LEAVE:
            raise _Left
        if self._woken in ready:
            # The window has another size, or we are back from the background.
            os.read(self._woken, 64)
            self._is_stale = True
        return any(connection in ready for connection in connections)

    def _draw(self) -> None:
        self._is_stale, self._drawn_at = False, time.monotonic()
        if not self._view.has_begun:
            return
        height = os.get_terminal_size(sys.stdout.fileno()).lines
        width, colour = terminal_width(), wants_colour()
        below = [cut(line, width) for line in (self._notice, _FOOTER) if line]
        above: list[str] = []
        if self._is_away:
            above = [paint(cut(_AWAY.format(self._away_for()), width), "yellow", colour)]
            below = [cut(_AWAY_FOOTER, width)]
        room = height - len(above) - (len(below) - 1 if height >= _ROOMY else 0)
        lines = self._view.draw(colour=colour and not self._is_away, width=width)
        shown = above + within(lines, max(room, 1), width, self._view.needs_you)
        if height >= _ROOMY:
            shown += ["", *below]
        body = "\r\n".join(line + "\x1b[K" for line in shown[:height])
        sys.stdout.write("\x1b[H" + body + "\x1b[J")
        sys.stdout.flush()

    def _away_for(self) -> str:
        return format_age(int((time.monotonic() - self._last_heard) * SECOND))


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
