"""`agtmux pick`: choose an agent from a list with a view of its screen, and jump to it. Made for a tmux popup."""

from __future__ import annotations

import json
import os
import select
import time
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.attach import add_how, become, jump
from agtmux.cli.keys import is_unfinished, read_keys
from agtmux.cli.options import add_filters, client, filters
from agtmux.cli.pick_model import JUMP, LEAVE, NEST, Model
from agtmux.cli.terminal import own_screen
from agtmux.cli.view import View
from agtmux.client import Client, with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, TextIO

_TICK: Final = 1.0
# A screen is fetched at every tick, and a little early rather than a tick late.
_LOOK_AGAIN: Final = 0.9
# A burst is drawn a few times a second, and not line by line.
_FRAME: Final = 0.04
# How long the rest of a key may take.
_REST_OF_KEY: Final = 0.05
# An agent may take its time to move on.
_ANSWER_LIMIT: Final = 15.0


class _Over(Exception):
    """It ends, with who was chosen."""

    def __init__(self, item: dict[str, Any] | None = None, answer: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.item = item
        # What came of the jump, if there was one.
        self.answer = answer


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Shows your agents, those that need you first, and the screen of the one that is chosen. Enter jumps to it, ?"
        " tells the other keys."
    )
    add_filters(parser)
    add_how(parser)
    parser.add_argument("--print", action="store_true", help="print the ref of the one that is chosen, do not jump")
    parser.add_argument("--no-start", action="store_true", help="fail if the daemon is not running, do not start it")


def run(options: Namespace) -> int:
    daemon = client(options)
    # What is wrong with the question, or with the daemon, is said before the screen is taken.
    daemon.get(with_query("/v1/panes", filters(options)))
    path = with_query("/v1/watch", {"scope": "panes", **filters(options)})
    try:
        # Not standard output, which may be read by whoever wants to know the choice.
        keys = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        raise AgtmuxError(ErrorCode.USAGE, "there is no terminal to choose in; see agtmux list panes") from None
    try:
        with open(keys, "w", encoding="utf-8", errors="replace", closefd=False) as output:
            over = _picked(daemon, path, keys, output, options)
    finally:
        os.close(keys)
    if over.answer is not None and over.answer["way"] == "command":
        become(over.answer, options)
    if options.print and over.item is not None:
        print(over.item["ref"])
    return 1 if options.print and over.item is None else 0


def _picked(daemon: Client, path: str, keys: int, output: TextIO, options: Namespace) -> _Over:
    view = View()
    try:
        with own_screen(keys, output) as woken:
            screen = _Screen(view, keys, output, woken, options)
            for line in daemon.lines(path, screen.wait):
                view.take(json.loads(line))
                screen.is_stale = True
    except _Over as over:
        return over
    except (OSError, ValueError):
        # Its daemon was killed within a line.
        pass
    raise AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, "agtmuxd has stopped")


