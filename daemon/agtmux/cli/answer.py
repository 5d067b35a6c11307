"""What `agtmux approve` and `agtmux deny` share: they answer the dialog that an agent has open."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_conditions, client, conditions, print_json
from agtmux.cli.refs import full_ref
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible


def configure(parser: ArgumentParser, what: str) -> None:
    parser.description = (
        f"{what} Refused if it asks nothing, or has moved on. Where the agent's own hook waits for an answer, it takes"
        " it; elsewhere one key is pressed, once, and only at the dialog that was shown. Nothing is ever allowed for"
        " longer than this once."
    )
    parser.add_argument(
        "ref",
        nargs="?",
        help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it; without,"
        " agtmux lists the agents that wait and answers none",
    )
    add_conditions(parser).add_argument(
        "--if-dialog", metavar="ID", help="it is this dialog: `fingerprint` of its `attention`"
    )
    add_common(parser)


def run(options: Namespace, action: str, done: str, **more: str | bool) -> int:
    # An agent may take its time to move on.
    daemon = client(options, time_limit=15.0)
    if options.ref is None:
        raise _whose(daemon, action)
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


def _whose(daemon: Client, action: str) -> AgtmuxError:
    """What to say where no agent was named. Nothing is answered unseen, also if only one waits."""
    waiting = daemon.get("/v1/panes?state=waiting_approval")["items"]
    if not waiting:
        return AgtmuxError(ErrorCode.USAGE, f"no agent waits for approval; `agtmux {action} REF` answers one that does")
    asks = [item["attention"]["summary"] if item["attention"] else "what it asks is not known" for item in waiting]
    names = [item["name"] or item["ref"] for item in waiting]
    lines = [f"  agtmux {action} {name}   # {asked}" for name, asked in zip(names, asks, strict=True)]
    head = f"say which agent; {'this one waits' if len(waiting) == 1 else f'these {len(waiting)} wait'} for approval:"
    return AgtmuxError(ErrorCode.USAGE, "\n".join([head, *lines]), {"refs": [item["ref"] for item in waiting]})
