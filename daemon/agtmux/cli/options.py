"""Options that several commands share, and the client they ask for."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from agtmux.client import TIME_LIMIT, Client

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import _ArgumentGroup


def add_common(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--no-start", action="store_true", help="fail if the daemon is not running, do not start it")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of text for people")


def add_conditions(parser: ArgumentParser) -> _ArgumentGroup:
    group = parser.add_argument_group("only if", "what must be true beside what is always checked")
    group.add_argument("--if-runtime", metavar="ID", help="this runtime is in the pane")
    group.add_argument("--if-state", metavar="STATE", help="the agent is in this state")
    group.add_argument("--if-updated-within", metavar="D", help="its state is not older than this, as 30s or 5m")
    group.add_argument("--force-stale", action="store_true", help="also if its state has changed since you asked")
    return group


def conditions(options: Namespace) -> dict[str, object]:
    found = {
        "if_runtime": options.if_runtime,
        "if_state": options.if_state,
        "if_updated_within": options.if_updated_within,
    }
    return {name: value for name, value in found.items() if value is not None} | {"force_stale": options.force_stale}


def add_places(parser: ArgumentParser) -> None:
    """Which agents, by where and who they are."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--target", metavar="NAME", help="only this target")
    where.add_argument("--all-targets", action="store_true", help="every target, which is what happens anyway")
    where.add_argument("--target-session", metavar="TARGET/SESSION", help="only this session, its name percent-encoded")
    parser.add_argument("--session", metavar="NAME", help="only sessions of this name")
    parser.add_argument("--agent", metavar="TYPE", help="only agents of this type")


def places(options: Namespace) -> dict[str, str | None]:
    return {
        "target": options.target,
        "target_session": options.target_session,
        "session": options.session,
        "agent": options.agent,
    }


def add_filters(parser: ArgumentParser) -> None:
    """Which panes a listing or a watch is about."""
    add_places(parser)
    parser.add_argument("--state", help="only agents in this state")
    parser.add_argument("--needs-action", action="store_true", help="only agents that need you")
    parser.add_argument("--all", action="store_true", help="panes without an agent as well")
    parser.add_argument(
        "--group-by",
        choices=["target-session", "session-name"],
        help="sessions only: by target and name (the default), or by name across targets",
    )


def filters(options: Namespace) -> dict[str, str | None]:
    """As the API takes them."""
    return places(options) | {
        "state": options.state,
        "needs_action": "1" if options.needs_action else None,
        "all": "1" if options.all else None,
        "group_by": options.group_by,
    }


def client(options: Namespace, time_limit: float = TIME_LIMIT) -> Client:
    return Client(start=not getattr(options, "no_start", False), time_limit=time_limit)


def confirmed(question: str) -> bool:
    """Whether somebody is there and says yes."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_json(content: object) -> None:
    # ASCII, so that no terminal's encoding can change what a program reads.
    print(json.dumps(content))
