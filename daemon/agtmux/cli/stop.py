"""`agtmux stop <ref>`: end an agent, as gently as it lets one."""

from __future__ import annotations

import sys
import uuid
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, add_conditions, client, conditions, confirmed, print_json
from agtmux.cli.refs import full_ref
from agtmux.cli.table import is_terminal
from agtmux.client import with_query
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# Half a minute of asking and signals, and a worktree.
_TIME_LIMIT = 150.0


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Asks the agent to end, as you would at its prompt; then sends its process INT, TERM and KILL, each if the one"
        " before did not help, and says which it was. Asks before it does. Nothing is typed into a dialog or a draft."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--remove-worktree",
        action="store_true",
        help="remove its git worktree afterwards; refused if anything in it is nowhere else. Its branch stays",
    )
    add_conditions(parser)
    add_common(parser)


def run(options: Namespace) -> int:
    daemon = client(options, time_limit=_TIME_LIMIT)
    ref = full_ref(daemon, options.ref)
    guards = conditions(options)
    if not options.yes:
        # What was shown is what is meant, whatever happens while one thinks.
        item = daemon.get(with_query("/v1/explain", {"ref": ref}))["item"]
        if item["agent_type"] == "none":
            raise AgtmuxError(ErrorCode.PRECONDITION_FAILED, "no agent is in that pane, so there is none to stop")
        what = f"Stop {item['agent_type']} in {item['ref'].removeprefix('pane:')} ({item['state']})"
        if not confirmed(legible(f"{what}{' and remove its worktree' if options.remove_worktree else ''}?")):
            if not is_terminal(sys.stdin):
                raise AgtmuxError(ErrorCode.USAGE, "there is no terminal to ask you in; give --yes")
            print("nothing was done")
            return 1
        guards.setdefault("if_runtime", item["runtime_id"])
    asked = {"request_ref": uuid.uuid4().hex, "ref": ref, "actor": "cli", **guards}
    answer = daemon.post("/v1/actions/stop", {**asked, "remove_worktree": options.remove_worktree})
    about = answer["about"]
    if options.json:
        print_json(answer)
    else:
        print("ended as it was asked to" if about["ended_by"] == "asked" else f"ended by SIG{about['ended_by']}")
        if about.get("removed_worktree"):
            print(legible(f"removed {about['removed_worktree']}"))
        elif about.get("kept_because"):
            print(legible(f"its worktree stays: {about['kept_because']}"))
    return 1 if about.get("kept_because") else 0
