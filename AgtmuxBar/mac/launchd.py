"""The daemon as a launchd agent of the user's: written, started, restarted and removed again.

launchd is asynchronous. `bootout` returns before the job is gone, and a `bootstrap` right after it fails with 5 or 37;
so we wait for what `print` says. Whether the daemon is well is told by its socket, not by launchd.
"""

from __future__ import annotations

import os
import plistlib
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final
from xml.parsers.expat import ExpatError

from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar.mac import spawn
from AgtmuxBar.mac.environment import for_child, search_path

LABEL: Final = "dev.agtmux.daemon"
# Where a bundle has its daemon.
_PROGRAM: Final = "AgtmuxBar.app/Contents/MacOS/agtmuxd"
_LIMIT: Final = 20.0
_TURN: Final = 0.1
# `Input/output error` and `Operation already in progress`: one of that name is there, or is still going.
_BUSY: Final = (5, 37)
# launchd's words for a job that it does not have.
_UNKNOWN: Final = 113
# In what `print` tells of a job that runs.
_PID: Final = re.compile(r"^\s*pid = (\d+)$", re.MULTILINE)
# Where things are, tmux's sockets among them, and what letters there are.
_INHERITED: Final = (
    *("AGTMUX_STATE_DIR", "AGTMUX_CONFIG_DIR", "AGTMUX_SOCKET", "TMUX_TMPDIR"),
    *("LANG", "LC_ALL", "LC_CTYPE"),
)


class Launchd:
    def __init__(
        self,
        home: Path | None = None,
        run: Callable[[Sequence[str]], CompletedProcess[str]] = spawn.run,
        limit: float = _LIMIT,
    ) -> None:
        self._home = home or Path.home()
        self._run = run
        self._limit = limit
        self._domain = f"gui/{os.getuid()}"

    @property
    def file(self) -> Path:
        return self._home / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    def is_loaded(self) -> bool:
        done = self._launchctl("print", self._job)
        if done.returncode not in (0, _UNKNOWN):
            raise _failed("print", done)
        return done.returncode == 0

    def pid(self) -> int | None:
        """Of the process that launchd has started and that still runs; one that is loaded may have none."""
        found = _PID.search(self._launchctl("print", self._job).stdout)
        return int(found[1]) if found else None

    def start(self, program: Path, log: Path) -> None:
        """Have launchd run it, by a file that says so. What runs already and is as it should be is left alone, and so
        is a file of that name which the user has written: launchd is to run what that says."""
        is_new = not self._is_users() and self._write(job(program, log, self._home))
        if is_new and self.is_loaded():
            # What launchd has in mind is what the file said when it was loaded.
            self._bootout()
        if not self.is_loaded():
            self._bootstrap()
        self._check("kickstart", self._job)

    def restart(self) -> None:
        """At once, whatever state it is in."""
        self._check("kickstart", "-k", self._job)

    def remove(self) -> None:
        """Ended, and not back at the next login, unless by a file of the user's own."""
        if self.is_loaded():
            self._bootout()
        if not self._is_users():
            self.file.unlink(missing_ok=True)

    @property
    def _job(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _is_users(self) -> bool:
        """Whether there is one that starts something else than a bundle of ours, wherever that is or was."""
        try:
            arguments = plistlib.loads(self.file.read_bytes())["ProgramArguments"]
            return not str(arguments[0]).endswith(_PROGRAM)
        except FileNotFoundError:
            return False
        except (ValueError, LookupError, TypeError, ExpatError):
            return True

    def _write(self, content: dict[str, Any]) -> bool:
        """Whole or not at all; whether there was something to write."""
        wanted = plistlib.dumps(content)
        if self.file.exists() and self.file.read_bytes() == wanted:
            return False
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{LABEL}.", dir=self.file.parent)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(wanted)
            # launchd refuses a file that others could write.
            Path(unfinished).chmod(0o644)
            Path(unfinished).replace(self.file)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        return True

    def _bootstrap(self) -> None:
        end = time.monotonic() + self._limit
        while True:
            done = self._launchctl("bootstrap", self._domain, str(self.file))
            if done.returncode == 0:
                return
            if done.returncode not in _BUSY:
                raise _failed("bootstrap", done)
            if time.monotonic() > end:
                # One that is still there by now is not on its way out: another has loaded it.
                if self.is_loaded():
                    return
                raise _failed("bootstrap", done)
            time.sleep(_TURN)

    def _bootout(self) -> None:
        done = self._launchctl("bootout", self._job)
        # 36 says that it is under way, and 113 or 3 that it is gone already.
        if done.returncode not in (0, 3, 36, 37, _UNKNOWN):
            raise _failed("bootout", done)
        end = time.monotonic() + self._limit
        while self.is_loaded():
            if time.monotonic() > end:
                raise AgtmuxError(ErrorCode.TIMEOUT, f"launchd has not ended {LABEL}; see launchctl print {self._job}")
            time.sleep(_TURN)

    def _check(self, *words: str) -> None:
        done = self._launchctl(*words)
        if done.returncode != 0:
            raise _failed(words[0], done)

    def _launchctl(self, *words: str) -> CompletedProcess[str]:
        return self._run(["/bin/launchctl", *words])


def job(program: Path, log: Path, home: Path) -> dict[str, Any]:
    """The template with what is this user's in it. Its values are values, never text in XML."""
    template = (resources.files("agtmux") / "resources" / "launchd" / f"{LABEL}.plist").read_bytes()
    content: dict[str, Any] = plistlib.loads(template)
    content["ProgramArguments"] = [str(program)]
    content["StandardErrorPath"] = str(log)
    content["WorkingDirectory"] = "/"
    mine = for_child(home=home)
    kept = {name: mine[name] for name in _INHERITED if name in mine}
    # Not this process's PATH: a shell that has started us once would stay in it.
    content["EnvironmentVariables"] = {"PATH": search_path(home=home), **kept}
    return content


def _failed(word: str, done: CompletedProcess[str]) -> AgtmuxError:
    complaint = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
    return AgtmuxError(ErrorCode.INTERNAL, f"launchctl {word} {LABEL}: {complaint}")
