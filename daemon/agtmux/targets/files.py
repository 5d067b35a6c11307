"""The files of a user on another machine, through the probe that is there."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from agtmux.probe.files import FileState, digest
from agtmux.targets.executor import ProbeExecutor
from agtmux.targets.link import unreachable
from agtmux.targets.messages import Environ, FileRead, Folder, Made, Removed, Versions

T = TypeVar("T")

# The daemon's own loop answers, or tells that nobody does, well before.
_PATIENCE = 60.0


async def read_environ(executor: ProbeExecutor, names: Sequence[str]) -> Mapping[str, str]:
    """Of these variables those that are set there, and HOME."""
    return (await executor.run({"do": "environ", "names": list(names)}, Environ)).values


async def read_versions(executor: ProbeExecutor, commands: Sequence[str]) -> Mapping[str, str]:
    """Of the programs that are installed there; empty where it cannot be told."""
    return (await executor.run({"do": "versions", "commands": list(commands)}, Versions)).versions


class ProbeFiles:
    """Called from a thread, as the files of this machine are; the daemon's loop asks."""

    def __init__(self, executor: ProbeExecutor, loop: asyncio.AbstractEventLoop, environ: Mapping[str, str]) -> None:
        self._executor = executor
        self._loop = loop
        self._environ = environ

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(self, path: str) -> FileState | None:
        found = self._run({"do": "read", "path": path}, FileRead)
        return None if found.data is None else FileState(found.data, found.mode, found.target)

    def is_folder(self, path: str) -> bool:
        return self._run({"do": "is_folder", "path": path}, Folder).is_folder

    def replace(self, path: str, data: bytes, expected: bytes | None, mode: int | None = None) -> list[str]:
        before = None if expected is None else digest(expected)
        written = base64.b64encode(data).decode()
        asked = {"do": "replace", "path": path, "data": written, "expected": before, "mode": mode}
        return self._run(asked, Made).folders

    def remove(self, path: str, expected: bytes, folders: Sequence[str]) -> None:
        self._run({"do": "remove", "path": path, "expected": digest(expected), "folders": list(folders)}, Removed)

    def _run(self, errand: dict[str, Any], kind: type[T]) -> T:
        asking = self._executor.run(errand, kind)
        try:
            return asyncio.run_coroutine_threadsafe(asking, self._loop).result(_PATIENCE)
        except (RuntimeError, CancelledError, TimeoutError):
            asking.close()
            raise unreachable("the daemon is stopping") from None
