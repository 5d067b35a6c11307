"""`agtmux mcp register|unregister|status|serve`: the bridge through which agents see each other."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIME_LIMIT = 30.0
_SAID = {
    "registered": "registered",
    "absent": "not registered",
    "outdated": "registered with another bridge",
    "abandoned": "registered by an agtmux that is gone",
    "other_instance": "registered by another agtmux",
    "foreign": "another server has the name",
}


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Names agtmux's MCP server in an agent's own settings: one entry, nothing else in the file is touched, and"
        " unregister leaves it as it was. `agtmux up` registers and `agtmux down` unregisters, unless config.toml"
        " says `register = false` in [mcp]. On the machine of an SSH target it stays until you unregister it or remove"
        " the target. Without --agent, for every agent that is used there; one of this machine that is unregistered by"
        " name is left out until it is registered by name."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="register|unregister|status|serve")
    for name, summary in (
        ("register", "add the entry, on this machine until the daemon ends"),
        ("unregister", "take it out again"),
        ("status", "say what is there"),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument("--agent", action="append", default=[], metavar="A", help="only this one; may be repeated")
        action.add_argument("--target", default="host", metavar="T", help="on which target's machine (host)")
        add_common(action)
    serve = actions.add_parser("serve", help="be the bridge, as agents start it: MCP on standard input and output")
    serve.add_argument("--socket", metavar="PATH", help="the daemon's socket")


def run(options: Namespace) -> int:
    if options.action == "serve":
        from agtmux.bridge.main import serve

        return serve(options.socket)
    asked = {"action": options.action, "agents": options.agent, "target": options.target, "search_path": _search_path()}
    answer = client(options, _TIME_LIMIT).post("/v1/mcp", asked)
    items = answer["items"]
    if options.json:
        print_json(answer)
    else:
        lines = [line for item in items for line in _lines(item, options.target)]
        nobody = "no agent that agtmux knows has settings or a program there; name one with --agent"
        print("\n".join(map(legible, lines)) or nobody)
    failed = [
        AgtmuxError(ErrorCode(item["error"]["code"]), item["error"]["message"]) for item in items if item["error"]
    ]
    if failed and not options.json:
        raise failed[0]
    return failed[0].exit_status if failed else 0


def register_at_start(asking: Client) -> None:
    """What `agtmux up` does beside starting: it is said, and never keeps agtmux from coming up."""
    asked = {"action": "register", "search_path": _search_path(), "automatic": True}
    try:
        items = asking.post("/v1/mcp", asked)["items"]
    except AgtmuxError as error:
        _say(f"agents are not told of the bridge: {error.message}")
        return
    new = [item["agent"] for item in items if not item["error"] and item["changed"]]
    if new:
        _say(
            f"{', '.join(new)} may use the bridge to other agents from the next start on: it is in their settings until"
            " `agtmux down` (docs/messaging.md; register = false in [mcp] forbids it)"
        )
    for item in items:
        for complaint in [item["error"]["message"]] if item["error"] else item["warnings"]:
            _say(f"{item['agent']}: {complaint}")


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(legible(f"agtmux: {text}"), file=sys.stderr)


def _search_path() -> str:
    # The daemon may have been started by something that has another.
    return os.environb.get(b"PATH", b"").decode("utf-8", "replace")


def _lines(item: dict[str, Any], target: str) -> list[str]:
    who = item["agent"] if target == "host" else f"{item['agent']} on {target}"
    if item["error"]:
        return [f"{who}: not done"]
    now = " now" if item["changed"] else ""
    return [
        f"{who}: {_SAID[item['entry']]}{now} ({item['path']})",
        *(f"  {warning}" for warning in item["warnings"]),
    ]
