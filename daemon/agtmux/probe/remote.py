"""The probe as a process of its own, at the end of an SSH channel."""

from __future__ import annotations

import os
import signal

from agtmux.probe.serve import serve


def main(greeting: str) -> None:
    """`greeting` is what the other end waits for: a login shell may have said something before."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)
    os.write(1, greeting.encode())
    serve(0, 1)
    # Threads of hooks that hang are not waited for.
    os._exit(0)


def _leave(number: int, _frame: object) -> None:
    # Through the probe's own clearing up.
    raise SystemExit(128 + number)
