"""Starts the process of a session for a terminal, and ends it with that."""

from __future__ import annotations

import json
import os
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import BinaryIO, Final

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode

_LOG: Final = "chat.log"
_LOG_BYTES: Final = 5_000_000
# An agent may take its time to write down its last words.
_END_LIMIT: Final = 20.0


class Started:
    """A session whose life hangs on this process: when that is gone, its standard input ends, and it ends too."""

    def __init__(self, options: Namespace) -> None:
        with _log() as log:
            begins = log.tell()
            self._process = subprocess.Popen(
                [*_program(), *_words(options), "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for the terminal, which breaks off a turn with it; the agent would end by it. But it stays
                # on the terminal: what the agent starts is found to be its own by that.
                process_group=0,
            )
            assert self._process.stdout is not None
            first = self._process.stdout.readline()
            if not first:
                self._process.communicate()
                raise _failure(_last_words(begins))
            told = json.loads(first)
            self.socket: str = told["socket"]
            self.session_id: str = told["session_id"]

    def end(self) -> None:
        try:
            self._process.communicate(timeout=_END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def let_live(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"detach\n")
        self._process.stdin.close()
        # It goes on by itself; this process does not wait for it.
        self._process.returncode = 0
        if self._process.stdout is not None:
            self._process.stdout.close()


def _program() -> list[str]:
    found = paths.beside("agtmux-chat")
    return [found] if found is not None else paths.python_module("agtmux.chat.main")


def _words(options: Namespace) -> list[str]:
    given = {
        "--cwd": options.cwd,
        "--resume": options.resume,
        "--model": options.model,
        "--permission-mode": options.permission_mode,
        "--program": options.program,
        "--approval-timeout": options.approval_timeout,
    }
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    return [*words, "--verbose"] if options.verbose else words


def _log_path() -> Path:
    return Path(paths.state_directory()) / "logs" / _LOG


def _log() -> BinaryIO:
    path = _log_path()
    paths.private_directory(str(path.parent.parent))
    paths.private_directory(str(path.parent))
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")  # noqa: PTH123


def _failure(words: str) -> AgtmuxError:
    """What a session that could not begin has said, under its own code."""
    code, _, message = words.partition(": ")
    known = code in {each.value for each in ErrorCode}
    return AgtmuxError(ErrorCode(code), message) if known else AgtmuxError(ErrorCode.AGENT_FAILED, words)


def _last_words(begins: int) -> str:
    said = _log_path().read_bytes()[begins:].decode("utf-8", "replace").strip().splitlines()
    return said[-1].removeprefix("agtmux: ") if said else f"the session could not be started; see {_log_path()}"
