"""The probe itself: asked over a line of frames, it looks; unasked, it tells when there may be something to see.

In the daemon it runs in a thread at one end of a socket pair, on a VM at the end of an SSH channel: the same code. It
ends with its line, or when nobody has said anything for too long.

    in   {"do": "begin", "tmux_socket", "hooks": bool, "watch": [...], "silence": seconds}   once, first
         {"do": "look", "id", "captures": [pane ids]}
    out  {"notice": "begun", "python", "socket", "hooks": [...], "complaints": [...]}
         {"id", "looked": {...}} or {"id", "failed": message}
         {"notice": "stirred"} · {"notice": "hook", "type", "body"} · {"notice": "file", ...}
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import sys
import threading
import time

from agtmux.probe import tmux
from agtmux.probe.frames import Frames, decode, encode
from agtmux.probe.hook_socket import HookSocket, places
from agtmux.probe.looks import Looker
from agtmux.probe.wake import Wake
from agtmux.probe.watching import Scanner, Watcher, read_tail

# How soon something that happened is noticed.
_ATTENTION = 0.25
# Folders that the system does not tell us about, or that are not there yet, have to be looked at.
_FOLDERS_EVERY = 5.0
# At the start only what somebody may still be at.
_OLDEST_FILE = 12 * 3600
_LONGEST_TEXT = 16 * 1024


class Line:
    """Where messages go. Several threads have something to say."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, message: dict[str, object]) -> None:
        rest = memoryview(encode(message))
        with self._lock:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


class Probe:
    def __init__(self, line: Line, begin: dict[str, object]) -> None:
        self._line = line
        self._tmux_socket = str(begin["tmux_socket"])
        self._silence = float(str(begin["silence"]))
        self._looker = Looker(self._tmux_socket)
        rules = begin["watch"]
        # A user may have no more than 128 watches of the system's kind, and most probes have nothing to watch.
        self._watcher = Watcher(rules) if isinstance(rules, list) and rules else Watcher([], Scanner())
        self._wake = Wake()
        self._hooks: list[HookSocket] = []
        self._complaints: list[str] = []
        # Nobody is told twice that there is something to see.
        self._is_armed = False
        self._folders_due = 0.0
        self._has_seen_folders = False
        if begin["hooks"]:
            self._open_hooks()

    def close(self) -> None:
        for hooks in self._hooks:
            hooks.close()
        self._wake.close()
        self._watcher.close()

    def run(self, incoming: int, frames: Frames) -> None:
        """Until the line ends."""
        self._line.send(
            {
                "notice": "begun",
                "python": "%d.%d" % sys.version_info[:2],
                "socket": tmux.socket_path(self._tmux_socket),
                "hooks": [hooks.path for hooks in self._hooks],
                "complaints": self._complaints,
            }
        )
        heard = time.monotonic()
        while True:
            # Unarmed, there is only the other end's silence to be noticed.
            ready = _ready(
                (incoming, self._watcher.fileno(), self._wake.fileno()), _ATTENTION if self._is_armed else 1.0
            )
            if incoming in ready:
                chunk = os.read(incoming, 65_536)
                if not chunk:
                    return
                heard = time.monotonic()
                for frame in frames.feed(chunk):
                    self.obey(decode(frame))
            elif time.monotonic() - heard > self._silence:
                return
            self._notice(ready)

    def obey(self, message: dict[str, object]) -> None:
        if message.get("do") != "look":
            return
        captures = message.get("captures")
        try:
            looked = self._looker.look(captures if isinstance(captures, list) else [])
        except tmux.TmuxError as error:
            self._is_armed = False
            self._line.send({"id": message.get("id"), "failed": str(error)})
            return
        self._wake.follow(self._looker.wake_channel, self._looker.wake_command)
        self._is_armed = bool(looked["is_metered"]) or self._wake.fileno() is not None
        self._line.send({"id": message.get("id"), "looked": looked})

    def _notice(self, ready: set[int]) -> None:
        woken = self._wake.fileno() in ready and self._wake.has_rung()
        if self._is_armed and (woken or self._looker.has_stirred()):
            self._is_armed = False
            self._line.send({"notice": "stirred"})
        if self._watcher.fileno() in ready or time.monotonic() >= self._folders_due:
            self._tell_files()

    def _tell_files(self) -> None:
        for change in self._watcher.changes():
            path = str(change["path"])
            if self._has_seen_folders or _is_recent(path):
                text = "" if change["gone"] else read_tail(path, _LONGEST_TEXT)
                self._line.send({"notice": "file", "text": text, **change})
        self._has_seen_folders = True
        pause = math.inf if self._watcher.is_told_all() else _FOLDERS_EVERY
        self._folders_due = time.monotonic() + pause

    def _open_hooks(self) -> None:
        for path in places(dict(os.environ)):
            try:
                self._hooks.append(HookSocket(path, self._hand_on))
            except OSError as error:
                self._complaints.append(str(error))

    def _hand_on(self, kind: str, body: str) -> None:
        self._line.send({"notice": "hook", "type": kind, "body": body})


def _is_recent(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < _OLDEST_FILE
    except OSError:
        return False


def _ready(descriptors: tuple[int | None, ...], limit: float) -> set[int]:
    with selectors.PollSelector() as selector:
        for descriptor in descriptors:
            if descriptor is not None:
                selector.register(descriptor, selectors.EVENT_READ)
        return {key.fd for key, _ in selector.select(limit)}


def serve(incoming: int, outgoing: int) -> None:
    """Speak at the end of a line until it ends."""
    frames = Frames()
    first: list[bytes] = []
    while not first:
        chunk = os.read(incoming, 65_536)
        if not chunk:
            return
        first = frames.feed(chunk)
    probe = Probe(Line(outgoing), decode(first[0]))
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for frame in first[1:]:
                probe.obey(decode(frame))
            probe.run(incoming, frames)
    finally:
        probe.close()
