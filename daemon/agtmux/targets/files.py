"""The files of a user on another machine, through the probe that is there."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from agtmux.probe.files import FileState
from agtmux.targets.executor import ProbeExecutor
from agtmux.targets.link import unreachable
from agtmux.targets.messages import Answered, Environ, FileRead, Folder, Made, Removed, Versions

T = TypeVar("T")

# The daemon's own loop answers, or tells that nobody does, well before.
_PATIENCE = 60.0
# To write a large file takes longer than a command usually does.
_LARGE_LIMIT = 20.0


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

    def read(self, path: str, wanted: Sequence[str] | None = None) -> FileState | None:
        found = self._run({"do": "read", "path": path, "wanted": None if wanted is None else list(wanted)}, FileRead)
        return found.as_state()

    def whole(self, path: str, state: FileState) -> bytes:
        """What was read: the rest of a large file, which nobody touches, is not worth being sent."""
        return state.data

    def is_folder(self, path: str) -> bool:
        return self._run({"do": "is_folder", "path": path}, Folder).is_folder

    def is_answered(self, socket_path: str) -> bool:
        """Whether anybody listens there."""
        return self._run({"do": "is_answered", "path": socket_path}, Answered).is_answered

    def replace(self, path: str, data: bytes, before: FileState | None, mode: int | None = None) -> list[str]:
        asked: dict[str, Any] = {"do": "replace", "path": path, "data": base64.b64encode(data).decode(), "mode": mode}
        asked["expected"], left_out = (None, None) if before is None else (before.digest, before.left_out)
        return self._run({**asked, "left_out": left_out}, Made, _LARGE_LIMIT if left_out else None).folders

    def remove(self, path: str, before: FileState, folders: Sequence[str]) -> None:
        self._run({"do": "remove", "path": path, "expected": before.digest, "folders": list(folders)}, Removed)

    def _run(self, errand: dict[str, Any], kind: type[T], limit: float | None = None) -> T:
        asking = self._executor.run(errand, kind, limit)
        try:
            return asyncio.run_coroutine_threadsafe(asking, self._loop).result(_PATIENCE)
        except (RuntimeError, CancelledError, TimeoutError):
            asking.close()
            raise unreachable("the daemon is stopping") from None
