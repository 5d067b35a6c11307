"""A probe as a process of its own, spoken to over its pipes as a daemon does over SSH."""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import sys
import time
from typing import Any

from agtmux.probe.frames import Frames, decode, encode
from agtmux.targets.bootstrap import COMMAND, program
from support.home import PATIENCE, Home

GREETING = "\0hello from the test\n"


class ProbeProcess:
    def __init__(
        self, home: Home, python: str = sys.executable, env: dict[str, str] | None = None, **begin: Any
    ) -> None:
        words = [python, *shlex.split(COMMAND)[1:]]
        self.process = home.spawn(*words, env=env, stdin=subprocess.PIPE, text=False)
        self._frames = Frames()
        self._heard: list[dict[str, Any]] = []
        self._asked = 0
        self._write(program(GREETING))
        assert self._read(len(GREETING)) == GREETING.encode(), self.process.stderr
        settings = {"tmux_socket": "", "hooks": False, "watch": [], "silence": 600}
        self._write(encode({"do": "begin", **settings, **begin}))
        self.begun = self.next_notice("begun")

    def look(self, *captures: str) -> dict[str, Any]:
        """The answer to a look, as it is."""
        self._asked += 1
        self._write(encode({"do": "look", "id": self._asked, "captures": list(captures), "anew": [], "limit": 4.0}))
        return self._next(lambda message: message.get("id") == self._asked)

    def begin_errand(self, do: str, **about: Any) -> int:
        """Ask for something that is no look; returns its number."""
        self._asked += 1
        self._write(encode({"do": do, "id": self._asked, "limit": 4.0, **about}))
        return self._asked

    def outcome(self, number: int) -> dict[str, Any]:
        return self._next(lambda message: message.get("id") == number)

    def errand(self, do: str, **about: Any) -> dict[str, Any]:
        return self.outcome(self.begin_errand(do, **about))

    def screens(self, *captures: str) -> dict[str, str]:
        return {screen["pane_id"]: screen["text"] for screen in self.look(*captures)["looked"]["screens"]}

    def next_notice(self, kind: str, limit: float = PATIENCE) -> dict[str, Any]:
        return self._next(lambda message: message.get("notice") == kind, limit)

    def is_silent_for(self, seconds: float) -> bool:
        """Whether nothing comes in that time; this one is a wait for something not to happen."""
        return not self._heard and not self._ready(seconds)

    def _next(self, is_it: Any, limit: float = PATIENCE) -> dict[str, Any]:
        deadline = time.monotonic() + limit
        while True:
            for message in self._heard:
                if is_it(message):
                    self._heard.remove(message)
                    return message
            if not self._ready(deadline - time.monotonic()):
                raise AssertionError(f"not within {limit:.0f} seconds; instead {self._heard}")
            chunk = os.read(self.process.stdout.fileno(), 65_536)
            assert chunk, self.process.stderr.read()
            self._heard += [decode(frame) for frame in self._frames.feed(chunk)]

    def _ready(self, seconds: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return bool(selector.select(max(seconds, 0)))

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            chunk = os.read(self.process.stdout.fileno(), size - len(found))
            assert chunk, self.process.stderr.read()
            found += chunk
        return found

    def _write(self, content: bytes) -> None:
        self.process.stdin.write(content)
        self.process.stdin.flush()
