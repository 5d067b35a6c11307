"""Questions to a tmux server, each one short-lived process. Never control mode, never anything that starts a server.

A persistent control-mode client can take the user's server down (tmux issue 5243, every release up to 3.7), so
agtmux only ever asks and leaves.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time

MINIMUM_VERSION = (3, 3)
# launchd gives a process neither Homebrew's nor MacPorts' directories.
_ELSEWHERE = "/opt/homebrew/bin:/usr/local/bin:/opt/local/bin:/usr/bin:/bin"
_TIME_LIMIT = 4.0
# A client hands its command to the server in one message of 16 KiB.
_LONGEST_COMMAND = 15_500
_LONGEST_SCREEN = 200_000

_FIELDS = (
    "pid",
    "start_time",
    "pane_id",
    "pane_pid",
    "pane_dead",
    "window_id",
    "@agtmux_agent",
    "@agtmux_wake",
    "pane_current_command",
    "session_name",
    "window_name",
    "pane_current_path",
    "pane_title",
)


# What tmux says when there is nobody to ask; anything else that keeps it from connecting is an error.
_NO_SERVER = ("no server running", "(No such file or directory)", "(Connection refused)", "no current")


class TmuxError(Exception):
    """tmux could not be asked; the message says what to do."""


def find_tmux() -> str:
    path = shutil.which("tmux") or shutil.which("tmux", path=_ELSEWHERE)
    if path is None:
        raise TmuxError("tmux is not installed, or not where it is looked for; install tmux 3.3 or newer")
    return path


def server_arguments(tmux_socket: str) -> list[str]:
    """`-S` for a path, `-L` for a name, nothing for the default server."""
    if not tmux_socket:
        return []
    return ["-S" if "/" in tmux_socket else "-L", tmux_socket]


def socket_path(tmux_socket: str) -> str:
    """Where that server's socket is: tmux uses TMUX_TMPDIR or /tmp, never TMPDIR."""
    return os.path.realpath(socket_path_as_given(tmux_socket))


def socket_path_as_given(tmux_socket: str) -> str:
    if "/" in tmux_socket:
        return os.path.abspath(tmux_socket)
    base = os.environ.get("TMUX_TMPDIR") or "/tmp"
    return os.path.join(base, "tmux-%d" % os.getuid(), tmux_socket or "default")


def command(tmux: str, tmux_socket: str, words: list[str]) -> list[str]:
    return [tmux, "-u", *server_arguments(tmux_socket), *words]


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE", "LC_ALL")}
    # Its complaints are read; `-u` sees to the rest.
    kept["LC_MESSAGES"] = "C"
    return kept


def snapshot(
    tmux: str, tmux_socket: str, captures: dict[str, int], limit: float = _TIME_LIMIT
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """One row a pane, empty when no server is running; and the screens of those of `captures` whose window has shown
    anything since the given second. One process for all of it, up to some 150 panes to capture."""
    # A path may hold tabs and newlines. Nothing holds a word that was made up just now.
    mark = "<%s>" % os.urandom(8).hex()
    row_format = mark.join("#{%s}" % name for name in _FIELDS) + mark + "."
    words = ["list-panes", "-a", "-F", row_format, ";", "display-message", "-p", mark + "!"]
    first, *more = _chains(words, captures, mark)
    deadline = time.monotonic() + limit
    status, said, complaint = _ask(tmux, tmux_socket, first, deadline)
    listed, ended, rest = said.partition(mark + "!\n")
    if not ended:
        if any(sign in complaint for sign in _NO_SERVER):
            return [], {}
        raise TmuxError("tmux refused: %s" % (complaint[:200] or "exit status %d" % status))
    for chain in more:
        rest += _ask(tmux, tmux_socket, chain, deadline)[1]
    return _rows(listed, mark), _screens(rest, mark)


def ask(tmux: str, tmux_socket: str, words: list[str], deadline: float, content: bytes | None = None) -> str | None:
    """What tmux says to that, None if no server is running. Raises TmuxError if it refuses. `content` is what it may
    read."""
    status, said, complaint = _ask(tmux, tmux_socket, ["-N", *words], deadline, content)
    if status == 0:
        return said
    if any(sign in complaint for sign in _NO_SERVER):
        return None
    raise TmuxError("tmux refused: %s" % (complaint[:200] or "exit status %d" % status))


def is_without_server(complaint: str) -> bool:
    return any(sign in complaint for sign in _NO_SERVER)


def _chains(words: list[str], captures: dict[str, int], mark: str) -> list[list[str]]:
    """The first command with as many captures behind it as one may carry, and further ones for the others."""
    chains = [words]
    length = sum(map(len, words))
    for pane_id, since in captures.items():
        # A pane that has gone ends a chain, except within if-shell. Activity has a resolution of one second. The
        # names are tmux's short ones, as room is scarce.
        part = [
            ";",
            "if",
            "-F",
            "-t",
            pane_id,
            "#{e|>=:#{window_activity},%d}" % since,
            # Without its sign: display-message would take it for a part of the time.
            "display -p '%s%s' ; capturep -pe -t %s" % (mark, pane_id[1:], pane_id),
        ]
        length += sum(map(len, part)) + len(part)
        if length > _LONGEST_COMMAND:
            chains.append([])
            length = sum(map(len, part)) + len(part)
        chains[-1] += part if chains[-1] else part[1:]
    return chains


def _ask(
    tmux: str, tmux_socket: str, words: list[str], deadline: float, content: bytes | None = None
) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            command(tmux, tmux_socket, words),
            stdin=subprocess.DEVNULL if content is None else None,
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=max(deadline - time.monotonic(), 0.1),
        )
    except subprocess.TimeoutExpired:
        raise TmuxError("tmux did not answer in time; is it stopped, or the machine overloaded?") from None
    except OSError as error:
        raise TmuxError("tmux cannot be run: %s" % error.strerror) from None
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()


def _rows(listed: str, mark: str) -> list[dict[str, str]]:
    rows = []
    for row in listed.split(mark + ".\n"):
        parts = row.split(mark)
        if len(parts) == len(_FIELDS):
            rows.append(dict(zip(_FIELDS, parts)))
        elif row:
            raise TmuxError("tmux's answer cannot be read: %d fields in %r" % (len(parts), row[:80]))
    return rows


def _screens(said: str, mark: str) -> dict[str, str]:
    screens = {}
    for part in said.split(mark)[1:]:
        number, _, screen = part.partition("\n")
        screens["%" + number] = screen[:_LONGEST_SCREEN]
    return screens


def check_version(tmux: str) -> str:
    """Once: an older tmux lacks what is asked of it. Returns what it calls itself."""
    said = version(tmux)
    if is_too_old(said):
        raise TmuxError("%s is too old; agtmux needs tmux %d.%d or newer" % (said, *MINIMUM_VERSION))
    return said


def version(tmux: str, limit: float = _TIME_LIMIT) -> str:
    try:
        done = subprocess.run(
            [tmux, "-V"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=limit
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TmuxError("tmux cannot be run: %s" % error) from None
    return done.stdout.decode("utf-8", "replace").strip()[:100]


def is_too_old(said: str) -> bool:
    # A build from the development branch has no number and is newer than any release.
    found = re.search(r"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) < MINIMUM_VERSION
