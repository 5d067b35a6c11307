"""A program in a new pane: in a session of its name, or as one more window of it.

tmux takes the words as they are and runs them itself, with the environment of its server and in the folder this is
called from. So nothing here is quoted, and nothing of the daemon's environment gets there.
"""

from __future__ import annotations

import os
import subprocess
import time

from agtmux.probe import tmux
from agtmux.probe.panes import Inhabited, MovedError

# A client hands its command to the server in one message.
LONGEST_WORDS = 12_000
_LONGEST_SCREEN = 20_000
_TOLD = "#{pid}-#{start_time}\t#{pane_id}\t#{pane_pid}\t#{window_id}"
# Of what is wanted only where a tmux server is started, which keeps it for all of its panes.
_KEPT = frozenset(
    (
        "HOME",
        "PATH",
        "SHELL",
        "USER",
        "LOGNAME",
        "LANG",
        "TZ",
        "TMPDIR",
        "TMUX_TMPDIR",
        "XDG_RUNTIME_DIR",
        "SSH_AUTH_SOCK",
    )
)


class NotStartedError(Exception):
    """Nothing was started; the message says why."""


def start(
    tmux_socket: str, session: str, window: str, folder: str, words: list[str], may_start: bool, limit: float
) -> dict[str, object]:
    """The pane that it runs in, which stays as it is if the program fails until `look` has shown why. The names are
    checked by whoever calls: to tmux a `#` in them would be a format."""
    if not os.path.isabs(folder) or not os.path.isdir(folder):
        raise NotStartedError("there is no folder %s" % folder)
    if not words or sum(len(os.fsencode(word)) for word in words) > LONGEST_WORDS:
        raise NotStartedError("that is too long for a command")
    # A single word tmux would give to a shell.
    program = [_word(word) for word in ["env", *words]]
    # The window that was made, which is the last one: it is there for as long as this command is carried out.
    keep = [";", "set-option", "-p", "-t", "=%s:{end}" % session, "remain-on-exit", "failed"]
    told = ["-d", "-P", "-F", _TOLD, "-n", window]
    session_words = ["new-session", "-E", *told, "-s", session, "--", *program, *keep]
    window_words = ["new-window", "-a", *told, "-t", "=%s:{end}" % session, "--", *program, *keep]
    deadline = time.monotonic() + limit
    for _ in range(3):
        for chain in (window_words, session_words):
            status, said, complaint = _ask(tmux_socket, chain, folder, deadline, is_there=True)
            if tmux.is_without_server(complaint):
                break
            if said or not status:
                # Also if only what comes after it was refused.
                return _read(said)
            if not any(sign in complaint for sign in ("can't find", "duplicate session")):
                raise tmux.TmuxError("tmux refused: %s" % complaint[:200])
        if tmux.is_without_server(complaint):
            if not may_start:
                raise NotStartedError(
                    "no tmux server is running there; start tmux first (or use launch --start-server)"
                )
            status, said, complaint = _ask(tmux_socket, session_words, folder, deadline, is_there=False)
            if said or not status:
                return _read(said)
    raise tmux.TmuxError("tmux refused: %s" % complaint[:200])


def look(tmux_socket: str, who: Inhabited, limit: float) -> dict[str, object]:
    """What that pane shows, and whether what ran there has failed. Then it goes, as nobody needs it any more."""
    mark = os.urandom(8).hex()
    there = "#{&&:#{==:#{pid}-#{start_time},%s},#{==:#{pane_pid},%d}}" % (who.server, who.pid)
    # tmux says at the bottom that it has ended, and what was there before may have scrolled away with that.
    shown = "display-message -p -t %s '%s#{pane_dead}' ; capture-pane -p -J -S -20 -t %s" % (
        who.pane_id,
        mark,
        who.pane_id,
    )
    end = "if-shell -F -t %s '#{pane_dead}' 'kill-pane -t %s'" % (who.pane_id, who.pane_id)
    said = _asked(tmux_socket, ["if-shell", "-F", "-t", who.pane_id, there, "%s ; %s" % (shown, end)], limit)
    _, found, after = said.partition(mark)
    if not found:
        raise MovedError("something else is in that pane by now")
    flag, _, text = after.partition("\n")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return {"is_dead": flag == "1", "text": "\n".join(lines)[-_LONGEST_SCREEN:]}


def settle(tmux_socket: str, who: Inhabited, limit: float) -> dict[str, object]:
    """It is up: from now on its pane ends with it."""
    there = "#{&&:#{==:#{pid}-#{start_time},%s},#{==:#{pane_pid},%d}}" % (who.server, who.pid)
    words = ["if-shell", "-F", "-t", who.pane_id, there, "set-option -p -u -t %s remain-on-exit" % who.pane_id]
    _asked(tmux_socket, words, limit)
    return {"is_done": True}


def _asked(tmux_socket: str, words: list[str], limit: float) -> str:
    try:
        said = tmux.ask(tmux.find_tmux(), tmux_socket, words, time.monotonic() + limit)
    except tmux.TmuxError as error:
        if "can't find pane" in str(error):
            raise MovedError("the pane is gone") from None
        raise
    if said is None:
        raise MovedError("the tmux server has ended")
    return said


def _ask(tmux_socket: str, words: list[str], folder: str, deadline: float, *, is_there: bool) -> tuple[int, str, str]:
    environment = tmux.environment()
    if is_there:
        # tmux would give the caller's to what it starts.
        environment.pop("PATH", None)
    else:
        environment = {name: value for name, value in environment.items() if name in _KEPT or name.startswith("LC_")}
    command = tmux.command(tmux.find_tmux(), tmux_socket, [*(["-N"] if is_there else []), *words])
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            timeout=max(deadline - time.monotonic(), 0.1),
        )
    except subprocess.TimeoutExpired:
        raise tmux.TmuxError("tmux did not answer in time; whether the pane was made is not known") from None
    except OSError as error:
        raise tmux.TmuxError("tmux cannot be run: %s" % error.strerror) from None
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace").strip()


def _word(text: str) -> str:
    """As it is: a semicolon at the end of a word would begin another command."""
    return text[:-1] + "\\;" if text.endswith(";") else text


def _read(said: str) -> dict[str, object]:
    words = said.splitlines()[0].split("\t") if said else []
    if len(words) != 4:
        raise tmux.TmuxError("tmux ended while it answered")
    return {"server": words[0], "pane_id": words[1], "pid": int(words[2]), "window_id": words[3]}
