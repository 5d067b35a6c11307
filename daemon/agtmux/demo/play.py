"""How a scene goes on: by itself as time passes, or as someone who tries it presses keys.

No terminal and no clock of its own: keys and the time come in, and whoever plays asks which step it is.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from agtmux.demo.scenes import Scene, Screen, Step
from agtmux.demo.screens import Look
from agtmux.domain.legible import legible

_DIALOGS: Final[frozenset[Screen]] = frozenset({"approval", "question"})
_RESTING: Final[frozenset[Screen]] = frozenset({"prompt", "error"})
# Whoever has begun to type is given time to finish.
_TYPING: Final = 30.0
_LONGEST_TEXT: Final = 2_000

# A pasted text whole, an escape sequence such as an arrow key whole, a lone Escape, or one character.
_KEY: Final = re.compile(r"\x1b\[200~(?P<pasted>.*?)\x1b\[201~|\x1b[\[O][0-?]*[ -/]*[@-~]|\x1b|.", re.DOTALL)
_YES: Final = frozenset("yY\r\n")
_NO: Final = frozenset("nN\x1b\x03")
_STOP: Final = frozenset("\x1b\x03")
_ERASE: Final = frozenset("\x7f\x08")


class Play:
    def __init__(self, scene: Scene, now: float) -> None:
        self._scene = scene
        self._index = 0
        # What was not in the script: the answer to someone's keys.
        self._detour: deque[Step] = deque()
        self._typed = ""
        # Sent while it was busy, and taken up when it rests.
        self._queued = ""
        self._step = scene.steps[0]
        self._began = now
        self._ends = now + self._step.hold

    @property
    def step(self) -> Step:
        return self._step

    def look(self, now: float) -> Look:
        return Look(self._scene, self._step, int(now - self._began), self._typed)

    def pause(self, now: float) -> float:
        """Seconds until there is something to do: a busy line turns once a second, all else stands still."""
        left = max(0.0, self._ends - now)
        if self._step.screen != "busy":
            return left
        return min(left, 1.0 - (now - self._began) % 1.0)

    def pass_time(self, now: float) -> None:
        if now >= self._ends:
            self._next(now)

    def press(self, keys: str, now: float) -> None:
        for match in _KEY.finditer(keys):
            pasted = match["pasted"]
            key = match[0] if pasted is None else pasted
            if self._step.screen in _DIALOGS:
                self._answer(key, now)
            elif key in _STOP and self._step.screen not in _RESTING:
                self._stop(now)
            else:
                self._type(key, now, is_pasted=pasted is not None)

    def _answer(self, key: str, now: float) -> None:
        options = len(self._step.options)
        number = int(key) if key.isdecimal() and len(key) == 1 else 0
        # The last option of an approval is the one that says no.
        refused = self._step.screen == "approval" and number == options
        if key in _NO or refused:
            self._stop(now)
        elif key in _YES or 1 <= number <= options:
            self._next(now)

    def _type(self, key: str, now: float, *, is_pasted: bool) -> None:
        is_resting = self._step.screen in _RESTING
        if is_resting:
            self._ends = max(self._ends, now + _TYPING)
        if key in ("\r", "\n") and not is_pasted:
            self._queued, self._typed = self._typed.strip(), ""
            if self._queued and is_resting:
                self._take_queued(now)
        elif key in _STOP:
            self._typed = ""
        elif key in _ERASE:
            self._typed = self._typed[:-1]
        else:
            text = legible(key) if is_pasted else key
            if text.isprintable():
                self._typed = (self._typed + text)[:_LONGEST_TEXT]

    def _take_queued(self, now: float) -> None:
        text, self._queued = self._queued, ""
        self._leave_script([step.with_typed(text) for step in self._scene.manner.turn], now)

    def _stop(self, now: float) -> None:
        self._leave_script([self._scene.manner.stopped], now)

    def _leave_script(self, steps: list[Step], now: float) -> None:
        self._detour = deque(steps)
        # Afterwards the script goes on where it rests next, so that what follows is a new turn.
        count = len(self._scene.steps)
        for _ in range(count):
            if self._scene.steps[self._index].screen in _RESTING:
                break
            self._index = (self._index + 1) % count
        self._next(now)

    def _next(self, now: float) -> None:
        if self._detour:
            self._begin(self._detour.popleft(), now)
            return
        self._index = (self._index + 1) % len(self._scene.steps)
        self._begin(self._scene.steps[self._index], now)

    def _begin(self, step: Step, now: float) -> None:
        self._step = step
        self._began = now
        self._ends = now + step.hold
        if step.screen in _DIALOGS:
            self._typed = ""
        if step.screen in _RESTING and self._queued:
            self._take_queued(now)
