"""Keys for one pane: a look at what it shows, and then a key or a paste, if it still shows that.

Between a look and a key anything may happen: the agent ends, a dialog opens, the pane's id goes to another. So the
tmux server itself compares, in the very command that presses the key: who is in the pane, which command has its
terminal, and the lines that the look was about. Nothing can come between the comparison and the key.
"""

from __future__ import annotations

import os
from collections import namedtuple

from agtmux.probe import panes, processes, tmux
from agtmux.probe.panes import Inhabited, MovedError

# Who has the pane's terminal: the agent's process with its start, the foreground group, and the command as tmux names
# it. An agent is None where none is known.
Front = namedtuple("Front", "agent group command")
# What was looked at: lines with their numbers, the size of what has scrolled away or None if that may grow, an
# expression that no line may fit, or nothing; whether all of the lines have to be compared, or as many as can be; and
# the few of them that are compared once more.
Screen = namedtuple("Screen", "lines history absent is_whole telling")

# The clock of `ps` has whole seconds.
_SAME_START = 1.5
_FEW = 4
# Beyond this a format of tmux's is nothing at all.
_LONGEST_CONDITION = 7_500
# How much of a line is compared, if there are not too many of them.
_PATTERNS = (200, 100, 50)
_LONGEST_SCREEN = 200_000
# A character that has a meaning, as an expression that has none to a format, and to a regular expression only its own.
# A percent sign is for the clock in a format, and a number sign begins one, however it is written: they stand for any
# one character, and so does the quote, in which a format may stand. A blank may be a hard one.
_SIGNS = {
    **{sign: "\\" + sign for sign in ".[]()*+?|^$\\"},
    "{": "[{]",
    "}": "[#}]",
    "#": ".",
    ",": "#,",
    "%": ".",
    "'": ".",
    " ": "[ \u00a0]",
}
_ABOUT = (
    "#{pid}-#{start_time}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_in_mode}",
    "#{pane_synchronized}",
    "#{pane_input_off}",
    "#{history_size}",
    "#{pane_current_command}",
)
_FREE = "#{&&:#{==:#{pane_in_mode},0},#{&&:#{==:#{pane_synchronized},0},#{==:#{pane_input_off},0}}}"
# The server goes once round all it has to read before it compares: a dialog that has just been drawn is there then.
_SETTLED = "run-shell -d 0.001 ;"
# Why tmux would not give a key to the program in a pane, or to more than that.
_HINDRANCES = ("it is in copy mode", "its window types into all of its panes at once", "its input is switched off")


class HinderedError(Exception):
    """tmux would take a key for its own, or give it to others as well."""


def glance(tmux_socket: str, who: Inhabited, agent: tuple[int, float] | None, limit: float) -> dict[str, object]:
    """The screen with its colours, and what has the terminal now."""
    mark = os.urandom(8).hex()
    about = "\t".join((*_ABOUT[3:], "#{pane_width}", "#{pane_title}"))
    look = "display-message -p -t %s '%s' ; capture-pane -p -e -t %s" % (who.pane_id, about, who.pane_id)
    group = processes.foreground_group(who.pid)
    first, _, text = panes.guarded(tmux_socket, who, look, mark, limit).partition("\n")
    # None of the others can hold a tab, and neither can the title.
    *hindrances, history, command, width, title = _told(first, 7)
    return {
        # What is live is at the bottom.
        "text": text[-_LONGEST_SCREEN:],
        "title": title,
        "width": int(width) if width.isdigit() else 0,
        "command": command,
        "group": group,
        "history": int(history) if history.isdigit() else 0,
        "hindrance": _hindrance(hindrances),
        "is_in_front": agent is None or _is_in_front(who.pid, *agent),
    }


def press(tmux_socket: str, who: Inhabited, front: Front, screen: Screen, key: str, limit: float) -> bool:
    """Whether the key was pressed; it was not if the screen is another by now."""
    # Within single quotes nothing has a meaning to tmux but the quote itself.
    quoted = '"%s"' % key if "'" in key else "'%s'" % key
    return _if_unchanged(tmux_socket, who, front, screen, "send-keys -t %s -- %s" % (who.pane_id, quoted), limit)


