"""Whether a tmux server has done anything since it was last asked, without asking it.

Whatever changes a pane, be it output, input, a rename or a new window, makes the server run. So while it has had no
time on a processor, nothing has changed, and no process needs to be spent on finding that out. Our own questions make
it run too, until a moment after the answer is complete, and the time is taken then. What happens in that moment is
found by the next look, which comes soon after one that brought news and within seconds in any case.
"""

from __future__ import annotations

import os

PROC = "/proc"


def mark(server_pid: int | None, socket: str) -> object:
    """Something that is equal for as long as nothing has happened; None where that cannot be known."""
    if server_pid is None:
        return _socket_mark(socket)
    try:
        with open("%s/%d/stat" % (PROC, server_pid), "rb") as file:
            name, _, fields = file.read().partition(b"(")[2].rpartition(b")")
        # Its pid may be one of another namespace; and one that has ended may stand there until somebody notices.
        if not name.startswith(b"tmux") or fields.split()[:1] in ([b"Z"], [b"X"]):
            return None
        with open("%s/%d/schedstat" % (PROC, server_pid), "rb") as file:
            used = file.read()
            # Where the kernel does not count, it says so by zeros.
            return used if used.strip() not in (b"", b"0 0 0") else None
    except OSError:
        return None


def _socket_mark(socket: str) -> object:
    """Without a server: one that starts makes its socket anew."""
    try:
        found = os.stat(socket)
    except FileNotFoundError:
        return "none"
    except OSError:
        return None
    return (found.st_ino, found.st_ctime_ns)
