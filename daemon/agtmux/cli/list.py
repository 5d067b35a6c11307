"""`agtmux list panes|windows|sessions`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.client import with_query
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=["panes", "windows", "sessions"], help="what to list")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--target", metavar="NAME", help="only this target")
    where.add_argument("--all-targets", action="store_true", help="every target, which is what happens anyway")
    where.add_argument("--target-session", metavar="TARGET/SESSION", help="only this session, its name percent-encoded")
    parser.add_argument("--session", metavar="NAME", help="only sessions of this name")
    parser.add_argument("--state", help="only agents in this state")
    parser.add_argument("--agent", metavar="TYPE", help="only agents of this type")
    parser.add_argument("--needs-action", action="store_true", help="only agents that need you")
    parser.add_argument("--all", action="store_true", help="panes without an agent as well")
    parser.add_argument(
        "--group-by",
        choices=["target-session", "session-name"],
        help="sessions only: by target and name (the default), or by name across targets",
    )
    # The summaries are always there: these two say so in the words of those who expect to ask for them.
    parser.add_argument("--with-agent-status", action="store_true", help="windows: always shown")
    parser.add_argument("--agent-summary", action="store_true", help="sessions: always shown")
    add_common(parser)


def run(options: Namespace) -> int:
    filters = {
        "target": options.target,
        "target_session": options.target_session,
        "session": options.session,
        "state": options.state,
        "agent": options.agent,
        "needs_action": "1" if options.needs_action else None,
        "all": "1" if options.all else None,
        "group_by": options.group_by,
    }
    listing = client(options).get(with_query(f"/v1/{options.what}", filters))
    if options.json:
        print_json(listing)
        return 0
    from agtmux.cli.panes import draw_groups, draw_panes
    from agtmux.cli.table import terminal_width, wants_colour

    _set_apart(listing["summary"])
    draw = draw_panes if options.what == "panes" else draw_groups
    print("\n".join(draw(listing, colour=wants_colour(), width=terminal_width())))
    _warn(listing)
    return 0


def _set_apart(summary: dict[str, Any]) -> None:
    """Panes without an agent, which `--all` lists too: they are no agents, and nothing is unknown of them."""
    if bare := summary["by_agent"].get("none", 0):
        states = summary["by_state"] | {"unknown": summary["by_state"].get("unknown", 0) - bare}
        summary["by_state"] = {state: count for state, count in states.items() if count} | {"without an agent": bare}
        summary["total"] -= bare


def _warn(listing: dict[str, object]) -> None:
    import sys

    errors = listing.get("target_errors")
    for error in errors if isinstance(errors, list) else []:
        print(legible(f"agtmux: {error['code']}: {error['message']}"), file=sys.stderr)
