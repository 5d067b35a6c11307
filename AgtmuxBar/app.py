"""What every desktop's app shares: it follows the daemon, keeps the menu and the notifications right, and has done what
is chosen. How things are drawn is a renderer's business, and how the system is asked a desktop's.

One thread follows the daemon and owns all that is known. It sleeps until the daemon says something, something is handed
to it, or a minute turns, and waits for nothing else: the count has to be right at once. What is asked of a daemon, of
tmux or of the desktop is asked in threads of their own, which hand over what they found; and so is done what is chosen
(`deeds.py`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Final, Protocol, TypeVar

from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError
from agtmux.follow import follow
from AgtmuxBar import bridge, model, notify
from AgtmuxBar.looking import Place
from AgtmuxBar.notify import Notification
from AgtmuxBar.settings import Settings, Surroundings, read_settings, write_settings
from AgtmuxBar.snapshot import Snapshot, beside
from AgtmuxBar.tree import Action, Menu

# A burst is drawn a few times a second, and not line by line.
_FRAME: Final = 0.05
# What the stream does not tell is asked for this seldom, soon after something moved, and when the menu is opened.
_REFRESH: Final = 60.0
_REFRESH_SOON: Final = 1.0
# A daemon that is replaced is back sooner.
_AWAY: Final = 2.0
_RETRY: Final = 2.0
_TIME_LIMIT: Final = 5.0
_INTRODUCED: Final = 1.0
_STARTED: Final = 10.0
# How long tmux may take to say which panes are looked at.
_LOOK: Final = 3.0
# Less than this apart, two clocks of one machine are the same.
_CLOCKS_AGREE: Final = 1.0

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Renderer(Protocol):
    """The face. Everything but `call` is called on the renderer's own thread, through `call`."""

    def call(self, function: Callable[[], object]) -> None:
        """Have it run soon on the renderer's thread. May be called from any thread, and keeps the order."""

    def show(self, menu: Menu) -> None:
        """Only called with a menu that differs from the last one."""

    def notify(self, notification: Notification) -> None:
        """Show it, in the place of one with the same key."""

    def withdraw(self, key: str) -> None: ...

    def tell(self, title: str, text: str) -> None:
        """A text to be read: what an agent asks, or why something chosen was not done."""

    def end(self) -> None:
        """The app has been left; the renderer's loop ends."""


class Desktop(Protocol):
    """The system beneath. Called on the app's threads; may block, and raises AgtmuxError or OSError."""

    def surroundings(self) -> Surroundings: ...

    def command(self) -> Sequence[str]:
        """The words that run `agtmux` of this installation."""

    def open_terminal(self, argv: Sequence[str], settings: Settings, *, stays: bool = False) -> None:
        """A window of the user's terminal in which that runs; with `stays` it is open until a key is pressed."""

    def open_file(self, path: str) -> None:
        """In whatever the user reads such files with."""

    def copy(self, text: str) -> None: ...

    def launch_at_login(self, on: bool) -> None: ...

    def start_daemon(self) -> bool:
        """Has what keeps it running here start it, where none answers. Whether it is about to: nobody waits for it."""

    def restart_daemon(self) -> None: ...

    def stop_daemon(self) -> None: ...

    def install_command(self) -> None: ...

    def looked_at(self, targets: Sequence[Mapping[str, Any]]) -> Collection[Place]:
        """The panes that are in front of the user (see `looking.py`); empty where that cannot be known."""


