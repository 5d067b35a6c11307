"""The live table: drawn in place, kept current by a watch stream, with ages that tick."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from agtmux.cli.panes import draw_panes
from agtmux.cli.table import cut, terminal_width, wants_colour
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError
from agtmux.domain.states import State

_TICK = 1.0
_URGENCY = {state.value: rank for rank, state in enumerate(State)}


class _View:
    """What the stream has said so far."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, Any]] = {}
        self._summary: dict[str, Any] = {"total": 0, "by_state": {}, "needs_action": 0}
        self._said_at = datetime.now(UTC)
        self._heard_at = time.monotonic()

    def take(self, line: dict[str, Any]) -> None:
        self._summary = line["summary"]
        self._said_at = datetime.fromisoformat(line["generated_at"])
        self._heard_at = time.monotonic()
        if line["type"] == "snapshot":
            self._items = {_key(item["identity"]): item for item in line["items"]}
        for change in line.get("changes", ()):
            if change["op"] == "upsert":
                self._items[_key(change["identity"])] = change["item"]
            else:
                self._items.pop(_key(change["identity"]), None)

    def listing(self) -> dict[str, Any]:
        items = sorted(self._items.values(), key=lambda item: (_URGENCY[item["state"]], _place(item["identity"])))
        # In the daemon's time, which a wall clock that is set does not change.
        now = self._said_at + timedelta(seconds=time.monotonic() - self._heard_at)
        return {"generated_at": now.isoformat(), "summary": self._summary, "items": items}


def show_live(client: Client) -> int:
    """Until q, Ctrl-C or the end of the daemon."""
    view = _View()
    changed, ended = os.pipe(), threading.Event()
    trouble: list[AgtmuxError] = []

    def follow() -> None:
        try:
            for line in client.stream("/v1/watch"):
                view.take(line)
                os.write(changed[1], b".")
        except AgtmuxError as error:
            trouble.append(error)
        except (OSError, ValueError):
            pass
        ended.set()
        os.write(changed[1], b".")

    threading.Thread(target=follow, daemon=True).start()
    with _own_screen():
        while not ended.is_set():
            _draw(view)
            ready, _, _ = select.select([sys.stdin, changed[0]], [], [], _TICK)
            if sys.stdin in ready and os.read(sys.stdin.fileno(), 64)[:1] in (b"q", b"Q", b"\x03", b"\x04", b""):
                return 0
            if changed[0] in ready:
                os.read(changed[0], 65_536)
    if trouble:
        raise trouble[0]
    print("agtmuxd has stopped")
    return 0


@contextmanager
def _own_screen() -> Generator[None, None, None]:
    """The alternate screen with keys read one by one; the terminal is left as it was, whatever happens."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def enter() -> None:
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        sys.stdout.flush()
        tty.setcbreak(terminal)

    def leave() -> None:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()

    def rest(*_: object) -> None:
        """Ctrl-Z: the shell gets its screen back, and we get ours when we are continued."""
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGTSTP, rest)
    enter()
    try:
        yield
    finally:
        leave()


def _draw(view: _View) -> None:
    height = os.get_terminal_size(sys.stdout.fileno()).lines
    width = terminal_width()
    lines = draw_panes(view.listing(), colour=wants_colour(), width=width)
    shown = [*lines[: max(1, height - 2)], "", cut("q leaves; the daemon stays, `agtmux down` stops it", width)]
    body = "\r\n".join(line + "\x1b[K" for line in shown[:height])
    sys.stdout.write("\x1b[H" + body + "\x1b[J")
    sys.stdout.flush()


def _place(identity: dict[str, str]) -> tuple[str, int]:
    return identity["target"], int(identity["pane_id"][1:])


def _key(identity: dict[str, str]) -> str:
    return "\0".join(identity.values())
