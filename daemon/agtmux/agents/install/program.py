"""agtmux-hook on a machine without agtmux: one file in its user's folder, for as long as an agent there runs it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import FileState

NAME: Final = "agtmux-hook"
VARIABLES: Final = ("HOME", "XDG_DATA_HOME")
_MODE: Final = 0o700
# In the head of every one that was ever placed.
_MARK: Final = b"agtmux/hook/compose.py"


class HookProgram:
    def __init__(self, files: Files, backups: Backups, text: str) -> None:
        data = files.environ.get("XDG_DATA_HOME", "")
        home = files.environ.get("HOME", "")
        folder = PurePosixPath(data if data.startswith("/") else f"{home}/.local/share")
        if not folder.is_absolute():
            raise AgtmuxError(ErrorCode.CONFIG, "HOME is not set there, so there is no place for agtmux-hook")
        self.path = str(folder / "agtmux" / NAME)
        self._files = files
        self._backups = backups
        self._data = text.encode()

    def is_current(self) -> bool:
        found = self._files.read(self.path)
        return found is not None and (found.data, found.mode) == (self._data, _MODE)

    def place(self) -> None:
        """As it should be. One of another version is replaced, anything else of that name is left alone."""
        found = self._ours()
        if found is None or (found.data, found.mode) != (self._data, _MODE):
            before = None if found is None else found.data
            folders = self._files.replace(self.path, self._data, before, _MODE)
            self._backups.note(NAME, self.path, folders)

    def remove(self) -> None:
        """With the folders that were made for it; also where it lay when the environment there was another."""
        noted = self._backups.noted(NAME)
        for path in dict.fromkeys([self.path, *noted]):
            found = self._files.read(path)
            if found is not None and _MARK in found.data:
                self._files.remove(path, found.data, noted.get(path, []))
            self._backups.forget(NAME, path)

    def _ours(self) -> FileState | None:
        found = self._files.read(self.path)
        if found is not None and _MARK not in found.data:
            raise AgtmuxError(ErrorCode.CONFIG, f"{self.path} is there and is not agtmux's; move it away and try again")
        return found
