"""The settings files of one machine and user, which belong to somebody else.

The careful part, `agtmux.probe.files`, is the same wherever the files are: LocalFiles uses it in the daemon, and the
files of another machine are reached through its probe (`targets/files.py`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.probe import files as careful
from agtmux.probe.files import FileState


class Files(Protocol):
    """The files of one machine and user. What cannot be done is an AgtmuxError, and then nothing was."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The user's environment, which says where agents keep their settings."""

    def read(self, path: str) -> FileState | None:
        """The file, or None if there is none."""

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""

    def replace(self, path: str, data: bytes, expected: bytes | None, mode: int | None = None) -> list[str]:
        """Write the file if it still holds `expected`; returns the folders that had to be made, outermost first.
        `mode` is one that it must have: otherwise it keeps its own."""

    def remove(self, path: str, expected: bytes, folders: Sequence[str]) -> None:
        """Remove the file if it still holds `expected`, and then those of the folders that are empty."""


class LocalFiles:
    # The limit is longer than any replacement takes, and short enough for someone who waits at a prompt.
    def __init__(self, environ: Mapping[str, str] | None = None, *, limit: float = 5.0) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._limit = limit

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(self, path: str) -> FileState | None:
        with _reported():
            return careful.read(path)

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def replace(self, path: str, data: bytes, expected: bytes | None, mode: int | None = None) -> list[str]:
        with _reported():
            before = None if expected is None else careful.digest(expected)
            return careful.replace(path, data, before, self._limit, mode)

    def remove(self, path: str, expected: bytes, folders: Sequence[str]) -> None:
        with _reported():
            careful.remove(path, careful.digest(expected), folders, self._limit)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except careful.FilesError as error:
        raise AgtmuxError(ErrorCode(error.code), str(error)) from None
