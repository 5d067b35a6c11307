"""agtmux's programs on a machine without agtmux: one file each in its user's folder, while an agent there runs it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import ClassVar, Final

from agtmux.agents.install.backups import Backups
from agtmux.agents.install.files import Files
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe.files import FileState

VARIABLES: Final = ("HOME", "XDG_DATA_HOME")
_MODE: Final = 0o700


class Program:
    """One of them. Notes of all that are on one machine belong in the same `backups`: they share folders."""

    NAME: ClassVar[str]
    # In the head of every one that was ever placed.
    MARK: ClassVar[bytes]

    def __init__(self, files: Files, backups: Backups, text: str) -> None:
        data = files.environ.get("XDG_DATA_HOME", "")
        home = files.environ.get("HOME", "")
        folder = PurePosixPath(data if data.startswith("/") else f"{home}/.local/share")
        if not folder.is_absolute():
            raise AgtmuxError(ErrorCode.CONFIG, f"HOME is not set there, so there is no place for {self.NAME}")
        self.path = str(folder / "agtmux" / self.NAME)
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
            folders = self._files.replace(self.path, self._data, found, _MODE)
            # Whoever is last there takes them away, whoever was first.
            shared = [each for each in self._backups.all_folders() if self.path.startswith(f"{each}/")]
            self._backups.note(self.NAME, self.path, [*shared, *folders])

    def remove(self) -> None:
        """With the folders that were made for it; also where it lay when the environment there was another."""
        noted = self._backups.noted(self.NAME)
        for path in dict.fromkeys([self.path, *noted]):
            found = self._files.read(path)
            if found is not None and self.MARK in found.data:
                self._files.remove(path, found, noted.get(path, []))
            self._backups.forget(self.NAME, path)

    def _ours(self) -> FileState | None:
        found = self._files.read(self.path)
        if found is not None and self.MARK not in found.data:
            raise AgtmuxError(ErrorCode.CONFIG, f"{self.path} is there and is not agtmux's; move it away and try again")
        return found


class HookProgram(Program):
    NAME = "agtmux-hook"
    MARK = b"agtmux/hook/compose.py"


class BridgeProgram(Program):
    NAME = "agtmux-mcp"
    MARK = b"agtmux/bridge/compose.py"
