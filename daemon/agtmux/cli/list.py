"""`agtmux list panes|windows|sessions`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_filters, client, filters, print_json
from agtmux.client import Client, with_query
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    kinds = ["panes", "windows", "sessions"]
    parser.add_argument("what", nargs="?", choices=kinds, default="panes", help="what to list (panes)")
    add_filters(parser)
    # The summaries are always there: these two say so in the words of those who expect to ask for them.
    parser.add_argument("--with-agent-status", action="store_true", help="windows: always shown")
    parser.add_argument("--agent-summary", action="store_true", help="sessions: always shown")
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options)
    listing = daemon.get(with_query(f"/v1/{options.what}", filters(options)))
    if options.json:
        print_json(listing)
        return 0
    from agtmux.cli.panes import confidence_note, draw_groups, draw_panes
    from agtmux.cli.table import terminal_width, wants_colour, wrap

    _set_apart(listing["summary"])
    draw = draw_panes if options.what == "panes" else draw_groups
    print("\n".join(draw(listing, colour=wants_colour(), width=terminal_width())))
    if options.what == "panes" and terminal_width() and (note := confidence_note(listing["items"])):
        print("\n".join(["", *wrap(note, terminal_width())]))
    _warn(listing)
    if not listing["items"]:
        _say_unwatched(daemon)
    return 0


def _set_apart(summary: dict[str, Any]) -> None:
    """Panes without an agent, which `--all` lists too: they are no agents, and nothing is unknown of them."""
    if bare := summary["by_agent"].get("none", 0):
        states = summary["by_state"] | {"unknown": summary["by_state"].get("unknown", 0) - bare}
        summary["by_state"] = {state: count for state, count in states.items() if count} | {"without an agent": bare}
        summary["total"] -= bare


def _say_unwatched(daemon: Client) -> None:
    """Nothing may be there because nobody looks there."""
    import sys

    from agtmux.cli.here import unwatched

    if (why := unwatched(daemon)) is not None:
        print(legible(f"agtmux: {why}"), file=sys.stderr)


def _warn(listing: dict[str, object]) -> None:
    import sys

    errors = listing.get("target_errors")
    for error in errors if isinstance(errors, list) else []:
        print(legible(f"agtmux: {error['code']}: {error['message']}"), file=sys.stderr)