class App:
    def __init__(self, renderer: Renderer, desktop: Desktop, introduce: Callable[[], object] = bridge.register) -> None:
        """Nothing happens before `start`. `introduce` tells agents of the bridge, each time a daemon is there anew; it
        has a thread of its own, and may take its time."""
        self._renderer = renderer
        self._introduce = introduce
        self.desktop = desktop
        self.settings = read_settings()
        self.snapshot = Snapshot()
        self._surroundings = Surroundings()
        self._bridges: Mapping[str, bool] | None = None
        self._memory: notify.Memory | None = None
        self._left: Mapping[str, str] = {}
        self._menu: Menu | None = None
        # The daemon's clock may run ahead of the wall's, never behind.
        self._ahead = 0.0
        self._away_since: float | None = None
        # How long it may be away before that is said.
        self._grace = _AWAY
        self._stream = ""
        self._is_stale = True
        self._drawn_at = float("-inf")
        self._redraw_at = float("inf")
        self._refresh_at = 0.0
        # What is being found out beside: of the daemon, of the desktop, and which panes are looked at, until when.
        self._is_asking = False
        self._asks_again = False
        self._is_describing = False
        self._looking: object = None
        self._look_until = float("inf")
        self._is_stopped = False
        self._inbox: deque[Callable[[], object]] = deque()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._thread = threading.Thread(target=self._run, name="agtmux-follow", daemon=True)
        self._introducing: threading.Thread | None = None
        self._leaving = threading.Lock()
        self._has_left = False

    # From any thread

    def start(self) -> None:
        """Returns at once; the first menu comes through the renderer."""
        self._thread.start()

    def choose(self, action: Action) -> None:
        """An item, a button or a notification was chosen. Returns at once."""
        from AgtmuxBar.deeds import Deeds

        threading.Thread(target=Deeds(self).do, args=(action,), name=f"agtmux-{action.name}", daemon=True).start()

    def opened(self) -> None:
        """The menu is about to be looked at: what is seldom asked for is asked for again."""
        self.hand(lambda: self._refresh_within(0.0))
        self._ask_bridge()

    def inherit(self, left: Mapping[str, str]) -> None:
        """Notifications that an app before this one, which was killed, has left on display: the dialog by the key."""
        self.hand(lambda: self._inherit(left))

    def hand(self, function: Callable[[], object]) -> None:
        """Have it run on the app's own thread."""
        self._inbox.append(function)
        self._wake()

    def change(self, settings: Callable[[Settings, float], Settings]) -> None:
        """Other settings, made of those that are and the time. They are kept."""
        self.hand(lambda: self._change(settings))

    def call(self, function: Callable[[], object]) -> None:
        """On the renderer's thread."""
        self._renderer.call(function)

    def tell(self, title: str, text: str) -> None:
        self.call(lambda: self._renderer.tell(title, text))

    def leave(self) -> None:
        self.stop()
        self.call(self._renderer.end)

    def stop(self) -> None:
        """Ends the thread; the renderer is not called any more. Agents' settings are left as they were found, however
        the app ends: chosen in its menu, by a signal, or with the session. The daemon stays."""
        self._is_stopped = True
        self._wake()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_TIME_LIMIT)
        with self._leaving:
            if self._has_left or self._thread.ident is None:
                return
            self._has_left = True
            if self._introducing is not None:
                # What is on its way to agents would come after what takes it back.
                self._introducing.join(_INTRODUCED)
            bridge.unregister()

    def _wake(self) -> None:
        # A pipe that is full wakes as well.
        with contextlib.suppress(BlockingIOError):
            os.write(self._waker, b"!")

    # The thread

    def _run(self) -> None:
        """Starts a daemon once, as every front end does. Whoever stops it later had a reason."""
        may_start = True
        while True:
            try:
                self._handle()
                if may_start:
                    self._have_started()
                daemon = Client(start=may_start)
                may_start = False
                for _, said in follow(daemon, {"scope": "panes"}, self, tell=logger.info):
                    self._take(said)
            except _Stopped:
                return
            except AgtmuxError as error:
                self._lose(error.message)
            except Exception:
                # A line that cannot be understood, or a mistake of ours: what is shown must not stay as it was.
                logger.exception("what the daemon says could not be taken in")
                self._lose("agtmux could not understand its daemon; restart both")
            try:
                self.rest(_RETRY)
            except _Stopped:
                return
            except Exception:
                logger.exception("what was due while the daemon is away failed")
                # Whatever fails every time is not to keep a processor busy.
                time.sleep(_RETRY)

    def _have_started(self) -> None:
        """By launchd or systemd, which would be turned away, again and again, if we started one meanwhile."""
        try:
            if not self.desktop.start_daemon():
                return
        except (AgtmuxError, OSError, subprocess.SubprocessError) as error:
            logger.warning("the daemon was not started: %s", error)
            return
        deadline = time.monotonic() + _STARTED
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        while not Client(start=False).is_answered() and time.monotonic() < deadline:
            self._handle()
            waiting.poll(50)

    def _take(self, said: Mapping[str, Any]) -> None:
        self._away_since = None
        offset = datetime.fromisoformat(said["emitted_at"]).timestamp() - time.time()
        self._ahead = offset if offset > _CLOCKS_AGREE else 0.0
        had_begun = self.snapshot.is_up
        self.snapshot = self.snapshot.after(said)
        self._is_stale = True
        if said["stream_id"] != self._stream:
            # Another daemon's, perhaps, that took the place of one so soon that it was not missed.
            self._stream = said["stream_id"]
            self._introducing = self._ask_bridge(self._introduce)
        self._refresh_within(_REFRESH_SOON if had_begun else 0.0)

    def wait(self, connection: int) -> None:
        """Until the stream has more to say. Meanwhile what has changed is drawn, and what is handed over is done."""
        self._away_since = None
        if self.snapshot.has_begun and self.snapshot.trouble is not None:
            # The line was lost and found again, and there is nothing new to say on it.
            self.snapshot = replace(self.snapshot, trouble=None)
            self._is_stale = True
        waiting = select.poll()
        waiting.register(connection, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        while True:
            self._handle()
            ready = waiting.poll(max(0.0, self._next() - time.monotonic()) * 1000 + 1)
            if any(descriptor == connection for descriptor, _ in ready):
                return

    def rest(self, seconds: float) -> None:
        """The daemon is away."""
        now = time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        until = now + seconds
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if self.snapshot.trouble is None and time.monotonic() - self._away_since > self._grace:
                self._lose("it has stopped")
            self._handle()
            waiting.poll(min(left, max(0.0, self._next() - time.monotonic())) * 1000 + 1)

    def _handle(self) -> None:
        """Whatever is due."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        while self._inbox:
            self._inbox.popleft()()
        if self._is_stopped:
            raise _Stopped
        now = time.monotonic()
        if now >= self._refresh_at:
            self._refresh()
        if now >= self._look_until:
            # Rather shown than waited for.
            self._tell_unless(self._looking, ())
        if now >= self._redraw_at or (self._is_stale and now >= self._drawn_at + _FRAME):
            self._draw()

    def _next(self) -> float:
        drawing = self._drawn_at + _FRAME if self._is_stale else self._redraw_at
        return min(drawing, self._refresh_at, self._look_until)

    def _draw(self) -> None:
        now = time.time() + self._ahead
        menu = model.build(self.snapshot, self.settings, self._surroundings, now)
        if menu != self._menu:
            self.call(lambda: self._renderer.show(menu))
            self._menu = menu
        self._is_stale, self._drawn_at = False, time.monotonic()
        due = model.next_change(self.snapshot, self.settings, now)
        self._redraw_at = self._drawn_at + (float("inf") if due is None else due)
        if self._looking is None:
            self._notify(now)

    def _notify(self, now: float) -> None:
        outcome = notify.step(self._memory, self.snapshot, self.settings, now, left=self._left)
        if all(each.is_silent for each in outcome.show):
            self._tell_of(outcome)
            return
        # Asked only now, as it costs something. Whatever else is to be told is told with it.
        before, look = self.snapshot, object()

        def seen(looked_at: Collection[Place] | None) -> None:
            self._tell_unless(look, notify.still_so(before, self.snapshot, looked_at or ()))

        self._aside("agtmux-look", lambda: self.desktop.looked_at(before.targets), seen)
        self._looking, self._look_until = look, time.monotonic() + _LOOK

    def _tell_unless(self, look: object, looked_at: Collection[Place]) -> None:
        if look is not self._looking:
            # It took too long, and was not waited for.
            return
        self._looking, self._look_until = None, float("inf")
        now = time.time() + self._ahead
        self._tell_of(notify.step(self._memory, self.snapshot, self.settings, now, looked_at, self._left))

    def _tell_of(self, outcome: notify.Outcome) -> None:
        self._memory = outcome.memory
        if self.snapshot.is_up:
            self._left = {}
        for key in outcome.withdraw:
            self.call(lambda key=key: self._renderer.withdraw(key))  # type: ignore[misc]
        for each in outcome.show:
            self.call(lambda each=each: self._renderer.notify(each))  # type: ignore[misc]
        if outcome.due is not None:
            self._redraw_at = min(self._redraw_at, time.monotonic() + outcome.due)

    def _refresh(self) -> None:
        """What the stream does not tell, and what the desktop is like by now."""
        self._refresh_at = time.monotonic() + _REFRESH
        if self._memory is None:
            # Nothing has been told yet, and what has been there before us is not told as news.
            self._learn(_asked())
            self._describe(self._described())
            return
        if self._is_asking:
            self._asks_again = True
        else:
            self._aside("agtmux-ask", _asked, self._learn)
            self._is_asking = True
        # By itself: a desktop whose disk hangs keeps nobody from hearing what the daemon says.
        if not self._is_describing:
            self._aside("agtmux-desktop", self._described, self._describe)
            self._is_describing = True

    def _learn(self, found: Mapping[str, Any] | None) -> None:
        self._is_asking = False
        if self._asks_again:
            self._asks_again = False
            self._refresh_within(0.0)
        self.snapshot = replace(self.snapshot, **(found or {}))
        self._is_stale = True

    def _described(self) -> Surroundings:
        return replace(self.desktop.surroundings(), has_board=find_spec("agtmux.board") is not None)

    def _describe(self, found: Surroundings | None) -> None:
        self._is_describing = False
        if found is not None:
            self._surroundings = replace(found, bridges=self._bridges)
            self._is_stale = True

    def _ask_bridge(self, first: Callable[[], object] = lambda: None) -> threading.Thread:
        """Settings may be on a slow disk."""

        def ask() -> Mapping[str, bool] | None:
            first()
            return bridge.state()

        return self._aside("agtmux-bridge", ask, self._take_bridges)

    def _aside(self, name: str, find: Callable[[], T], take: Callable[[T | None], object]) -> threading.Thread:
        """Have it found out in a thread of its own, and taken on this one: None if it could not be found out."""

        def work() -> None:
            found: T | None = None
            try:
                found = find()
            except Exception:
                logger.exception("%s failed", name)
            self.hand(lambda: take(found))

        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def _take_bridges(self, found: Mapping[str, bool] | None) -> None:
        self._bridges = found
        self._surroundings = replace(self._surroundings, bridges=found)
        self._is_stale = True

    def _refresh_within(self, seconds: float) -> None:
        self._refresh_at = min(self._refresh_at, time.monotonic() + seconds)

    def _lose(self, why: str) -> None:
        self.snapshot = replace(self.snapshot, trouble=why)
        self._is_stale = True

    def _inherit(self, left: Mapping[str, str]) -> None:
        self._left = left
        self._is_stale = True

    def _change(self, change: Callable[[Settings, float], Settings]) -> None:
        self.settings = change(self.settings, time.time() + self._ahead)
        self._is_stale = True
        try:
            write_settings(self.settings)
        except (OSError, AgtmuxError) as error:
            self.tell("Settings", f"What you chose holds until agtmux is left; it could not be kept: {error}")


def _asked() -> Mapping[str, Any]:
    """What the stream does not tell."""
    try:
        return beside(Client(start=False, time_limit=_TIME_LIMIT))
    except (AgtmuxError, LookupError) as error:
        logger.info("the daemon could not be asked: %s", error)
        return {}


class _Stopped(Exception):
    """The app is being left."""
