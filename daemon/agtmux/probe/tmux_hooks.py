"""tmux's own hooks, for users who want them: what changes an agent's pane makes the server wake the probe.

Each is one more command in the list that tmux keeps for an event, and is known again by its text. The lists' other
commands are never touched, and a server is never started for it.
"""

from __future__ import annotations

import re
import time

from agtmux.probe import tmux

OPTION = "@agtmux_wake"
CHANNEL = "agtmux-wake"
_COMMAND = "wait-for -S " + CHANNEL
# What tells something about an agent. Not what only moves a user's eyes (focus, modes, the current window), and not
# window-renamed: with tmux's defaults it follows every command that a shell runs.
HOOKS = (
    "pane-title-changed",
    "alert-bell",
    "pane-died",
    "pane-exited",
    "window-linked",
    "window-unlinked",
    "window-layout-changed",
)
_OURS = re.compile(r"([a-z-]+)\[([0-9]{1,9})\] " + re.escape(_COMMAND))


def change(tmux_socket: str, action: str, limit: float) -> dict[str, object]:
    """What is there afterwards, by name, and what was added or removed. Raises TmuxError."""
    asking = _Asking(tmux_socket, limit)
    before = asking.look()
    if before is None:
        return {"is_running": False, "there": [], "changed": [], "other": ""}
    others = before.value if before.value not in ("", CHANNEL) else ""
    if not others:
        if action == "install":
            asking.run(_additions(before))
        elif action == "uninstall":
            asking.run(_removals(before))
    after = asking.look() if action != "status" else before
    there = [] if after is None else after.names()
    return {
        "is_running": after is not None,
        "there": there,
        "changed": [name for name in (*HOOKS, OPTION) if (name in there) != (name in before.names())],
        # Somebody else has the option: the probe follows that, and hooks of ours would wake nobody.
        "other": others[:200],
    }


class _Found:
    """Ours, in one server: the places of each hook, and the option."""

    def __init__(self, listed: str, value: str) -> None:
        matches = (_OURS.fullmatch(line) for line in listed.splitlines())
        self.places = [(found[1], int(found[2])) for found in matches if found is not None]
        self.value = value

    def names(self) -> list[str]:
        hooks = {name for name, _ in self.places}
        return [name for name in HOOKS if name in hooks] + ([OPTION] if self.value == CHANNEL else [])


class _Asking:
    def __init__(self, tmux_socket: str, limit: float) -> None:
        self._tmux = tmux.find_tmux()
        tmux.check_version(self._tmux)
        self._tmux_socket = tmux_socket
        self._deadline = time.monotonic() + limit

    def look(self) -> _Found | None:
        """None if there is no server."""
        mark = "<%s>" % CHANNEL
        words = ["show-options", "-gqv", OPTION, ";", "display-message", "-p", mark]
        # Each by its name: which kind of option it is differs.
        for name in HOOKS:
            words += [";", "show-hooks", "-g", name]
        said = tmux.ask(self._tmux, self._tmux_socket, words, self._deadline)
        if said is None:
            return None
        value, _, listed = said.partition(mark + "\n")
        return _Found(listed, value.strip("\n"))

    def run(self, commands: list[list[str]]) -> None:
        words = [word for command in commands for word in (";", *command)][1:]
        if words:
            tmux.ask(self._tmux, self._tmux_socket, words, self._deadline)


def _additions(found: _Found) -> list[list[str]]:
    there = {name for name, _ in found.places}
    commands = [["set-hook", "-ga", name, _COMMAND] for name in HOOKS if name not in there]
    return commands if found.value == CHANNEL else [*commands, ["set-option", "-g", OPTION, CHANNEL]]


def _removals(found: _Found) -> list[list[str]]:
    # Only if it still is ours: somebody else may be changing the same list.
    commands = [
        ["if-shell", "-F", "#{==:#{%s[%d]},%s}" % (name, index, _COMMAND), "set-hook -gu '%s[%d]'" % (name, index)]
        for name, index in found.places
    ]
    return [*commands, ["set-option", "-gu", OPTION]] if found.value == CHANNEL else commands
