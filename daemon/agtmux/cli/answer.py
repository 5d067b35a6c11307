"""What `agtmux approve` and `agtmux deny` share: they answer the dialog that an agent has open."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_conditions, client, conditions, print_json
from agtmux.cli.refs import full_ref
from agtmux.domain.legible import legible


def configure(parser: ArgumentParser, what: str) -> None:
    parser.description = (
        f"{what} Refused if it asks nothing, or has moved on. Where the agent's own hook waits for an answer, it takes"
        " it; elsewhere one key is pressed, once, and only at the dialog that was shown. Nothing is ever allowed for"
        " longer than this once."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    add_conditions(parser).add_argument(
        "--if-dialog", metavar="ID", help="it is this dialog: `fingerprint` of its `attention`"
    )
    add_common(parser)


def run(options: Namespace, action: str, done: str, **more: str) -> int:
    # An agent may take its time to move on.
    daemon = client(options, time_limit=15.0)
    ref = full_ref(daemon, options.ref)
    asked = {"request_ref": uuid.uuid4().hex, "ref": ref, "actor": "cli", **conditions(options), **more}
    if options.if_dialog is not None:
        asked["if_dialog"] = options.if_dialog
    answer = daemon.post(f"/v1/actions/{action}", asked)
    if options.json:
        print_json(answer)
    else:
        print(f"{done}: {legible(answer['question'])}" if answer.get("question") else done)
    return 0
