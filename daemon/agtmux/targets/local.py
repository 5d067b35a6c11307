"""A probe in a thread of the daemon, for the tmux servers of this machine."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading

from agtmux.probe.serve import serve
from agtmux.targets.link import Line

_log = logging.getLogger(__name__)


async def open_local() -> Line:
    ours, theirs = socket.socketpair()
    threading.Thread(target=_run, args=(theirs,), name="probe", daemon=True).start()
    reader, writer = await asyncio.open_connection(sock=ours)
    return Line(reader.read, writer.write, writer.close)


def _run(end: socket.socket) -> None:
    try:
        with end:
            serve(end.fileno(), end.fileno())
    except Exception:
        # The other end notices that nobody speaks any more, and starts another.
        _log.exception("the probe failed")
