"""Whether a process is at a terminal that a person opened: what a kernel knows of it, without asking the process.

A person's command has a controlling terminal, is in front there, and was started by an interactive shell that leads
the terminal's session. That shell was started by a login or by a terminal program. A process that its parent let go of
(`setsid`, a double fork) has no controlling terminal. A shell of `screen`, `script` or of a tmux server that nobody
watches has one, but nothing says who types there, so what started it is none of `_OPENERS`.

Names are what processes call themselves. A program that means to deceive can take any; none has one of these by chance.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import namedtuple

from agtmux.probe.processes import PROC, Process, read_argv, read_one, read_table

# The command that asks with everything that started it, nearest first; `why_not` is empty if it is at a terminal of a
# person's own.
AtTerminal = namedtuple("AtTerminal", "lineage why_not")

_MOST_PROCESSES = 64
_NO_TERMINAL = (0, -1, 0xFFFFFFFF)
_SHELLS = frozenset({"sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "xonsh", "elvish"})
# A cluster of short options with `c` in it: a shell that runs one command and ends.
_RUNS_ONE = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command(=.*)?")
# Linux keeps fifteen characters of a name.
_OPENERS = frozenset(
    name[:15]
    for name in (
        *("login", "sshd", "sshd-session", "sshd-auth", "mosh-server", "etterminal", "su", "sudo", "doas"),
        *("gnome-terminal-server", "kgx", "ptyxis-agent", "konsole", "yakuake", "xfce4-terminal", "mate-terminal"),
        *("lxterminal", "qterminal", "terminator", "tilix", "guake", "tilda", "deepin-terminal", "cosmic-term"),
        *("xterm", "urxvt", "urxvtd", "rxvt", "st", "kitty", "alacritty", "ghostty", "foot", "footserver", "rio"),
        *("wezterm-gui", "contour", "hyper", "tabby", "warp-terminal", "Terminal", "iTerm2", "iTermServer"),
    )
)


def at_terminal(pid: int) -> AtTerminal:
    lineage = _lineage(pid)
    if not lineage:
        return AtTerminal([], "its process has ended")
    process = lineage[0]
    if process.tty in _NO_TERMINAL:
        return AtTerminal(lineage, "it has no terminal")
    if process.pgid != process.tpgid:
        return AtTerminal(lineage, "it runs in the background of its terminal")
    leader_pid = _session(pid)
    above = [each.pid for each in lineage]
    if leader_pid not in above[1:]:
        return AtTerminal(lineage, "no shell that leads its terminal has started it")
    at = above.index(leader_pid)
    if any(each.tty != process.tty for each in lineage[: at + 1]):
        return AtTerminal(lineage, "what started it is at another terminal")
    if not _is_interactive_shell(leader_pid):
        return AtTerminal(lineage, "what leads its terminal is no shell that takes commands")
    leader = lineage[at]
    # Zero: put into a container from outside of it, as by `docker exec`.
    if leader.ppid != 0 and _name(leader.ppid) not in _OPENERS:
        return AtTerminal(lineage, "what opened its terminal is no login and no terminal program that is known")
    return AtTerminal(lineage, "")


def _lineage(pid: int) -> list[Process]:
    found: list[Process] = []
    process = read_one(pid)
    while process is not None and len(found) < _MOST_PROCESSES:
        found.append(process)
        process = read_one(process.ppid) if process.ppid > 0 else None
    return found


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _is_interactive_shell(pid: int) -> bool:
    words = _words(pid)
    if not words or os.path.basename(words[0]).lstrip("-") not in _SHELLS:
        return False
    return all(word.startswith("-") and not _RUNS_ONE.fullmatch(word) for word in words[1:])


def _words(pid: int) -> list[str]:
    if sys.platform == "darwin":
        process = read_table().get(pid)
        return [] if process is None or process.argv is None else list(process.argv)
    return read_argv(pid)


def _name(pid: int) -> str:
    """As the kernel keeps it, also of another account's process."""
    if sys.platform == "darwin":
        try:
            words = ["/bin/ps", "-o", "comm=", "-p", str(pid)]
            told = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=5).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return os.path.basename(told.decode("utf-8", "replace").strip()).lstrip("-").split(" ")[0][:15]
    try:
        with open("%s/%d/comm" % (PROC, pid), "rb") as file:
            return file.read(64).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
