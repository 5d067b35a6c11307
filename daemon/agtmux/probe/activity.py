"""Whether a tmux server has done anything since it was last asked, without asking it.

Whatever changes a pane, be it output, input, a rename or a new window, makes the server run. So while it has had no
time on a processor, nothing has changed, and no process needs to be spent on finding that out. Our own questions make
it run too: the time is taken when the answer is complete, and by then the server is at rest again.
"""

from __future__ import annotations

import os

PROC = "/proc"


def mark(server_pid: int | None, socket: str) -> object:
    """Something that is equal for as long as nothing has happened; None where that cannot be known."""
    if server_pid is None:
        return _socket_mark(socket)
    try:
        with open("%s/%d/comm" % (PROC, server_pid), "rb") as file:
            # Its pid may be one of another namespace.
            if not file.read().startswith(b"tmux"):
                return None
        with open("%s/%d/schedstat" % (PROC, server_pid), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return "gone" if os.path.isdir(PROC + "/self") else None
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
