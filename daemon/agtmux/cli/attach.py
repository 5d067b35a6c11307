"""`agtmux attach <ref>`: jump to a pane. Moves the terminal it is called from, or becomes the command for it."""

from __future__ import annotations

import os
import sys
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.here import target_here
from agtmux.cli.options import add_common, add_conditions, client, conditions, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.table import is_terminal
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Shows a pane. Within its tmux server the terminal you are in is moved there; from elsewhere tmux is attached,"
        " on another machine through ssh. Refused if what was in the pane when you looked has ended."
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "ref",
        nargs="?",
        help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it",
    )
    which.add_argument(
        "--waiting", action="store_true", help="the agent that has waited longest for you; from its pane, the next one"
    )
    add_how(parser)
    parser.add_argument("--print", action="store_true", help="print the command that would do it, and do nothing")
    add_conditions(parser)
    add_common(parser)


def add_how(parser: ArgumentParser) -> None:
    """What `pick` takes as well."""
    parser.add_argument("--client", metavar="TTY", default="", help="the terminal to move, as tmux list-clients has it")
    parser.add_argument("--nested", action="store_true", help="also from within another tmux server")
    parser.add_argument(
        "--new-window",
        action="store_true",
        help="from within tmux: what cannot be moved to opens in a window of its own",
    )


def run(options: Namespace) -> int:
    daemon = client(options)
    asked = conditions(options)
    if options.waiting:
        found = next_waiting(daemon.get("/v1/panes?needs_action=1")["items"], _here(daemon))
        asked |= {"ref": found["ref"], "if_runtime": found["runtime_id"]} | asked
    else:
        asked |= {"ref": full_ref(daemon, options.ref)}
    answer = jump(daemon, asked, options, only_print=options.print)
    if options.json:
        print_json(answer)
    elif options.print:
        import shlex

        print(shlex.join(answer["argv"]))
    elif answer["way"] == "command":
        become(answer, options)
    return 0


def jump(daemon: Client, asked: dict[str, Any], options: Namespace, *, only_print: bool = False) -> dict[str, Any]:
    """Ask for it, with what tmux has told this process of where it is."""
    here = {"tmux": os.environ.get("TMUX", ""), "tmux_pane": os.environ.get("TMUX_PANE", ""), "client": options.client}
    # A window of its own is no surprise, within whatever it is.
    nested = options.nested or options.new_window
    how = {"request_ref": uuid.uuid4().hex, "nested": nested, "only_print": only_print}
    answer: dict[str, Any] = daemon.post("/v1/actions/attach", {"actor": "cli", **asked, **here, **how})
    return answer


def become(answer: dict[str, Any], options: Namespace) -> None:
    """The command that attaches, here or in a new window. Returns only by raising."""
    argv: list[str] = answer["argv"]
    # What $TMUX holds: the socket, the server's process, a session.
    socket_path, _, session = ([*os.environ.get("TMUX", "").rsplit(",", 2), "", ""])[:3]
    if options.new_window and socket_path:
        # Of a pane tmux knows better where it is by now; a popup has none.
        where = ["-t", f"${session}:"] if session.isdecimal() and not os.environ.get("TMUX_PANE") else []
        argv = ["tmux", "-S", socket_path, "new-window", *where, "-n", answer["target"], *argv]
    elif not is_terminal(sys.stdin):
        raise AgtmuxError(ErrorCode.USAGE, "there is no terminal to attach; --print tells the command for one")
    sys.stdout.flush()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        raise AgtmuxError(ErrorCode.INTERNAL, f"{argv[0]} cannot be run: {error.strerror}") from None


def _here(daemon: Client) -> tuple[str, str]:
    """The target and the pane that this runs in; empty where there is none."""
    pane_id = os.environ.get("TMUX_PANE", "")
    return (target_here(daemon) or "", pane_id) if pane_id else ("", "")


def next_waiting(items: list[dict[str, Any]], here: tuple[str, str]) -> dict[str, Any]:
    """Who has waited longest; for one who is there already, who comes next. An error asks nothing, and comes last."""
    waiting = sorted(items, key=lambda item: (item["state"] == "error", item["updated_at"]))
    if not waiting:
        raise AgtmuxError(ErrorCode.REF_NOT_FOUND, "no agent needs you")
    places = [(item["identity"]["target"], item["identity"]["pane_id"]) for item in waiting]
    return waiting[(places.index(here) + 1) % len(waiting)] if here in places else waiting[0]
