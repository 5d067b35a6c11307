"""Where the board's token is kept: in the system's keyring, in a file if the user says so, or nowhere but in memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agtmux.api.board.auth import new_token
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.targets import keychain

NAME: Final = "board-token"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.~+/=-]{32,256}")
_LONGEST_FILE: Final = 4_096


@dataclass
class RunToken:
    """The token of a daemon that has no keyring: in its memory alone, and gone with it."""

    token: str = ""
    # Why there is no keyring.
    why: str = ""


class TokenStore:
    """`file` is where the user wants it; without one it is in the keyring. `usual_file` is taken where there is no
    keyring and it is there already: then the user has said so before. Otherwise it is `of_this_run`."""

    def __init__(self, file: Path | None, usual_file: Path, of_this_run: RunToken) -> None:
        self._file = file
        self._usual_file = usual_file
        self._of_this_run = of_this_run

    async def load(self, *, anew: bool = False) -> str:
        """The token, made if there is none."""
        if self._file is not None:
            return await asyncio.to_thread(_from_file, self._file, anew)
        try:
            found = None if anew else await keychain.kept(NAME)
            if found is None or not _TOKEN.fullmatch(found):
                found = new_token()
                await keychain.keep(NAME, found)
        except keychain.NoKeyring as why:
            # A link that leads nowhere is refused, and not taken for nothing.
            if os.path.lexists(self._usual_file):  # noqa: ASYNC240  one look at our own folder
                return await asyncio.to_thread(_from_file, self._usual_file, anew)
            if anew or not self._of_this_run.token:
                self._of_this_run.token = new_token()
            self._of_this_run.why = str(why)
            return self._of_this_run.token
        return found


def _from_file(path: Path, anew: bool) -> str:
    try:
        found = None if anew else _read(path)
        if found is None:
            found = new_token()
            _write(path, found)
        return found
    except OSError as error:
        raise AgtmuxError(
            ErrorCode.CONFIG, f"{path} cannot hold the board's token: {error.strerror}; choose another --token-file"
        ) from None


def _read(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise AgtmuxError(
                ErrorCode.CONFIG, f"{path} must be a file of your own that nobody else may read: `chmod 600 {path}`"
            )
        text = file.read(_LONGEST_FILE).decode("utf-8", "replace").strip()
    if not _TOKEN.fullmatch(text):
        raise AgtmuxError(
            ErrorCode.CONFIG, f"{path} holds no token: 32 to 256 letters and digits; remove it to get a new one"
        )
    return text


def _write(path: Path, token: str) -> None:
    """Whole or not at all, and never for a moment to be read by others."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
