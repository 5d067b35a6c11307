"""What a Linux desktop does for the app: windows of a terminal, the clipboard, what starts at login, the daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agtmux import paths
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar import looking
from AgtmuxBar.commands import run_command
from AgtmuxBar.linux import login, terminals
from AgtmuxBar.looking import Place
from AgtmuxBar.settings import Settings, Surroundings

# Programs that take what is to be copied on their standard input, and the display they are for.
_CLIPBOARDS: Final = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)
_TIME_LIMIT: Final = 30.0


class LinuxDesktop:
    def surroundings(self) -> Surroundings:
        return Surroundings(
            terminals=terminals.found(),
            is_launched_at_login=login.is_on(),
            has_command_line_tool=shutil.which("agtmux") is not None or _link().exists(),
        )

    def command(self) -> Sequence[str]:
        beside = Path(sys.executable).with_name("agtmux")
        return [str(beside)] if beside.exists() else paths.python_module("agtmux.cli.main")

    def open_terminal(self, argv: Sequence[str], settings: Settings, *, stays: bool = False) -> None:
        terminals.open_terminal(argv, settings.terminal, stays=stays)

    def open_file(self, path: str) -> None:
        if shutil.which("xdg-open") is None:
            raise AgtmuxError(ErrorCode.UNSUPPORTED, f"the file is {path}; install xdg-utils to have it opened")
        terminals.spawn(["xdg-open", path])

    def copy(self, text: str) -> None:
        for display, words in _CLIPBOARDS:
            if os.environ.get(display) and shutil.which(words[0]):
                # Output would be kept open by what stays behind to hand out the text.
                subprocess.run(
                    words,
                    input=text.encode(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_TIME_LIMIT,
                    check=True,
                )
                return
        raise AgtmuxError(ErrorCode.UNSUPPORTED, f"install wl-clipboard or xclip to have it copied: {text}")

    def launch_at_login(self, on: bool) -> None:
        if on:
            login.turn_on(paths.python_module("AgtmuxBar.linux"), paths.python_module("agtmux.daemon"))
        else:
            login.turn_off()

    def start_daemon(self) -> bool:
        """Where it is systemd's to run. A second one would only be turned away."""
        if not login.has_unit() or Client(start=False).is_answered():
            return False
        login.start()
        return True

    def restart_daemon(self) -> None:
        if not login.has_unit():
            self._run("down", "--headless")
            self._run("up", "--headless")
            return
        if not login.is_active():
            # One from a terminal would turn systemd's away.
            self._run("down", "--headless")
        login.restart()

    def stop_daemon(self) -> None:
        if login.has_unit():
            login.systemctl("stop", login.UNIT)
        self._run("down", "--headless")

    def install_command(self) -> None:
        """A link where most distributions' PATH has one. One of somebody else's is left alone."""
        command = Path(self.command()[0])
        if command.name != "agtmux":
            raise AgtmuxError(ErrorCode.UNSUPPORTED, "this installation has no agtmux command to link to")
        link = _link()
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            link.symlink_to(command)
        except FileExistsError:
            if link.is_symlink() and link.readlink() == command:
                # Chosen twice, before the menu had noticed.
                return
            raise AgtmuxError(ErrorCode.CONFIG, f"{link} is there already; move it away, then try again") from None

    def looked_at(self, targets: Sequence[Mapping[str, Any]]) -> Collection[Place]:
        return looking.looked_at(targets)

    def _run(self, *words: str) -> None:
        run_command([*self.command(), *words])


def _link() -> Path:
    return Path.home() / ".local" / "bin" / "agtmux"
