"""`agtmux view-output <ref>`: the last lines of a pane."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.refs import full_ref


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Prints the last lines of a pane, what has scrolled away included. Refused if what was in the pane when you"
        " looked has ended."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    parser.add_argument("--lines", type=int, default=200, metavar="N", help="how many (200)")
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options)
    ref = full_ref(daemon, options.ref)
    asked = {"request_ref": uuid.uuid4().hex, "ref": ref, "lines": options.lines, "actor": "cli"}
    answer = daemon.post("/v1/actions/view-output", asked)
    if options.json:
        print_json(answer)
    else:
        print(answer["output"])
    return 0
