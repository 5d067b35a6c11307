"""`agtmux list panes`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=["panes"], help="what to list")
    parser.add_argument("--all", action="store_true", help="panes without an agent as well")
    add_common(parser)


def run(options: Namespace) -> int:
    listing = client(options).get("/v1/panes?all=1" if options.all else "/v1/panes")
    if options.json:
        print_json(listing)
        return 0
    from agtmux.cli.panes import draw_panes
    from agtmux.cli.table import terminal_width, wants_colour

    print("\n".join(draw_panes(listing, colour=wants_colour(), width=terminal_width())))
    return 0
