"""Reading and replacing settings files that belong to somebody else.

A replacement is atomic, keeps the mode, goes through symbolic links to the file behind them, and is refused if the
file is not the one that was read. Nothing of ours stays in the folder: neither a lock nor a half-written file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from agtmux.domain.errors import AgtmuxError, ErrorCode

_LOCK_RETRY: Final = 0.02
_NEW_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


@dataclass(frozen=True, slots=True)
class FileState:
    data: bytes
    mode: int
    # The file behind it, if it is a symbolic link.
    target: str | None = None


class Files(Protocol):
    """The files of one machine and user."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The user's environment, which says where agents keep their settings."""

    def read(self, path: str) -> FileState | None:
        """The file, or None if there is none."""

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""

    def replace(self, path: str, data: bytes, expected: bytes | None) -> list[str]:
        """Write the file if it still holds `expected`; returns the folders that had to be made, outermost first."""

    def remove(self, path: str, expected: bytes, folders: Sequence[str]) -> None:
        """Remove the file if it still holds `expected`, and then those of the folders that are empty."""


class LocalFiles:
    # The limit is longer than any replacement takes, and short enough for someone who waits at a prompt.
    def __init__(self, environ: Mapping[str, str] | None = None, *, lock_limit: float = 5.0) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._lock_limit = lock_limit

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(self, path: str) -> FileState | None:
        target = _target(path)
        with _reported("read", path):
            found = _stat(target)
            if found is None:
                return None
            if not stat.S_ISREG(found.st_mode):
                raise AgtmuxError(ErrorCode.CONFIG, f"{path} is not a file; nothing was changed")
            link = str(target) if Path(path).is_symlink() else None
            return FileState(target.read_bytes(), stat.S_IMODE(found.st_mode), link)

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def replace(self, path: str, data: bytes, expected: bytes | None) -> list[str]:
        target = _target(path)
        with _reported("change", path):
            made = _make_folders(target.parent)
            try:
                with _locked(target, self._lock_limit):
                    before = self._unchanged(path, target, expected)
                    _write(target, data, before)
            except BaseException:
                _remove_empty(made)
                raise
        return made

    def remove(self, path: str, expected: bytes, folders: Sequence[str]) -> None:
        target = _target(path)
        with _reported("remove", path):
            with _locked(target, self._lock_limit):
                self._unchanged(path, target, expected)
                target.unlink()
            _remove_empty(folders)

    def _unchanged(self, path: str, target: Path, expected: bytes | None) -> os.stat_result | None:
        """The file's state, if it is the one that was read and its owner wants it to be written."""
        state = self.read(path)
        if (None if state is None else state.data) != expected:
            raise AgtmuxError(
                ErrorCode.PRECONDITION_FAILED,
                f"{path} was changed by something else in this moment; nothing was done to it, so try again",
            )
        found = _stat(target)
        if found is not None and not found.st_mode & stat.S_IWUSR:
            # A rename would get around it, but somebody meant it.
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} is read-only; make it writable (chmod u+w) and try again")
        if found is not None and found.st_uid != os.geteuid():
            raise AgtmuxError(ErrorCode.CONFIG, f"{path} belongs to another user; nothing was changed")
        return found


@contextlib.contextmanager
def _locked(target: Path, limit: float) -> Iterator[None]:
    """Alone among the agtmux processes that change this file. Agents know nothing of it."""
    lock = target.with_name(f".{target.name}.agtmux-lock")
    deadline = time.monotonic() + limit
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _NEW_FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it before removed it: then this is a lock that nobody else will ever see.
            found = _stat(lock)
            if found is not None and os.path.samestat(found, os.fstat(handle)):
                break
        except BlockingIOError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() > deadline:
            raise AgtmuxError(
                ErrorCode.TIMEOUT, f"another agtmux has been changing {target} for {limit:.0f} s; try again"
            )
        time.sleep(_LOCK_RETRY)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def _write(target: Path, data: bytes, before: os.stat_result | None) -> None:
    for left_behind in target.parent.glob(f".{glob.escape(target.name)}.agtmux-*.tmp"):
        left_behind.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(".tmp", f".{target.name}.agtmux-", target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                if before.st_gid != os.fstat(handle).st_gid:
                    with contextlib.suppress(PermissionError):
                        os.fchown(handle, -1, before.st_gid)
                os.fchmod(handle, stat.S_IMODE(before.st_mode))
            file.write(data)
            file.flush()
            os.fsync(handle)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Not every file system can.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _make_folders(folder: Path) -> list[str]:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(_FOLDER_MODE, exist_ok=True)
    return [str(each) for each in reversed(missing)]


def _remove_empty(folders: Sequence[str]) -> None:
    """The innermost first; one that somebody has used in the meantime stays."""
    for folder in sorted(folders, key=len, reverse=True):
        try:
            Path(folder).rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise


def _target(path: str) -> Path:
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):
        raise AgtmuxError(ErrorCode.CONFIG, f"{path} is a symbolic link that leads nowhere; mend it first") from None


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _reported(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AgtmuxError(
            ErrorCode.CONFIG, f"cannot {what} {path}: {error.strerror}; see that the file and its folder are yours"
        ) from None
