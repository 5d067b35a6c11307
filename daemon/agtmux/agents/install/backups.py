"""What agtmux keeps for itself about other people's files: copies from before a change, and what it made where."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Final

from agtmux.paths import private_directory

_COPIES: Final = 10
_RECORD: Final = "installed.json"


class Backups:
    """A folder for one machine's files; made when something is to be kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, agent: str, path: str, data: bytes) -> Path:
        """A copy, private as settings hold secrets. The same content is kept once, of each agent the latest ten."""
        private_directory(str(self._folder))
        copy = self._folder / f"{agent}-{hashlib.sha256(data).hexdigest()[:12]}-{Path(path).name}"
        self._write(copy, data)
        copies = sorted(self._folder.glob(f"{agent}-*"), key=lambda each: each.stat().st_mtime_ns)
        for old in copies[:-_COPIES]:
            old.unlink(missing_ok=True)
        return copy

    def note(self, agent: str, path: str, folders: list[str]) -> None:
        """Remember that an agent's file was changed, and which folders were made for it."""
        record = self._record()
        known = record.setdefault(agent, {}).get(path, [])
        record[agent][path] = [*known, *(folder for folder in folders if folder not in known)]
        self._save(record)

    def noted(self, agent: str) -> dict[str, list[str]]:
        """The files of an agent that were changed and not restored, each with the folders made for it."""
        return self._record().get(agent, {})

    def forget(self, agent: str, path: str) -> None:
        record = self._record()
        if record.get(agent, {}).pop(path, None) is not None:
            self._save({name: files for name, files in record.items() if files})

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
        half = path.with_name(f".{path.name}.tmp")
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
        half.replace(path)
