"""A window of the user's terminal in which a command runs.

The command goes into a script of its own, for its user alone, which removes itself as it starts: whatever the terminal
does with its arguments, they are never more than the script's path. No AppleScript, so macOS asks for no permission.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agtmux import paths
from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar.mac.environment import search_path

_OPEN: Final = "/usr/bin/open"
_FOLDERS: Final = ("/Applications", "/System/Applications/Utilities", "~/Applications")


@dataclass(frozen=True, slots=True)
class Terminal:
    # The name that settings keep and the one that people know.
    name: str
    title: str
    app: str
    identifier: str
    # From the app's path and the script's to the command that opens a window.
    argv: Callable[[Path, str], list[str]]

    def find(self, folders: Sequence[str] = _FOLDERS) -> Path | None:
        places = (Path(folder).expanduser() / self.app for folder in folders)
        return next((place for place in places if place.is_dir()), None)


def _opened(identifier: str, *more: str) -> Callable[[Path, str], list[str]]:
    return lambda app, script: [_OPEN, "-b", identifier, *more, script]


def _anew(identifier: str, *more: str) -> Callable[[Path, str], list[str]]:
    # One that runs already takes no arguments from `open`; a second one does.
    return lambda app, script: [_OPEN, "-n", "-b", identifier, "--args", *more, script]


def _own(program: str, *more: str) -> Callable[[Path, str], list[str]]:
    return lambda app, script: [str(app / "Contents" / "MacOS" / program), *more, script]


# Terminal is last: everybody has it, and whoever has another prefers that.
TERMINALS: Final = (
    Terminal("iterm2", "iTerm2", "iTerm.app", "com.googlecode.iterm2", _opened("com.googlecode.iterm2")),
    Terminal(
        "ghostty",
        "Ghostty",
        "Ghostty.app",
        "com.mitchellh.ghostty",
        # Without it, each window that was closed would leave a Ghostty in the Dock.
        _anew("com.mitchellh.ghostty", "--quit-after-last-window-closed=true", "-e"),
    ),
    Terminal("wezterm", "WezTerm", "WezTerm.app", "com.github.wez.wezterm", _own("wezterm", "start", "--")),
    Terminal("kitty", "kitty", "kitty.app", "net.kovidgoyal.kitty", _own("kitty", "--single-instance")),
    Terminal("alacritty", "Alacritty", "Alacritty.app", "org.alacritty", _anew("org.alacritty", "-e")),
    Terminal("terminal", "Terminal", "Terminal.app", "com.apple.Terminal", _opened("com.apple.Terminal")),
)


def installed(folders: Sequence[str] = _FOLDERS) -> list[tuple[Terminal, Path]]:
    return [(terminal, app) for terminal in TERMINALS if (app := terminal.find(folders)) is not None]


def argv_to_open(
    command: Sequence[str], name: str, folders: Sequence[str] = _FOLDERS, *, stays: bool = False
) -> list[str]:
    """The command that opens that terminal, or the first one that is there, with `command` in it."""
    found = installed(folders)
    if name:
        found = [each for each in found if each[0].name == name]
    if not found:
        missing = f"the terminal {name!r} is not installed" if name else "there is no terminal that is known here"
        raise AgtmuxError(ErrorCode.CONFIG, f"{missing}; choose one of {', '.join(t.title for t in TERMINALS)}")
    terminal, app = found[0]
    return terminal.argv(app, str(write_script(command, stays=stays)))


def write_script(command: Sequence[str], folder: Path | None = None, *, stays: bool = False) -> Path:
    """A `.command` file, which Terminal and iTerm2 run when they open it. With `stays`, it ends with Return."""
    folder = folder or Path(paths.state_directory()) / "windows"
    paths.private_directory(str(folder))
    descriptor, name = tempfile.mkstemp(prefix="agtmux-", suffix=".command", dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as opened:
        os.fchmod(descriptor, 0o700)
        last = _STAYS if stays else "exec {command}\n"
        opened.write(_START.format(path=shlex.quote(search_path())) + last.format(command=shlex.join(command)))
    return Path(name)


# A terminal that `open` starts has launchd's environment: no PATH of the user's, and perhaps no locale.
_START: Final = """\
#!/bin/sh
rm -f -- "$0"
PATH="${{PATH:+$PATH:}}"{path}
export PATH
[ -n "$LC_ALL$LC_CTYPE$LANG" ] || export LANG=en_US.UTF-8
cd "$HOME" || exit
"""
_STAYS: Final = """\
{command}
printf '\\nPress Return to close this window. '
read -r _
"""
