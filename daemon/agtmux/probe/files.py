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

from agtmux.probe.excerpts import LeftOut, excerpt

# What is larger is no settings file. Claude Code's are known to have 101 MB.
LARGEST_FILE = 256_000_000
# What may have to be read of one, and to be sent: a larger one is read as an excerpt.
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
    # Of an excerpt, what is not in it, and the digest of the file.
    left_out: LeftOut | None = None
    whole_digest: str = ""

    @property
    def digest(self) -> str:
        return self.whole_digest or digest(self.data)

    def place(self, before: str) -> tuple[int, int]:
        """Line and column, in the file, of what comes after `before` in its text."""
        return (self.left_out or LeftOut("", ())).place(before)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(path: str, wanted: Sequence[str] | None = None) -> FileState | None:
    """The file, or None if there is none. Of one that is larger than MOST_BYTES an excerpt, for which it is said which
    members of its JSON are wanted."""
    state = read_whole(path)
    if state is None or len(state.data) <= MOST_BYTES:
        return state
    if wanted is None:
        why = "%s is larger than %d bytes; it was left alone, so make it smaller and try again"
        raise FilesError("E_CONFIG", why % (path, MOST_BYTES))
    found = excerpt(state.data, wanted, MOST_BYTES)
    if len(found.data) <= MOST_BYTES:
        return FileState(found.data, state.mode, state.target, found.left_out, digest(state.data))
    if found.trouble is not None:
        line = state.data.count(b"\n", 0, found.trouble) + 1
        column = found.trouble - state.data.rfind(b"\n", 0, found.trouble)
        why = "%s cannot be read as settings: it is not JSON (line %d, column %d)" % (path, line, column)
        raise FilesError("E_CONFIG", why + "; it was left as it is, so mend it and try again")
    why = "%s has more than %d bytes in %s and in what is small or has comments in it"
    names = " or ".join('"%s"' % name for name in wanted)
    raise FilesError(
        "E_CONFIG", why % (path, MOST_BYTES, names) + "; it was left alone, so make that smaller and try again"
    )


def read_whole(path: str) -> FileState | None:
    """The file with everything in it, or None if there is none."""
    target = _target(path)
    with _reported("read", path):
        found = _stat(target)
        if found is None:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise FilesError("E_CONFIG", "%s is not a file; nothing was changed" % path)
        if found.st_size > LARGEST_FILE:
            why = "%s is larger than %d bytes; it was left alone, so make it smaller and try again"
            raise FilesError("E_CONFIG", why % (path, LARGEST_FILE))
        link = target if os.path.islink(path) else None
        with open(target, "rb") as file:
            return FileState(file.read(), stat.S_IMODE(found.st_mode), link)


def replace(
    path: str,
    data: bytes,
    expected: str | None,
    limit: float,
    mode: int | None = None,
    left_out: LeftOut | None = None,
) -> list[str]:
    """Write the file if it still is what was read, by its digest, None if it was not there; returns the folders that
    had to be made, outermost first. After `limit` seconds it is not done any more. `mode` is one that it must have.
    What was left out of an excerpt is put in again."""
    target = _target(path)
    until = time.monotonic() + limit
    with _reported("change", path):
        made = _make_folders(os.path.dirname(target))
        try:
            with _locked(target, limit):
                before, source = _unchanged(path, target, expected)
                _write(path, target, _pieces(path, data, source, left_out), before, mode, until)
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


def _unchanged(path: str, target: str, expected: str | None) -> tuple[os.stat_result | None, bytes]:
    """The file's state and what is in it, if it is the one that was read and its owner wants it to be written."""
    found = _stat(target)
    state = read_whole(path)
    if (None if state is None else digest(state.data)) != expected:
        raise changed(path)
    if found is not None and not found.st_mode & stat.S_IWUSR:
        # A rename would get around it, but somebody meant it.
        raise FilesError("E_CONFIG", "%s is read-only; make it writable (chmod u+w) and try again" % path)
    if found is not None and found.st_uid != os.geteuid():
        raise FilesError("E_CONFIG", "%s belongs to another user; nothing was changed" % path)
    return found, b"" if state is None else state.data


def _pieces(path: str, data: bytes, source: bytes, left_out: LeftOut | None) -> Sequence[bytes | memoryview]:
    try:
        return [data] if left_out is None else left_out.filled(data, source)
    except ValueError as error:
        raise FilesError("E_INTERNAL", "%s would lose something (%s); nothing was changed" % (path, error)) from None


def changed(path: str) -> FilesError:
    return FilesError(
        "E_PRECONDITION_FAILED",
        "%s was changed by something else in this moment; nothing was done to it, so try again" % path,
    )


def _identity(found: os.stat_result | None) -> tuple[int, ...] | None:
    if found is None:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


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


def _write(
    path: str,
    target: str,
    pieces: Sequence[bytes | memoryview],
    before: os.stat_result | None,
    mode: int | None,
    until: float,
) -> None:
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
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(handle)
        if time.monotonic() > until:
            # Whoever asked has been told by now that nothing came of it.
            raise FilesError("E_TIMEOUT", "%s could not be written in time; nothing was changed, try again" % target)
        if _identity(_stat(target)) != _identity(before):
            # Writing a large one takes as long as an agent needs to write it, too.
            raise changed(path)
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
