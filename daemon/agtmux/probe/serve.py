"""The probe itself: asked over a line of frames, it looks; unasked, it tells when there may be something to see.

In the daemon it runs in a thread at one end of a socket pair, on a VM at the end of an SSH channel: the same code. It
ends with its line, or when nobody has said anything for too long.

    in   {"do": "begin", "tmux_socket", "hooks": bool, "watch": [...], "silence": seconds}   once, first
         {"do": "look", "id", "captures": [pane ids], "anew": [pane ids], "limit": seconds}
         {"do": "follow", "paths": [...]}   these files and no others, without an answer
         errands, which `errands` has the words for, and what is for bridges, for which `bridges` has them
    out  {"notice": "begun", "python", "sockets": [...]}   once, first
         {"id", "looked": {...}} or {"id", "failed": message}; for errands {"id", "done"} or {"id", "declined"}
         {"notice": "stirred"} when the server has done something, {"notice": "woken"} when tmux itself says so
         {"notice": "door", "complaint"} when it changes whether hooks are heard
         {"notice": "hook", "type", "body", "lineage": [the processes it came from] or null}
         {"notice": "grown", "paths": [...]} when files that are followed have changed
         {"notice": "file", "name", "path", "gone", "text", "beside": [names in the same folder]}
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import sys
import threading
import time

from agtmux.probe import bridges, errands, tmux
from agtmux.probe.following import Following
from agtmux.probe.frames import Frames, decode, encode
from agtmux.probe.hook_socket import HookSocket, places
from agtmux.probe.looks import Looker
from agtmux.probe.wake import Wake
from agtmux.probe.watching import LONGEST_TEXT, Scanner, Untold, Watcher, names_beside, read_tail

# How soon something that happened is noticed.
_ATTENTION = 0.25
# Somebody else may have the door for hooks, an older probe of the same daemon mostly, which ends in a while.
_DOOR_EVERY = 5.0
# A daemon that has said nothing for so long may be gone: its hooks had better keep what they have.
_HEARD_WITHIN = 12.0
# An agent that writes its log line by line is told of a few times a second.
_FILES_PAUSE = 0.25
# Of how many at once: less than the other end takes in a second, hooks and all, or it takes us for hostile.
_FILES_AT_ONCE = 50
# Folders that the system does not tell us about, or that are not there yet, have to be looked at.
_FOLDERS_EVERY = 5.0
# At the start only what somebody may still be at.
_OLDEST_FILE = 12 * 3600


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
        self._following = Following()
        # By the path of each: where hooks may look.
        self._doors: dict[str, HookSocket | None] = dict.fromkeys(places(dict(os.environ)) if begin["hooks"] else ())
        self._bridges = bridges.Bridges(line.send)
        self._errands = errands.Errands(line.send, self._tmux_socket, self._made_folders)
        self._door_due = 0.0
        self._complaint: str | None = None
        self._heard = time.monotonic()
        # Nobody is told twice that there is something to see.
        self._is_armed = False
        self._folders_due = 0.0
        self._files_not_before = 0.0
        self._has_seen_folders = False
        # Files that wait for their turn to be told of.
        self._untold = Untold()

    def close(self) -> None:
        for door in self._doors.values():
            if door is not None:
                door.close()
        self._bridges.close()
        self._wake.close()
        self._watcher.close()
        self._following.close()
        self._errands.close()

    def run(self, incoming: int, frames: Frames) -> None:
        """Until the line ends."""
        self._line.send(
            {
                "notice": "begun",
                "python": "%d.%d" % sys.version_info[:2],
                "sockets": self._looker.socket_paths,
            }
        )
        while True:
            self._open_doors()
            self._wake.resume()
            is_calm = time.monotonic() < self._files_not_before
            # Unarmed, there is only the other end's silence to be noticed.
            ready = _ready(
                (
                    incoming,
                    None if is_calm else self._watcher.fileno(),
                    self._wake.fileno(),
                    self._following.fileno(),
                ),
                min(_ATTENTION if self._is_armed or is_calm else 1.0, self._following.rest),
            )
            if incoming in ready:
                chunk = os.read(incoming, 65_536)
                if not chunk:
                    return
                self._heard = time.monotonic()
                for frame in frames.feed(chunk):
                    self.obey(decode(frame))
            elif time.monotonic() - self._heard > self._silence:
                return
            self._notice(ready)

    def obey(self, message: dict[str, object]) -> None:
        if message.get("do") in errands.NAMES:
            self._errands.take(message)
            return
        if message.get("do") in bridges.NAMES:
            self._bridges.obey(message)
            return
        if message.get("do") == "follow":
            paths = message.get("paths")
            self._following.follow([str(path) for path in paths] if isinstance(paths, list) else [])
            return
        if message.get("do") != "look":
            return
        captures, anew, limit = message.get("captures"), message.get("anew"), message.get("limit")
        try:
            looked = self._looker.look(
                captures if isinstance(captures, list) else [],
                anew if isinstance(anew, list) else [],
                limit if isinstance(limit, (int, float)) else 4.0,
            )
        except tmux.TmuxError as error:
            self._is_armed = False
            self._line.send({"id": message.get("id"), "failed": str(error)})
            return
        except Exception as error:
            # What was told and what not is no longer known: said why, then ended, so that another begins anew.
            why = "the probe failed, which should not happen: %s: %s" % (type(error).__name__, error)
            self._line.send({"id": message.get("id"), "failed": why})
            raise
        self._line.send({"id": message.get("id"), "looked": looked})
        # Only now: it starts a process, and nobody has to wait for that. What rings meanwhile is latched.
        self._wake.follow(self._looker.wake_channel, self._looker.wake_command)
        self._is_armed = bool(looked["is_metered"]) or self._wake.is_followed
        if self._is_armed:
            self._looker.settle()

    def _notice(self, ready: set[int]) -> None:
        if self._wake.fileno() in ready and self._wake.has_rung():
            # Even if it was told that something stirs: that may take its time.
            self._is_armed = False
            self._line.send({"notice": "woken"})
        elif self._is_armed and self._looker.has_stirred():
            self._is_armed = False
            self._line.send({"notice": "stirred"})
        if self._watcher.fileno() in ready or time.monotonic() >= self._folders_due:
            self._tell_files()
        if self._following.fileno() in ready or self._following.is_due():
            grown = self._following.grown()
            if grown:
                self._line.send({"notice": "grown", "paths": grown})

    def _tell_files(self) -> None:
        changes = self._watcher.changes()
        if not self._has_seen_folders:
            changes = [change for change in changes if _is_recent(str(change["path"]))]
        self._untold.add(changes)
        for change in self._untold.take(_FILES_AT_ONCE):
            path = str(change["path"])
            text = "" if change["gone"] else read_tail(path, LONGEST_TEXT)
            self._line.send({"notice": "file", "text": text, "beside": names_beside(path), **change})
        self._has_seen_folders = True
        self._files_not_before = time.monotonic() + _FILES_PAUSE
        pause = math.inf if self._watcher.is_told_all() else _FOLDERS_EVERY
        self._folders_due = time.monotonic() + (_FILES_PAUSE if self._untold else pause)

    def _open_doors(self) -> None:
        """Those that are not open yet; what is in the way may go."""
        if time.monotonic() < self._door_due or all(self._doors.values()):
            return
        self._door_due = time.monotonic() + _DOOR_EVERY
        complaint = ""
        for path, door in self._doors.items():
            try:
                self._doors[path] = door or HookSocket(path, self._hand_on, self._bridges.take)
            except OSError as error:
                complaint = str(error)
        if complaint != self._complaint:
            self._complaint = complaint
            self._line.send({"notice": "door", "complaint": complaint})

    def _made_folders(self) -> list[str]:
        return [folder for door in self._doors.values() if door is not None for folder in door.made]

    def _hand_on(self, kind: str, body: str, lineage: list[int] | None) -> bool:
        """False if there may be nobody to hand it to."""
        if time.monotonic() - self._heard > _HEARD_WITHIN:
            return False
        self._line.send({"notice": "hook", "type": kind[:200], "body": body, "lineage": lineage})
        return True


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
