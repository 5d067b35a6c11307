"""Reading and replacing settings files that belong to somebody else, on the machine where they are.

A replacement is atomic, keeps the mode, goes through symbolic links to the file behind them, and is refused if the
file is not the one that was read. Nothing of ours stays in the folder: neither a lock nor a half-written file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import stat
import tempfile
import time
from typing import Iterator, NamedTuple, Sequence

# What is larger is no settings file.
MOST_BYTES = 1_000_000
_LOCK_RETRY = 0.02
_NEW_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


class FilesError(Exception):
    """Nothing was changed. The code is one of agtmux's, and the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class FileState(NamedTuple):
    data: bytes
    mode: int
    # The file behind it, if it is a symbolic link.
    target: str | None = None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(path: str) -> FileState | None:
    """The file, or None if there is none."""
    target = _target(path)
    with _reported("read", path):
        found = _stat(target)
        if found is None:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise FilesError("E_CONFIG", "%s is not a file; nothing was changed" % path)
        link = target if os.path.islink(path) else None
        with open(target, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise FilesError("E_CONFIG", "%s is larger than %d bytes; it was left alone" % (path, MOST_BYTES))
        return FileState(data, stat.S_IMODE(found.st_mode), link)


def replace(path: str, data: bytes, expected: str | None, limit: float, mode: int | None = None) -> list[str]:
    """Write the file if it still is what was read, by its digest, None if it was not there; returns the folders that
    had to be made, outermost first. After `limit` seconds it is not done any more. `mode` is one that it must have."""
    target = _target(path)
    until = time.monotonic() + limit
    with _reported("change", path):
        made = _make_folders(os.path.dirname(target))
        try:
            with _locked(target, limit):
                before = _unchanged(path, target, expected)
                _write(target, data, before, mode, until)
        except BaseException:
            remove_empty(made)
            raise
    return made


def remove(path: str, expected: str, folders: Sequence[str], limit: float) -> None:
    """Remove the file if it still is what was read, and then those of the folders that are empty."""
    target = _target(path)
    with _reported("remove", path):
        with _locked(target, limit):
            _unchanged(path, target, expected)
            os.unlink(target)
        remove_empty(folders)


def remove_empty(folders: Sequence[str]) -> None:
    """The innermost first; one that somebody has used in the meantime stays."""
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise


def _unchanged(path: str, target: str, expected: str | None) -> os.stat_result | None:
    """The file's state, if it is the one that was read and its owner wants it to be written."""
    state = read(path)
    if (None if state is None else digest(state.data)) != expected:
        raise FilesError(
            "E_PRECONDITION_FAILED",
            "%s was changed by something else in this moment; nothing was done to it, so try again" % path,
        )
    found = _stat(target)
    if found is not None and not found.st_mode & stat.S_IWUSR:
        # A rename would get around it, but somebody meant it.
        raise FilesError("E_CONFIG", "%s is read-only; make it writable (chmod u+w) and try again" % path)
    if found is not None and found.st_uid != os.geteuid():
        raise FilesError("E_CONFIG", "%s belongs to another user; nothing was changed" % path)
    return found


@contextlib.contextmanager
def _locked(target: str, limit: float) -> Iterator[None]:
    """Alone among the agtmux processes that change this file. Agents know nothing of it."""
    lock = _beside(target, "agtmux-lock")
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
            raise FilesError("E_TIMEOUT", "another agtmux has been changing %s for %.0f s; try again" % (target, limit))
        time.sleep(_LOCK_RETRY)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)
        os.close(handle)


def _write(target: str, data: bytes, before: os.stat_result | None, mode: int | None, until: float) -> None:
    for left_behind in glob.glob(_beside(glob.escape(target), "agtmux-*.tmp")):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left_behind)
    folder, name = os.path.split(target)
    handle, half = tempfile.mkstemp(".tmp", ".%s.agtmux-" % name, folder)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                if before.st_gid != os.fstat(handle).st_gid:
                    with contextlib.suppress(PermissionError):
                        os.fchown(handle, -1, before.st_gid)
                os.fchmod(handle, stat.S_IMODE(before.st_mode))
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            os.fsync(handle)
        if time.monotonic() > until:
            # Whoever asked has been told by now that nothing came of it.
            raise FilesError("E_TIMEOUT", "%s could not be written in time; nothing was changed, try again" % target)
        os.replace(half, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(half)
        raise
    _sync_folder(folder)


def _beside(target: str, suffix: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, ".%s.%s" % (name, suffix))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Not every file system can.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _make_folders(folder: str) -> list[str]:
    missing = []
    while not os.path.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    missing.reverse()
    for each in missing:
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, _FOLDER_MODE)
            # The umask is the whole process's, and strict while the door for hooks is made.
            os.chmod(each, _FOLDER_MODE)
    return missing


def _target(path: str) -> str:
    real = os.path.realpath(path)
    if os.path.islink(real):
        # A link that leads in a circle stays one.
        raise FilesError("E_CONFIG", "%s is a symbolic link that leads nowhere; mend it first" % path)
    return real


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _reported(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = "cannot %s %s: %s; see that the file and its folder are yours"
        raise FilesError("E_CONFIG", why % (what, path, error.strerror)) from None
