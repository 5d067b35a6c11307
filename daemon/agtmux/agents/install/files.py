"""The settings files of one machine and user, which belong to somebody else.

The careful part, `agtmux.probe.files`, is the same wherever the files are: LocalFiles uses it in the daemon, and the
files of another machine are reached through its probe (`targets/files.py`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe import files as careful
from agtmux.probe.files import FileState

# Bytes a second that any disk takes.
_SLOWEST: Final = 10_000_000


class Files(Protocol):
    """The files of one machine and user. What cannot be done is an AgtmuxError, and then nothing was."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The user's environment, which says where agents keep their settings."""

    def read(self, path: str, wanted: Sequence[str] | None = None) -> FileState | None:
        """The file, or None if there is none. Of a large one an excerpt, if it is said which members of it are wanted:
        without that it is an error."""

    def whole(self, path: str, state: FileState) -> bytes:
        """All that the file held when it was read so; of a large one on another machine, what was read of it."""

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""

    def replace(self, path: str, data: bytes, before: FileState | None, mode: int | None = None) -> list[str]:
        """Write the file if it still is as it was read; returns the folders that had to be made, outermost first.
        `mode` is one that it must have: otherwise it keeps its own. What an excerpt did not have stays."""

    def remove(self, path: str, before: FileState, folders: Sequence[str]) -> None:
        """Remove the file if it still is as it was read, and then those of the folders that are empty."""


class LocalFiles:
    # The limit is longer than any replacement takes, and short enough for someone who waits at a prompt.
    def __init__(self, environ: Mapping[str, str] | None = None, *, limit: float = 5.0) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._limit = limit

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(self, path: str, wanted: Sequence[str] | None = None) -> FileState | None:
        with _reported():
            return careful.read(path, wanted)

    def whole(self, path: str, state: FileState) -> bytes:
        if state.left_out is None:
            return state.data
        with _reported():
            found = careful.read_whole(path)
            if found is None or found.digest != state.digest:
                raise careful.changed(path)
            return found.data

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def replace(self, path: str, data: bytes, before: FileState | None, mode: int | None = None) -> list[str]:
        expected, left_out = (None, None) if before is None else (before.digest, before.left_out)
        limit = self._limit + (0 if left_out is None else left_out.size / _SLOWEST)
        with _reported():
            return careful.replace(path, data, expected, limit, mode, left_out)

    def remove(self, path: str, before: FileState, folders: Sequence[str]) -> None:
        with _reported():
            careful.remove(path, before.digest, folders, self._limit)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except careful.FilesError as error:
        raise AgtmuxError(ErrorCode(error.code), str(error)) from None
