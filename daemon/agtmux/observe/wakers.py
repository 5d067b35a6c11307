"""Which tmux servers their users have told to wake agtmux, so that a new server in the place of one is told again.

A file of its own and not a column: it is about the places of servers and not about targets, outlives a target that is
removed and added again, and is written by two commands, seldom.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Target
from agtmux.paths import private_directory


class Wakers:
    def __init__(self, file: Path) -> None:
        self._file = file

    def __contains__(self, target: object) -> bool:
        return isinstance(target, Target) and _place(target) in self._places()

    def add(self, target: Target) -> None:
        self._save([*(place for place in self._places() if place != _place(target)), _place(target)])

    def discard(self, target: Target) -> None:
        if target in self:
            self._save([place for place in self._places() if place != _place(target)])

    def _places(self) -> list[dict[str, str]]:
        try:
            return list(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            # Without it they are not told again, which `hooks status` says.
            return []

    def _save(self, places: list[dict[str, str]]) -> None:
        half = self._file.with_name(f".{self._file.name}.tmp")
        try:
            private_directory(str(self._file.parent))
            with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(json.dumps(places, indent=2).encode())
            half.replace(self._file)
        except OSError as error:
            why = f"{self._file} cannot be written, so a new tmux server will not be told: {error.strerror}"
            raise AgtmuxError(ErrorCode.CONFIG, f"{why}; mend it and try again") from None


def _place(target: Target) -> dict[str, str]:
    return {"ssh_target": target.connection_ref, "tmux_socket": target.tmux_socket}
