"""Which terminal to move to a pane, and the words that show a pane in one.

tmux uses pane ids again after a restart, so whatever shows one says who must be in it: the check and the move go to the
server as one command, which nothing can come between. Sessions and windows are named by their ids, as names hold
anything. No terminal is moved but the one that was asked for.
"""

from __future__ import annotations

import os
import re
import time
from collections import namedtuple

from agtmux.probe import panes, tmux
from agtmux.probe.panes import Inhabited as Inhabited

# Where the command runs that asks, by what tmux put into its environment (a popup has no pane), and the terminal that
# was asked for by name. Empty where there is none.
Caller = namedtuple("Caller", "session_id pane_id client")
Client = namedtuple("Client", "name session_id window_id activity control_mode")
_Seen = namedtuple("_Seen", "pane_id window_id session_id session_group session_name")

# What tmux calls the fields of both.
_FIELDS = (_Seen._fields, ("client_name", "session_id", "window_id", "client_activity", "client_control_mode"))
# What tmux then says is "can't find pane: …", with exit status 1; capture-pane changes nothing.
_REFUSE = "capture-pane -p -t 'that agent, which has ended'"
_CLIENT_NAME = re.compile(r"[A-Za-z0-9/._:-]+")


class NoClientError(Exception):
    """No terminal could be meant."""


def place(
    tmux_socket: str, who: Inhabited, session_name: str, caller: Caller | None, move: bool, limit: float
) -> dict[str, object]:
    """Where the pane is and, for a caller within the same server, which terminal is to be moved; it is, if `move`.

    Raises MovedError if somebody else is there; then nothing was moved."""
    seen, clients = _look(tmux_socket, who, caller, limit)
    client = None if caller is None else choose(clients, seen, caller)
    shown = _in_session(seen, who, session_name, client)
    if client is not None and move:
        _switch(tmux_socket, who, shown, client, limit)
    return {
        "tmux": tmux.find_tmux(),
        "socket": tmux.socket_path_as_given(tmux_socket),
        "session_id": shown.session_id,
        "window_id": shown.window_id,
        "client": "" if client is None else client.name,
    }


def attached(tmux_socket: str, limit: float) -> dict[str, object]:
    """The attached terminals: the process of each, the pane it shows, and when a key was last pressed there."""
    said = tmux.ask(
        tmux.find_tmux(),
        tmux_socket,
        ["list-clients", "-F", "#{client_pid} #{pane_id} #{client_activity}"],
        time.monotonic() + limit,
    )
    rows = [line.split(" ") for line in (said or "").splitlines()]
    found = [row for row in rows if len(row) == 3 and row[0].isdigit() and row[2].isdigit()]
    return {"clients": [{"pid": int(pid), "pane_id": pane, "activity": int(at)} for pid, pane, at in found[:1_000]]}


def attach_words(who: Inhabited, session_id: str, window_id: str) -> list[str]:
    """For a terminal that is in no tmux: shows the pane, or says why not. A window that is zoomed stays so."""
    show = "attach-session -t '%s:%s' ; select-pane -Z -t %s" % (session_id, window_id, who.pane_id)
    return ["if-shell", "-F", "-t", who.pane_id, panes.there(who), show, _REFUSE]


def switch_words(who: Inhabited, session_id: str, window_id: str, client: str) -> list[str]:
    """For a terminal that is in the same tmux server."""
    return ["if-shell", "-F", "-t", who.pane_id, panes.there(who), _move(who, session_id, window_id, client), _REFUSE]


def choose(clients: list[Client], seen: list[_Seen], caller: Caller) -> Client:
    """The terminal that shows where the command runs; of several the one that was used last."""
    if caller.client:
        for client in clients:
            if client.name == caller.client and _CLIENT_NAME.fullmatch(client.name):
                return client
        raise NoClientError("no terminal %s is attached to that tmux server; see tmux list-clients" % caller.client)
    around = [row for row in seen if row.pane_id == caller.pane_id]
    windows = {row.window_id for row in around}
    sessions = {row.session_id for row in around} or {caller.session_id}

    def closeness(client: Client) -> int:
        return 2 if client.window_id in windows else 1 if client.session_id in sessions else 0

    # A program in control mode draws its own windows, and may take a move amiss.
    near = [
        client
        for client in clients
        if closeness(client) and client.control_mode != "1" and _CLIENT_NAME.fullmatch(client.name)
    ]
    if not near:
        raise NoClientError("no terminal shows the tmux session this was asked from; name one with --client")
    return max(near, key=lambda client: (closeness(client), int(client.activity or "0")))


def _in_session(seen: list[_Seen], who: Inhabited, session_name: str, client: Client | None) -> _Seen:
    """A window may be in several sessions: the one that was named, if it is still called so."""
    found = [row for row in seen if row.pane_id == who.pane_id]
    named = next((row for row in found if row.session_name == session_name), found[0])
    if client is not None and named.session_group:
        # Sessions of a group have the same windows. Whoever has one of them for a terminal of its own stays there.
        for row in found:
            if row.session_id == client.session_id and row.session_group == named.session_group:
                return row
    return named


def _look(tmux_socket: str, who: Inhabited, caller: Caller | None, limit: float) -> tuple[list[_Seen], list[Client]]:
    wanted = "#{==:#{pane_id},%s}" % who.pane_id
    if caller is not None and caller.pane_id:
        wanted = "#{||:%s,#{==:#{pane_id},%s}}" % (wanted, caller.pane_id)
    # Names hold anything, but no word that was made up just now.
    mark = os.urandom(8).hex()
    rows, terminals = ("%s." % mark.join([*("#{%s}" % name for name in names), ""]) for names in _FIELDS)
    command = "list-panes -a -f '%s' -F '%s' ; display-message -p '%s!' ; list-clients -F '%s'" % (
        wanted,
        rows,
        mark,
        terminals,
    )
    said = panes.guarded(tmux_socket, who, command, os.urandom(8).hex(), limit)
    listed, _, attached = said.partition(mark + "!\n")
    seen = [_Seen(*row.split(mark)) for row in listed.split(mark + ".\n")[:-1]]
    return seen, [Client(*row.split(mark)) for row in attached.split(mark + ".\n")[:-1]]


def _switch(tmux_socket: str, who: Inhabited, shown: _Seen, client: Client, limit: float) -> None:
    command = _move(who, shown.session_id, shown.window_id, client.name)
    try:
        panes.guarded(tmux_socket, who, command, os.urandom(8).hex(), limit)
    except tmux.TmuxError as error:
        if "can't find client" in str(error):
            raise NoClientError("the terminal %s has just gone; nothing was moved" % client.name) from None
        raise


def _move(who: Inhabited, session_id: str, window_id: str, client: str) -> str:
    return "switch-client -Z -c '%s' -t '%s:%s.%s'" % (client, session_id, window_id, who.pane_id)
