"""What is done with one pane. tmux uses ids again, so every step says who must be there.

The check and what it guards go to the tmux server as one command, which nothing can come between.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import namedtuple

from agtmux.probe import tmux

# The boot id of the server, a pane, and the process that tmux has in it.
Inhabited = namedtuple("Inhabited", "server pane_id pid")

_MOST_LINES = 50_000
_LONGEST_OUTPUT = 4_000_000


class MovedError(Exception):
    """Something else is there."""


def output(tmux_socket: str, who: Inhabited, lines: int, limit: float) -> str:
    """The last lines of the pane, what has scrolled away included, without colours."""
    mark = os.urandom(8).hex()
    since = -min(max(int(lines), 1), _MOST_LINES)
    capture = "capture-pane -p -J -S %d -t %s" % (since, who.pane_id)
    said = guarded(tmux_socket, who, capture, mark, limit)
    # From the end: the screen below the last line that was written is empty.
    found = said[:_LONGEST_OUTPUT].rstrip("\n").split("\n")[since:]
    return "\n".join(found)


def history(tmux_socket: str, who: Inhabited, lines: int, limit: float) -> str:
    """The pane with its last lines that have scrolled away, with looks; nothing where a program has a screen that does
    not scroll, as what is above that is from before it."""
    mark = os.urandom(8).hex()
    capture = "capture-pane -p -e -J -S %d -t %s" % (-min(max(int(lines), 1), _MOST_LINES), who.pane_id)
    command = 'if-shell -F -t %s "#{!=:#{alternate_on},1}" "%s"' % (who.pane_id, capture)
    return guarded(tmux_socket, who, command, mark, limit)[-_LONGEST_OUTPUT:]


def guarded(tmux_socket: str, who: Inhabited, command: str, mark: str, limit: float) -> str:
    """What tmux says to that command; raises MovedError, and then it was not carried out."""
    words = ["if-shell", "-F", "-t", who.pane_id, there(who), "display-message -p %s ; %s" % (mark, command)]
    _, found, after = ask(tmux_socket, words, limit).partition(mark + "\n")
    if not found:
        raise MovedError("something else is in that pane by now")
    return after


def forget_buffer(tmux_socket: str, buffer: str, limit: float) -> None:
    """If it is there at all."""
    words = ["if-shell", "-F", "-t", "", "1", "delete-buffer -b " + buffer]
    with contextlib.suppress(MovedError, tmux.TmuxError):
        ask(tmux_socket, words, limit)


def there(who: Inhabited) -> str:
    """As a format of tmux's: whether that is who is in the pane."""
    return "#{&&:#{==:#{pid}-#{start_time},%s},#{&&:#{==:#{pane_pid},%d},#{!=:#{pane_dead},1}}}" % (who.server, who.pid)


def ask(tmux_socket: str, words: list[str], limit: float, content: bytes | None = None) -> str:
    """What tmux says; raises MovedError if the server or the pane is gone."""
    try:
        said = tmux.ask(tmux.find_tmux(), tmux_socket, words, time.monotonic() + limit, content)
    except tmux.TmuxError as error:
        if "can't find pane" in str(error):
            raise MovedError("the pane is gone") from None
        raise
    if said is None:
        raise MovedError("the tmux server has ended")
    return said