def paste(tmux_socket: str, who: Inhabited, front: Front, screen: Screen, text: str, limit: float) -> bool:
    """As `press`, with text as one bracketed paste, where the program in the pane knows about those."""
    buffer = "agtmux-" + os.urandom(8).hex()
    command = "paste-buffer -p -d -b %s -t %s" % (buffer, who.pane_id)
    # The text comes with the same command: there is no buffer before it, and none is left after it.
    before = ["load-buffer", "-b", buffer, "-", ";"]
    instead = "delete-buffer -b %s ; " % buffer
    content = text.encode("utf-8", "replace")
    try:
        return _if_unchanged(tmux_socket, who, front, screen, command, limit, before, instead, content)
    except (MovedError, tmux.TmuxError):
        # The pane went within that command.
        panes.forget_buffer(tmux_socket, buffer, limit)
        raise


def signal(agent: tuple[int, float], number: int) -> None:
    """To the agent's process, if it is the one that was meant."""
    if not _is_the_same(*agent):
        raise MovedError("its process has ended")
    try:
        os.kill(agent[0], number)
    except ProcessLookupError:
        raise MovedError("its process has ended") from None


def _if_unchanged(
    tmux_socket: str,
    who: Inhabited,
    front: Front,
    screen: Screen,
    command: str,
    limit: float,
    before: list[str] | None = None,
    instead: str = "",
    content: bytes | None = None,
) -> bool:
    if front.agent is not None and not _is_the_same(*front.agent):
        raise MovedError("its process has ended")
    if front.group is not None and processes.foreground_group(who.pid) != front.group:
        raise MovedError("something else has the pane's terminal by now")
    mark = os.urandom(8).hex()
    otherwise = instead + "display-message -p -t %s '%s'" % (who.pane_id, "\t".join(_ABOUT))
    then = "%s ; display-message -p %s" % (command, mark)
    if screen.telling:
        # To compare a dialog takes the server more than a millisecond, in which it reads nothing. What comes then is
        # compared in a tenth of that.
        again = _all(_lines(screen.telling, _PATTERNS[0]))
        then = "%s if-shell -F -t %s '%s' { %s } { %s }" % (_SETTLED, who.pane_id, again, then, otherwise)
    compared = ["if-shell", "-F", "-t", who.pane_id, _condition(who, front, screen), then, otherwise]
    words = [*(before or []), *_SETTLED.split(), *compared]
    said = panes.ask(tmux_socket, words, limit, content)
    if said.startswith(mark):
        return True
    server, pid, is_dead, *hindrances, _history, command_now = _told(said.rstrip("\n"), 8)
    if (server, pid) != (who.server, str(who.pid)) or is_dead == "1":
        raise MovedError("something else is in that pane by now")
    if command_now != front.command:
        raise MovedError("something else has the pane's terminal by now")
    hindrance = _hindrance(hindrances)
    if hindrance:
        raise HinderedError(hindrance)
    return False


def _condition(who: Inhabited, front: Front, screen: Screen) -> str:
    """As a format: that everything is as it was looked at."""
    conditions = [panes.there(who), _FREE, "#{m/r:%s,#{pane_current_command}}" % _pattern(front.command)]
    if screen.history is not None:
        conditions.append("#{==:#{history_size},%d}" % screen.history)
    if screen.absent:
        conditions.append("#{==:#{C/r:%s},0}" % screen.absent)
    for longest in _PATTERNS:
        lines = _lines(screen.lines, longest)
        condition = _all([*conditions, *lines])
        if len(condition.encode("utf-8", "replace")) <= _LONGEST_CONDITION:
            return condition
    if screen.is_whole:
        raise HinderedError("its dialog is too long to be compared with what was shown")
    return _all([*conditions, *lines[:_FEW]])


def _lines(lines: list[tuple[int, str]], longest: int) -> list[str]:
    """That each is where it was."""
    return ["#{==:#{C/r:%s},%d}" % (_pattern(text, longest), number) for number, text in lines]


def _all(conditions: list[str]) -> str:
    """Halved again and again: tmux does not go into a hundred formats within each other."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return "#{&&:%s,%s}" % (_all(conditions[:half]), _all(conditions[half:]))


def _told(line: str, count: int) -> list[str]:
    """What tmux tells in that many words; a server that ends in the middle of it tells less."""
    words = line.split("\t", count - 1)
    if len(words) != count:
        raise tmux.TmuxError("tmux ended while it answered")
    return words


def _hindrance(flags: list[str]) -> str:
    return next((why for flag, why in zip(flags, _HINDRANCES) if flag not in ("", "0")), "")


def _pattern(text: str, longest: int = 200) -> str:
    """Just that line, as a regular expression within a format. Blanks at its end are not a part of it."""
    end = "[ \u00a0]*$" if len(text) <= longest else ""
    return "^" + "".join(_SIGNS.get(char, char) for char in text[:longest]) + end


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
