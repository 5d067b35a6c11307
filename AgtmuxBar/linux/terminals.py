"""Which terminals there are, and the words that have each run a command in a window of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agtmux.domain.errors import AgtmuxError, ErrorCode

# By program: how people call it, and what goes before the command.
TERMINALS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "gnome-terminal": ("GNOME Terminal", ("--",)),
    "ptyxis": ("Ptyxis", ("--",)),
    "konsole": ("Konsole", ("-e",)),
    "xfce4-terminal": ("Xfce Terminal", ("-x",)),
    "kitty": ("kitty", ()),
    "alacritty": ("Alacritty", ("-e",)),
    "wezterm": ("WezTerm", ("start", "--")),
    "ghostty": ("Ghostty", ("-e",)),
    "foot": ("foot", ()),
    "tilix": ("Tilix", ("-e",)),
    "terminator": ("Terminator", ("-x",)),
    "urxvt": ("urxvt", ("-e",)),
    "st": ("st", ("-e",)),
    "xterm": ("xterm", ("-e",)),
}
# What Debian and its kin link to the one that the user prefers.
_PREFERRED: Final = "x-terminal-emulator"
# A terminal that cannot start says so at once.
_AT_ONCE: Final = 0.4
# A terminal must not take itself to be within tmux, nor a bundle's Python for its own.
DROPPED: Final = ("TMUX", "TMUX_PANE", "PYTHONHOME", "PYTHONPATH", "RESOURCEPATH")
# The window would be gone before anyone has read what is in it.
_STAYS: Final = ("sh", "-c", '"$@"; printf "\\n[Enter closes this window] "; read -r _', "sh")


def found() -> tuple[tuple[str, str], ...]:
    return tuple((program, label) for program, (label, _) in TERMINALS.items() if shutil.which(program))


def words(chosen: str, environment: Mapping[str, str]) -> list[str]:
    """What goes before a command: of the one that was chosen, of $TERMINAL, or of what is there."""
    for program in (chosen, environment.get("TERMINAL", ""), _PREFERRED, *TERMINALS):
        if program and (path := shutil.which(program)) is not None:
            return [path, *TERMINALS.get(Path(program).name, ("", ("-e",)))[1]]
    raise AgtmuxError(
        ErrorCode.UNSUPPORTED, "no terminal was found to open; install one, or set TERMINAL to the one you use"
    )


def open_terminal(argv: Sequence[str], chosen: str, *, stays: bool) -> None:
    command = [*words(chosen, os.environ), *(_STAYS if stays else ()), *argv]
    spawn(command)


def spawn(command: Sequence[str]) -> None:
    """Apart from the tray, and living on without it. Raises if it fails at once."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if process.wait(_AT_ONCE) != 0:
            raise AgtmuxError(ErrorCode.INTERNAL, f"{command[0]} ended at once with status {process.returncode}")
    except subprocess.TimeoutExpired:
        # Whenever it ends, somebody must take note.
        threading.Thread(target=process.wait, name="agtmux-reap", daemon=True).start()
