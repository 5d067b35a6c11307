"""Start agtmuxd for a command that finds none.

Many commands may find none in the same moment: every pane's status line after a reboot. They take turns under a
lock, so that one daemon is started and not one for each; and when it gives up, who waited meanwhile tells its reason
too instead of trying the same again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_LIMIT: Final = 15.0
# How long another command may take at it. It may have been stopped, with Ctrl-Z, and have its turn for ever.
_PATIENCE: Final = 5.0
# How long a daemon that somebody else started may take to answer before it is tried again.
_TURN: Final = 1.0
_PAUSE: Final = 0.02
_TRIED: Final = b"tried"
_FAILED: Final = b"failed"
# What a py2app stub leaves in the environment; a daemon, and the tmux it asks, must not inherit it.
_BUNDLE_VARIABLES: Final = (
    "PYTHONHOME",
    "PYTHONPATH",
    "RESOURCEPATH",
    "EXECUTABLEPATH",
    "ARGVZERO",
    "__PYVENV_LAUNCHER__",
)


def start(answering_pid: Callable[[], int | None]) -> None:
    """Return when a daemon answers: the one started here, or another one."""
    # Python prints to standard output what is meant for a standard error that is closed.
    if sys.stderr is not None:
        print("agtmux: starting agtmuxd", file=sys.stderr)
    deadline = time.monotonic() + _LIMIT
    try:
        logs = os.path.join(paths.state_directory(), "logs")
        paths.private_directory(paths.state_directory())
        paths.private_directory(logs)
        with contextlib.closing(_Turns(logs)) as turns:
            if turns.come(answering_pid, deadline):
                _start(turns, answering_pid, deadline)
    except OSError as error:
        raise AgtmuxError(ErrorCode.CONFIG, f"agtmuxd cannot be started: {error}") from None


def _start(turns: _Turns, answering_pid: Callable[[], int | None], deadline: float) -> None:
    complaint = turns.heard()
    while complaint is None:
        complaint = turns.tried(answering_pid, deadline)
        if complaint is None:
            return
        # Of a daemon that launchd started, or a hand. Should it fail, it is this one's turn to find out why.
        if ErrorCode.ALREADY_RUNNING in complaint and time.monotonic() < deadline:
            if _answers(answering_pid, min(deadline, time.monotonic() + _TURN)):
                return
            complaint = None
    raise AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, f"agtmuxd could not be started: {_last_line(complaint)}")


class _Turns:
    """Who may try. The lock's file holds how often it was tried and how the last try went, and beside it lie that
    one's last words: news to those who came before it began, and an old story to all others."""

    def __init__(self, logs: str) -> None:
        self._said = os.path.join(logs, "agtmuxd.stderr")
        # Of one that may yet fail: a daemon that is there all the same goes on writing to its own.
        self._said_first = f"{self._said}.new"
        self._lock = os.open(f"{self._said}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._came_at, _ = self._last()

    def close(self) -> None:
        os.close(self._lock)

    def come(self, answering_pid: Callable[[], int | None], deadline: float) -> bool:
        """Wait for a turn, and not for too long: the daemon itself sees to it that there is one. False if meanwhile
        there is one."""
        until = min(deadline, time.monotonic() + _PATIENCE)
        while not self._is_ours():
            if answering_pid() is not None:
                return False
            if time.monotonic() > until:
                break
            time.sleep(_PAUSE)
        return answering_pid() is None

    def heard(self) -> str | None:
        """Why the last try failed, if it was made since this command came."""
        tries, outcome = self._last()
        if tries == self._came_at or outcome != _FAILED:
            return None
        with open(self._said_first, "rb") as said:
            words = _text(said.read())
        # What was in that one's way may be gone.
        return None if ErrorCode.ALREADY_RUNNING in words else words

    def tried(self, answering_pid: Callable[[], int | None], deadline: float) -> str | None:
        """None as soon as a daemon answers, or the last words of the one that was started."""
        tries = self._last()[0] + 1
        self._note(tries, _TRIED)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._said_first)
        # From before the log is open. A pipe would be closed under it as soon as this command ends.
        with open(self._said_first, "x+b", opener=_privately) as stderr:
            process = subprocess.Popen(
                paths.python_module("agtmux.daemon"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env=_environment(),
                start_new_session=True,
            )
            while (answering := answering_pid()) is None:
                if process.poll() is not None:
                    self._note(tries, _FAILED)
                    stderr.seek(0)
                    return _text(stderr.read())
                if time.monotonic() > deadline:
                    raise _silent(f"agtmuxd (process {process.pid})")
                time.sleep(_PAUSE)
        if answering == process.pid:
            # It runs, whatever becomes of its first words.
            with contextlib.suppress(OSError):
                os.replace(self._said_first, self._said)
        # It lives on by itself. An app may live on, too, and then has to hear of its end.
        threading.Thread(target=process.wait, daemon=True).start()
        return None

    def _is_ours(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _last(self) -> tuple[int, bytes]:
        number, _, outcome = os.pread(self._lock, 40, 0).strip().partition(b" ")
        return (int(number), outcome) if number.isdigit() else (0, _TRIED)

    def _note(self, tries: int, outcome: bytes) -> None:
        # On a disk that is full nobody hears of the others, and each tries for itself.
        with contextlib.suppress(OSError):
            os.pwrite(self._lock, b"%d %-6b\n" % (tries, outcome), 0)


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _BUNDLE_VARIABLES}
    # It runs in another folder, where a relative path would lead elsewhere.
    return kept | {
        "AGTMUX_STATE_DIR": paths.state_directory(),
        "AGTMUX_CONFIG_DIR": paths.config_directory(),
        "AGTMUX_SOCKET": paths.socket_path(),
    }


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _answers(answering_pid: Callable[[], int | None], deadline: float) -> bool:
    while time.monotonic() < deadline:
        if answering_pid() is not None:
            return True
        time.sleep(_PAUSE)
    return False


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()


def _last_line(complaint: str) -> str:
    return complaint.splitlines()[-1].removeprefix("agtmux: ") if complaint else "it said nothing"


def _silent(who: str) -> AgtmuxError:
    log = os.path.join(paths.state_directory(), "logs", "agtmuxd.log")
    return AgtmuxError(ErrorCode.DAEMON_UNAVAILABLE, f"{who} does not answer after {_LIMIT:.0f} seconds; see {log}")
