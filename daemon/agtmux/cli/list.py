"""`agtmux list panes|windows|sessions`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_filters, client, filters, print_json
from agtmux.client import with_query


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=["panes", "windows", "sessions"], help="what to list")
    add_filters(parser)
    # The summaries are always there: these two say so in the words of those who expect to ask for them.
    parser.add_argument("--with-agent-status", action="store_true", help="windows: always shown")
    parser.add_argument("--agent-summary", action="store_true", help="sessions: always shown")
    add_common(parser)


def run(options: Namespace) -> int:
    listing = client(options).get(with_query(f"/v1/{options.what}", filters(options)))
    if options.json:
        print_json(listing)
        return 0
    from agtmux.cli.panes import draw_groups, draw_panes
    from agtmux.cli.table import terminal_width, wants_colour

    draw = draw_panes if options.what == "panes" else draw_groups
    print("\n".join(draw(listing, colour=wants_colour(), width=terminal_width())))
    _warn(listing)
    return 0


def _warn(listing: dict[str, object]) -> None:
    import sys

    errors = listing.get("target_errors")
    for error in errors if isinstance(errors, list) else []:
        print(f"agtmux: {error['code']}: {error['message']}", file=sys.stderr)
