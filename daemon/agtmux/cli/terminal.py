"""A terminal that is ours for a while, and is left as it was, whatever happens."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import TextIO


@contextmanager
def own_screen(terminal: int, output: TextIO) -> Generator[int, None, None]:
    """The alternate screen with keys read one by one; the terminal is left as it was, whatever happens. Yields what
    becomes readable when the screen has to be drawn anew."""
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)

    def enter() -> None:
        output.write("\x1b[?1049h\x1b[?25l")
        output.flush()
        tty.setcbreak(terminal)

    def leave() -> None:
        # A terminal that is gone needs nothing any more.
        with suppress(OSError, termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            output.write("\x1b[?25h\x1b[?1049l")
            output.flush()

    def rest(*_: object) -> None:
        """Ctrl-Z: the shell gets its screen back, and we get ours when we are continued."""
        if os.getpgrp() == os.getsid(0):
            # There is no shell that could do that: a popup would stand still for ever.
            return
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    # Also where it was ignored, as a script does with `&` and nohup: on this screen, Ctrl-C is a key that leaves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    signal.signal(signal.SIGTSTP, rest)
    signal.signal(signal.SIGWINCH, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    enter()
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(-1)
        leave()
        os.close(woken)
        os.close(wakes)
