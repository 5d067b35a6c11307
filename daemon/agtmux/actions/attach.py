"""`attach`: show somebody the pane, if who is meant is still in it.

A terminal that is in the same tmux server is moved there. Any other gets the command that attaches it, here or through
ssh, and that command checks once more who is in the pane. A wrong jump is worse than none.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agtmux.actions.desk import Asked, Done, Kind, PaneKey
from agtmux.actions.guards import StillThere
from agtmux.actions.output import DONE
from agtmux.actions.reach import Reach, inhabited
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.panes import Pane, Target, TargetKind
from agtmux.domain.runtimes import TargetId
from agtmux.engine.apply import Record
from agtmux.probe.clients import Inhabited, attach_words, switch_words
from agtmux.targets.messages import Placed

SWITCHED: Final = "switched"
COMMAND: Final = "command"


class Fleet(Reach, Protocol):
    def local_target_at(self, socket_path: str) -> TargetId | None: ...


class World(Protocol):
    @property
    def targets(self) -> Mapping[TargetId, Target]: ...

    @property
    def panes(self) -> Mapping[PaneKey, Pane]: ...


def attach(fleet: Fleet, world: World) -> Kind:
    async def carry_out(record: Record, asked: Asked, still_there: StillThere) -> Done:
        target = world.targets[record.runtime.target_id]
        who = inhabited(fleet, record)
        caller = _caller(fleet, record, asked.parameters)
        only_print = bool(asked.parameters.get("only_print"))
        if caller is None and target.kind is TargetKind.LOCAL:
            _check_not_nested(asked.parameters)
        errand = {
            "do": "attach",
            "session_name": world.panes[asked.key].session_name,
            "caller": caller,
            "move": not only_print,
            **who,
        }
        still_there()
        placed = await fleet.run(target.target_id, errand, Placed)
        if caller is not None and not only_print:
            return _told(SWITCHED, client=placed.client)
        # It is on its way to somebody who will run it.
        still_there()
        about = {"is_printed": True} if only_print else {}
        here = Inhabited(**who)
        words = (
            attach_words(here, placed.session_id, placed.window_id)
            if caller is None
            else switch_words(here, placed.session_id, placed.window_id, placed.client)
        )
        return _told(COMMAND, {"argv": _argv(target, placed, words)}, **about)

    return Kind(carry_out, needs_state=False)


def _told(way: str, content: Mapping[str, Any] | None = None, /, **about: Any) -> Done:
    about = {"way": way, **about}
    return Done(DONE, about, {**about, **(content or {})})


def _caller(fleet: Fleet, record: Record, parameters: Mapping[str, Any]) -> dict[str, str] | None:
    """Where in the pane's own tmux server the request comes from, in the words of an errand; None if from elsewhere."""
    client = str(parameters.get("client", ""))
    # What $TMUX holds: the socket, the server's process, a session.
    socket_path, pid, session = ([*str(parameters.get("tmux", "")).rsplit(",", 2), "", ""])[:3]
    is_here = (
        bool(socket_path)
        and fleet.local_target_at(socket_path) == record.runtime.target_id
        and pid == str(record.runtime.instance.server_pid)
    )
    if is_here:
        session_id = f"${session}" if session.isdecimal() else ""
        return {"session_id": session_id, "pane_id": str(parameters.get("tmux_pane", "")), "client": client}
    # A terminal is named in the server that the caller is in, or else in the pane's.
    return {"session_id": "", "pane_id": "", "client": client} if client and not socket_path else None


def _check_not_nested(parameters: Mapping[str, Any]) -> None:
    if parameters.get("tmux") and not parameters.get("nested") and not parameters.get("only_print"):
        raise AgtmuxError(
            ErrorCode.PRECONDITION_FAILED,
            "that pane is in another tmux server than this terminal; --new-window shows it in a window of its own,"
            " --nested within this one, and --print tells the command for a terminal outside",
            {"would_nest": True},
        )


def _argv(target: Target, placed: Placed, words: list[str]) -> list[str]:
    # Never starts a server. The socket by its path: whoever runs this may have another TMUX_TMPDIR.
    command = [placed.tmux, "-u", "-N", "-S", placed.socket, *words]
    if target.kind is TargetKind.LOCAL:
        return command
    # ssh joins what it is given with blanks, and a shell over there takes it apart again.
    return ["ssh", "-t", target.connection_ref, shlex.join(command)]
