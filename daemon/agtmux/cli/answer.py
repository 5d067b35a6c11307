"""`agtmux approve <ref>` and `agtmux deny <ref>`: answer the dialog that an agent has open."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_conditions, client, conditions, print_json


def configure(parser: ArgumentParser) -> None:
    is_denial = parser.prog.endswith("deny")
    parser.description = (
        "Says no to what the agent asks." if is_denial else "Says yes to what the agent asks, this once."
    ) + " Refused if it asks nothing, or has moved on. No key is pressed: the agent's own hook takes the answer."
    parser.add_argument("ref", help="a pane or a runtime, as `agtmux list panes --json` names it")
    if is_denial:
        parser.add_argument("--reason", default="", metavar="R", help="what the agent is told")
    parser.set_defaults(answer="deny" if is_denial else "approve")
    add_conditions(parser)
    add_common(parser)


def run(options: Namespace) -> int:
    asked = {"request_ref": uuid.uuid4().hex, "ref": options.ref, "actor": "cli", **conditions(options)}
    if options.answer == "deny":
        asked["reason"] = options.reason
    answer = client(options, time_limit=15.0).post(f"/v1/actions/{options.answer}", asked)
    if options.json:
        print_json(answer)
    else:
        done = "approved" if options.answer == "approve" else "denied"
        print(f"{done}: {answer['question']}" if answer.get("question") else done)
    return 0
