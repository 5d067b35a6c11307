"""`agtmux kill <ref>`: interrupt an agent, or end it."""

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

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STRONGER = {"INT": "; --signal TERM asks it to end", "TERM": "; --signal KILL ends it whatever it does"}


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Presses Ctrl-C in the agent's pane, or sends its process a signal. Checks that this can be done, asks you, and"
        " checks again. A key is refused while the agent asks something: deny that, or send a signal."
    )
    parser.add_argument(
        "ref", help="a pane as `agtmux list panes` shows it, its agent's name, a ref, or %%N where one pane has it"
    )
    parser.add_argument("--mode", choices=["key", "signal"], default="key", help="how (key)")
    parser.add_argument(
        "--signal", choices=["INT", "TERM", "KILL"], default="INT", help="which (INT); a key is always INT"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_conditions(parser)
    add_common(parser)


def run(options: Namespace) -> int:
    if options.mode == "key" and options.signal != "INT":
        raise AgtmuxError(ErrorCode.USAGE, f"a key can only interrupt; {options.signal} needs --mode signal")
    daemon = client(options, time_limit=15.0)
    ref = full_ref(daemon, options.ref)
    guards = conditions(options)
    asked = {"ref": ref, "actor": "cli", "mode": options.mode, "signal": options.signal}
    if not options.yes:
        if not is_terminal(sys.stdin):
            raise AgtmuxError(ErrorCode.USAGE, "there is no terminal to ask you in; give --yes")
        # What was shown is what is meant, whatever happens while one thinks.
        item = daemon.get(with_query("/v1/explain", {"ref": ref}))["item"]
        guards.setdefault("if_runtime", item["runtime_id"])
        # Nobody is asked about what would be refused anyway.
        daemon.post("/v1/actions/kill", {**asked, **guards, "request_ref": uuid.uuid4().hex, "only_check": True})
        if not confirmed(legible(_question(item, options))):
            print("nothing was done")
            return 1
    answer = daemon.post("/v1/actions/kill", {**asked, **guards, "request_ref": uuid.uuid4().hex})
    if options.json:
        print_json(answer)
    elif options.mode == "key":
        print("interrupted: Ctrl-C was pressed")
    else:
        print(told(answer["about"].get("has_ended"), options.signal))
    return 0 if options.mode == "key" or answer["about"].get("has_ended") else 1


def told(has_ended: bool | None, name: str) -> str:
    if has_ended:
        return f"ended by SIG{name}"
    if has_ended is None:
        return f"SIG{name} was sent, and whether it has ended could not be seen; look at it (agtmux explain)"
    return f"SIG{name} was sent, and it still runs{_STRONGER.get(name, '')}"


def _question(item: dict[str, Any], options: Namespace) -> str:
    who = "the shell" if item["agent_type"] == "none" else item["agent_type"]
    what = "Press Ctrl-C in" if options.mode == "key" else f"Send SIG{options.signal} to {who} in"
    return f"{what} {item['ref'].removeprefix('pane:')} ({item['agent_type']}, {item['state']})?"
