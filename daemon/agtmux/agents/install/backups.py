"""What agtmux keeps for itself about other people's files: copies from before a change, and what it made where."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.paths import private_directory
from agtmux.probe.files import LARGEST_FILE

_COPIES: Final = 10
# No disk is filled by an agent that keeps its history in its settings: the latest copy, and more where they are small.
_MOST_BYTES: Final = LARGEST_FILE
# Seconds after which nobody is still writing a copy.
_ABANDONED: Final = 600
_RECORD: Final = "installed.json"
# Hooks and the bridge may be changed at once, and both keep notes of one machine.
_changing = threading.Lock()


class Backups:
    """A folder for one machine's files; made when something is to be kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, agent: str, path: str, data: bytes, digest: str) -> Path:
        """A copy, private as settings hold secrets. The same content is kept once, of each agent the latest ten, or
        as many as are not too large together."""
        copy = self._folder / f"{agent}-{digest[:12]}-{Path(path).name}"
        try:
            private_directory(str(self._folder))
            self._make_room(agent, len(data), besides=copy)
            self._write(copy, data)
        except OSError as error:
            why = f"no copy of {path} can be kept in {self._folder}: {error.strerror}; nothing was changed"
            raise AgtmuxError(ErrorCode.CONFIG, f"{why}, so make room there and try again") from None
        return copy

    def _make_room(self, agent: str, size: int, besides: Path) -> None:
        """Before the next is written, so that there are never more."""
        found = {}
        for each in self._folder.glob(f"{agent}-*"):
            # Another may do the same at once.
            with contextlib.suppress(FileNotFoundError):
                found[each] = each.stat()
        found.pop(besides, None)
        latest = sorted(found, key=lambda each: found[each].st_mtime_ns, reverse=True)
        for kept, each in enumerate(latest, 1):
            size += found[each].st_size
            if kept >= _COPIES or size > _MOST_BYTES:
                each.unlink(missing_ok=True)
        for half in self._folder.glob(f".{agent}-*.tmp"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - half.stat().st_mtime > _ABANDONED:
                    half.unlink()

    def note(self, agent: str, path: str, folders: list[str]) -> None:
        """Remember that an agent's file was changed, and which folders were made for it."""
        with _changing:
            record = self._record()
            known = record.setdefault(agent, {}).get(path, [])
            record[agent][path] = [*known, *(folder for folder in folders if folder not in known)]
            self._save(record)

    def noted(self, agent: str) -> dict[str, list[str]]:
        """The files of an agent that were changed and not restored, each with the folders made for it."""
        return self._record().get(agent, {})

    def forget(self, agent: str, path: str) -> None:
        with _changing:
            record = self._record()
            if record.get(agent, {}).pop(path, None) is not None:
                self._save({name: files for name, files in record.items() if files})

    def all_folders(self) -> list[str]:
        """Every folder that was made here, outermost first."""
        files = (files for by_path in self._record().values() for files in by_path.values())
        return sorted({folder for folders in files for folder in folders}, key=len)

    def _record(self) -> dict[str, dict[str, list[str]]]:
        try:
            return dict(json.loads((self._folder / _RECORD).read_bytes()))
        except (FileNotFoundError, ValueError):
            # Without it, folders made earlier stay. The entries are found without it.
            return {}

    def _save(self, record: dict[str, dict[str, list[str]]]) -> None:
        private_directory(str(self._folder))
        self._write(self._folder / _RECORD, json.dumps(record, indent=2).encode())

    def _write(self, path: Path, data: bytes) -> None:
        # Of its own name: several bridges that have lost their daemon do this at once.
        handle, half = tempfile.mkstemp(".tmp", f".{path.name}.", self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(half).replace(path)
        except BaseException:
            Path(half).unlink(missing_ok=True)
            raise