class _Screen:
    def __init__(self, view: View, keys: int, output: TextIO, woken: int, options: Namespace) -> None:
        self._view = view
        self._keys = keys
        self._output = output
        self._woken = woken
        self._options = options
        self._model = Model()
        self._aside = _Aside()
        self._colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._drawn_at = 0.0
        # Whose screens were asked for, and when last; and those that are on their way.
        self._looked_at: dict[str, float] = {}
        self._coming: set[str] = set()
        self.is_stale = True

    def wait(self, connection: int) -> None:
        """Until the stream has more to say; meanwhile keys are heard, ages tick, and a screen is looked at."""
        while True:
            due = self._drawn_at + (_FRAME if self.is_stale else _TICK) - time.monotonic()
            if due <= 0:
                self._draw()
                continue
            sources = [self._keys, connection, self._woken, self._aside.told]
            ready, _, _ = select.select(sources, [], [], due)
            if self._keys in ready:
                self._hear()
            if self._woken in ready:
                # The window has another size, or we are back from the background.
                os.read(self._woken, 64)
                self.is_stale = True
            if self._aside.told in ready:
                self._aside.finish()
                self.is_stale = True
            if connection in ready:
                return

    def _hear(self) -> None:
        try:
            chunk = os.read(self._keys, 1024)
        except OSError:
            # The terminal is gone.
            raise _Over from None
        while chunk and is_unfinished(chunk) and select.select([self._keys], [], [], _REST_OF_KEY)[0]:
            chunk += os.read(self._keys, 1024)
        for key in read_keys(chunk):
            wish = self._model.press(key)
            if wish is not None:
                self._fulfil(*wish)
            if self._model.is_asking:
                # What was typed before the question could be read is no answer to it.
                break
        # At once: whoever presses a key looks at the screen.
        self._draw()

    def _fulfil(self, wish: str, item: dict[str, Any] | None) -> None:
        if wish == LEAVE or item is None:
            raise _Over
        if wish in (JUMP, NEST):
            self._options.nested |= wish == NEST
            self._jump(item)
        else:
            self._answer(wish, item)

    def _jump(self, item: dict[str, Any]) -> None:
        if self._options.print:
            raise _Over(item)
        asked = {"ref": f"runtime:{item['runtime_id']}", "if_runtime": item["runtime_id"], "actor": "pick"}
        try:
            answer = jump(Client(start=False), asked, self._options)
        except AgtmuxError as error:
            if error.details.get("would_nest"):
                self._model.ask_to_nest(item)
            else:
                self._model.note = error.message
            return
        raise _Over(item, answer)

    def _answer(self, action: str, item: dict[str, Any]) -> None:
        asked = {
            "request_ref": uuid.uuid4().hex,
            "ref": f"runtime:{item['runtime_id']}",
            "if_runtime": item["runtime_id"],
            "if_state": item["state"],
            "actor": "pick",
        }
        # For just the question that is shown.
        dialog = (item["attention"] or {}).get("fingerprint")
        asked |= {"if_state_version": item["state_version"]} | ({"if_dialog": dialog} if dialog else {})
        self._model.note = f"{action}…"

        def ask() -> str:
            Client(start=False, time_limit=_ANSWER_LIMIT).post(f"/v1/actions/{action}", asked)
            return {"approve": "approved", "deny": "denied"}[action]

        def take(note: str | AgtmuxError) -> None:
            if isinstance(note, AgtmuxError):
                self._model.note = note.message
                return
            self._model.note = note
            self._model.answered(item)

        self._aside.begin(ask, take)

    def _look(self) -> None:
        """Have the chosen one's screen fetched, if it is time. One that is slow to come is not asked for twice."""
        item = self._model.chosen
        if item is None:
            return
        runtime_id, now = item["runtime_id"], time.monotonic()
        if runtime_id in self._coming or now - self._looked_at.get(runtime_id, -_TICK) < _LOOK_AGAIN:
            return
        self._looked_at[runtime_id] = now
        self._coming.add(runtime_id)
        path = with_query("/v1/preview", {"ref": f"runtime:{runtime_id}"})

        def take(text: str | AgtmuxError) -> None:
            self._coming.discard(runtime_id)
            self._model.take_preview(runtime_id, text.message if isinstance(text, AgtmuxError) else text)

        self._aside.begin(lambda: str(Client(start=False).get(path)["output"]), take)

    def _draw(self) -> None:
        self.is_stale, self._drawn_at = False, time.monotonic()
        if not self._view.has_begun:
            return
        self._model.take(self._view.listing())
        self._look()
        size = os.get_terminal_size(self._keys)
        # Some terminals have no size.
        lines = self._model.draw(size.columns or 80, size.lines or 24, colour=self._colour)
        self._output.write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
        self._output.flush()


class _Aside:
    """What takes its time is asked for in threads, and what came of it is taken up where the keys are heard."""

    def __init__(self) -> None:
        from queue import SimpleQueue

        self.told, self._tells = os.pipe()
        self._done: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def begin(self, ask: Callable[[], str], take: Callable[[str | AgtmuxError], None]) -> None:
        from threading import Thread

        def work() -> None:
            try:
                found: str | AgtmuxError = ask()
            except AgtmuxError as error:
                found = error
            self._done.put(lambda: take(found))
            os.write(self._tells, b".")

        Thread(target=work, daemon=True).start()

    def finish(self) -> None:
        os.read(self.told, 64)
        while not self._done.empty():
            self._done.get()()
