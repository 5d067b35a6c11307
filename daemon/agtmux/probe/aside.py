"""Questions to the file system that may never be answered, asked by a thread of their own.

A pane may stand in a folder of a server that has gone: whoever asks about it hangs until that server is back. The look
goes on without the answer, and nobody asks a second time while the first question hangs.
"""

from __future__ import annotations

import threading
from typing import Callable, TypeVar

T = TypeVar("T")

_PATIENCE = 0.5


class Aside:
    def __init__(self) -> None:
        self._is_busy = False
        self._lock = threading.Lock()

    def ask(self, question: Callable[[], T]) -> T | None:
        """The answer, or None if it does not come in time, or an earlier one has not come yet."""
        with self._lock:
            if self._is_busy:
                return None
            self._is_busy = True
        answer: list[T] = []
        is_done = threading.Event()

        def run() -> None:
            try:
                answer.append(question())
            except (OSError, ValueError, RecursionError):
                pass
            finally:
                self._is_busy = False
                is_done.set()

        threading.Thread(target=run, name="files", daemon=True).start()
        is_done.wait(_PATIENCE)
        return answer[0] if answer else None
