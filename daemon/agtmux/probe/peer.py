"""Who is at the other end of a Unix socket, as the kernel says."""

from __future__ import annotations

import socket
import struct
import sys

_TIME_LIMIT = 1.0
# <sys/un.h> of macOS.
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2


def is_answered(path: str) -> bool:
    """Whether anybody listens on a socket, also one who is busy."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(_TIME_LIMIT)
        try:
            caller.connect(path)
        except socket.timeout:
            return True
        except (OSError, ValueError):
            # Not there, not a socket, or a path that no socket can have.
            return False
    return True


def peer_pid(connection: socket.socket) -> int | None:
    """The process that connected; None where the system does not tell, or it is not of this machine."""
    try:
        if sys.platform == "darwin":
            pid = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        else:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid = struct.unpack("3i", credentials)[0]
    except (OSError, AttributeError, struct.error):
        return None
    # Zero for one in another container.
    return pid if pid > 0 else None
