"""Files of ours in a work tree: in `.agtmux/logs`, which git is told to leave alone in a place that is not committed.

Whoever works in the tree may have put a link there, so none is followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid

from agtmux.probe import git

FOLDERS = (".agtmux", "logs")
IGNORED = "/.agtmux/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.md")
_LARGEST_EXCLUDE = 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LogError(Exception):
    """It cannot be written there; the message says why."""


def write(top: str, name: str, data: bytes, limit: float) -> str:
    """The path of the file. Raises LogError or GitError."""
    if _NAME.fullmatch(name) is None:
        raise LogError("that is no name for a log")
    found = git.look(top, limit)
    if found["top"] != os.path.realpath(top):
        raise LogError("%s is not the top of a git work tree" % top)
    try:
        _ignore(os.path.join(str(found["common"]), "info", "exclude"))
        return _write(str(found["top"]), name, data)
    except OSError as error:
        raise LogError("it cannot be written to %s: %s" % (os.path.join(top, *FOLDERS), error.strerror)) from None


def _write(top: str, name: str, data: bytes) -> str:
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in FOLDERS:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=at)
            below = os.open(folder, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        new = ".%s.%s" % (name, uuid.uuid4().hex[:8])
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.rename(new, name, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            os.unlink(new, dir_fd=at)
            raise
    finally:
        os.close(at)
    return os.path.join(top, *FOLDERS, name)


def _ignore(path: str) -> None:
    """For this repository and all of its work trees, once."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(os.path.dirname(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LogError("%s is no file" % path)
        text = os.pread(descriptor, _LARGEST_EXCLUDE + 1, 0)
        if len(text) > _LARGEST_EXCLUDE:
            raise LogError("%s is too long" % path)
        # A line of its own: within a comment, or behind another word, it means something else.
        if IGNORED.encode() not in [line.rstrip() for line in text.split(b"\n")]:
            os.write(descriptor, (b"" if not text or text.endswith(b"\n") else b"\n") + IGNORED.encode() + b"\n")
    finally:
        os.close(descriptor)
