"""One pane of the demo: `python -m agtmux.demo.actor SCENE DURATION`.

It sleeps between steps, ends with its pane, and ends by itself when its time is up.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import time
import tty
from typing import Final

from agtmux.demo.play import Play
from agtmux.demo.report import find_hook, report
from agtmux.demo.scenes import Scene, Step, find_scene
from agtmux.demo.screens import paint
from agtmux.domain.durations import SECOND, parse_duration

_STDIN: Final = 0
_STDOUT: Final = 1
# Long lines are cut instead of wrapped, and a paste comes marked as one.
_PREPARE: Final = "\x1b[?7l\x1b[?2004h"


def main(arguments: list[str]) -> int:
    name, lasts = arguments
    perform(find_scene(name), time.monotonic() + parse_duration(lasts) / SECOND)
    return 0


def perform(scene: Scene, until: float) -> None:
    """Until the time is up or the terminal is gone. SIGHUP and SIGTERM end it as they end any process."""
    _read_keys_raw()
    resized = _wake_on_resize()
    hook = find_hook()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    play = Play(scene, time.monotonic())
    _write(_PREPARE)
    reported: Step | None = None
    while (now := time.monotonic()) < until:
        play.pass_time(now)
        if play.step is not reported:
            _write(f"\x1b]2;{play.step.title}\x07")
        size = os.get_terminal_size(_STDOUT)
        _write(paint(play.look(now), size.columns, size.lines).as_ansi())
        if play.step is not reported:
            reported = play.step
            if hook is not None:
                report(hook, scene, play.step)
        now = time.monotonic()
        ready, _, _ = select.select([_STDIN, resized], [], [], min(play.pause(now), max(0.0, until - now)))
        if resized in ready:
            os.read(resized, 64)
        if _STDIN in ready:
            keys = os.read(_STDIN, 4096)
            if not keys:
                return
            play.press(decoder.decode(keys), time.monotonic())


def _read_keys_raw() -> None:
    tty.setcbreak(_STDIN, termios.TCSANOW)
    mode = termios.tcgetattr(_STDIN)
    # Ctrl-C is a key to an agent, not its end; and Enter is a carriage return, as it was sent.
    mode[tty.IFLAG] &= ~termios.ICRNL
    mode[tty.LFLAG] &= ~termios.ISIG
    termios.tcsetattr(_STDIN, termios.TCSANOW, mode)


def _wake_on_resize() -> int:
    """A descriptor that is readable after the window has changed its size."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGWINCH, lambda *_: None)
    return reading


def _write(text: str) -> None:
    remaining = text.encode()
    while remaining:
        remaining = remaining[os.write(_STDOUT, remaining) :]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError:
        # The terminal went away under it.
        sys.exit(1)
