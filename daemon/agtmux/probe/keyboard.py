"""Keys for one pane: a look at what it shows, and then a key or a paste, if it still shows that.

Between a look and a key anything may happen: the agent ends, a dialog opens, the pane's id goes to another. So the
tmux server itself compares, in the very command that presses the key: who is in the pane, which command has its
terminal, and the lines that the look was about. Nothing can come between the comparison and the key.
"""

from __future__ import annotations

import os
import re
from collections import namedtuple

from agtmux.probe import panes, processes, tmux
from agtmux.probe.panes import Inhabited, MovedError

# Who has the pane's terminal: the agent's process with its start, the foreground group, and the command as tmux names
# it. An agent is None where none is known.
Front = namedtuple("Front", "agent group command")

# The clock of `ps` has whole seconds.
_SAME_START = 1.5
_LONGEST_PATTERN = 160
_LONGEST_SCREEN = 200_000
_MOST_LINES = 12
# What a format or a regular expression might take for its own.
_SIGNS = re.compile(r"[^0-9A-Za-z\x80-\U0010ffff]")
_NAME = re.compile(r"[#,{}]")
_ABOUT = (
    "#{pid}-#{start_time}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_in_mode}",
    "#{pane_synchronized}",
    "#{pane_input_off}",
    "#{pane_current_command}",
)
_FREE = "#{&&:#{==:#{pane_in_mode},0},#{&&:#{==:#{pane_synchronized},0},#{==:#{pane_input_off},0}}}"
# Why tmux would not give a key to the program in a pane, or to more than that.
_HINDRANCES = ("it is in copy mode", "its window types into all of its panes at once", "its input is switched off")


class HinderedError(Exception):
    """tmux would take a key for its own, or give it to others as well."""


def glance(tmux_socket: str, who: Inhabited, agent: tuple[int, float] | None, limit: float) -> dict[str, object]:
    """The screen with its colours, and what has the terminal now."""
    mark = os.urandom(8).hex()
    about = "\t".join((*_ABOUT[3:], "#{pane_title}"))
    look = "display-message -p -t %s '%s' ; capture-pane -p -e -t %s" % (who.pane_id, about, who.pane_id)
    group = processes.foreground_group(who.pid)
    first, _, text = panes.guarded(tmux_socket, who, look, mark, limit)[:_LONGEST_SCREEN].partition("\n")
    # None of the others can hold a tab, and neither can the title.
    *hindrances, command, title = _told(first, 5)
    return {
        "text": text,
        "title": title,
        "command": command,
        "group": group,
        "hindrance": _hindrance(hindrances),
        "is_in_front": agent is None or _is_in_front(who.pid, *agent),
    }


def press(tmux_socket: str, who: Inhabited, front: Front, lines: list[tuple[int, str]], key: str, limit: float) -> bool:
    """Whether the key was pressed; it was not if those lines are there no more."""
    # Within single quotes nothing has a meaning to tmux but the quote itself.
    quoted = '"%s"' % key if "'" in key else "'%s'" % key
    return _if_unchanged(tmux_socket, who, front, lines, "send-keys -t %s -- %s" % (who.pane_id, quoted), limit)


def paste(
    tmux_socket: str, who: Inhabited, front: Front, lines: list[tuple[int, str]], text: str, limit: float
) -> bool:
    """As `press`, with text as one bracketed paste, where the program in the pane knows about those."""
    buffer = "agtmux-" + os.urandom(8).hex()
    panes.ask(tmux_socket, ["load-buffer", "-b", buffer, "-"], limit, text.encode("utf-8", "replace"))
    is_pasted = False
    try:
        command = "paste-buffer -p -d -b %s -t %s" % (buffer, who.pane_id)
        is_pasted = _if_unchanged(tmux_socket, who, front, lines, command, limit)
    finally:
        if not is_pasted:
            panes.ask(tmux_socket, ["if-shell", "-F", "1", "delete-buffer -b " + buffer], limit)
    return is_pasted


def signal(agent: tuple[int, float], number: int) -> None:
    """To the agent's process, if it is the one that was meant."""
    if not _is_the_same(*agent):
        raise MovedError("its process has ended")
    os.kill(agent[0], number)


def _if_unchanged(
    tmux_socket: str, who: Inhabited, front: Front, lines: list[tuple[int, str]], command: str, limit: float
) -> bool:
    if front.agent is not None and not _is_the_same(*front.agent):
        raise MovedError("its process has ended")
    if front.group is not None and processes.foreground_group(who.pid) != front.group:
        raise MovedError("something else has the pane's terminal by now")
    mark = os.urandom(8).hex()
    conditions = [panes.there(who), _FREE, "#{==:#{pane_current_command},%s}" % _name(front.command)]
    conditions += ["#{==:#{C/r:%s},%d}" % (_pattern(text), number) for number, text in lines[:_MOST_LINES]]
    condition = conditions.pop()
    while conditions:
        condition = "#{&&:%s,%s}" % (conditions.pop(), condition)
    instead = "display-message -p -t %s '%s'" % (who.pane_id, "\t".join(_ABOUT))
    words = ["if-shell", "-F", "-t", who.pane_id, condition, "display-message -p %s ; %s" % (mark, command), instead]
    said = panes.ask(tmux_socket, words, limit)
    if said.startswith(mark):
        return True
    server, pid, is_dead, *hindrances, command_now = _told(said.rstrip("\n"), 7)
    if (server, pid) != (who.server, str(who.pid)) or is_dead == "1":
        raise MovedError("something else is in that pane by now")
    if command_now != front.command:
        raise MovedError("something else has the pane's terminal by now")
    hindrance = _hindrance(hindrances)
    if hindrance:
        raise HinderedError(hindrance)
    return False


def _told(line: str, count: int) -> list[str]:
    """What tmux tells in that many words; a server that ends in the middle of it tells less."""
    words = line.split("\t", count - 1)
    if len(words) != count:
        raise tmux.TmuxError("tmux ended while it answered")
    return words


def _hindrance(flags: list[str]) -> str:
    return next((why for flag, why in zip(flags, _HINDRANCES) if flag not in ("", "0")), "")


def _pattern(text: str) -> str:
    """The line as an expression for tmux's search. What may have a meaning there stands for any one character."""
    # Blanks at the end, hard ones included, are not a part of what was looked at.
    end = "[ \u00a0]*$" if len(text) <= _LONGEST_PATTERN else ""
    return "^" + _SIGNS.sub(".", text[:_LONGEST_PATTERN]) + end


def _name(command: str) -> str:
    return _NAME.sub(lambda sign: "#" + sign.group(), command)


def _is_the_same(pid: int, started: float) -> bool:
    process = processes.read_one(pid)
    return process is not None and abs(process.started - started) < _SAME_START


def _is_in_front(pane_pid: int, pid: int, started: float) -> bool:
    """Whether it has the pane's terminal itself. One that has lent it to an editor would not see a key."""
    agent, pane = processes.read_one(pid), processes.read_one(pane_pid)
    if agent is None or pane is None or abs(agent.started - started) >= _SAME_START:
        return False
    if agent.tty == pane.tty:
        return bool(agent.pgid == pane.tpgid)
    # On a terminal of its own, as below sudo.
    family = processes.Family(processes.read_table())
    return any(process.pid == pid for process in family.foreground(pane_pid))
