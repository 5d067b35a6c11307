"""`agtmux mcp register|unregister|status|serve`: the bridge through which agents see each other."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.cli.table import is_terminal
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIME_LIMIT = 30.0
_OFF = "bridge: off, agents do not see each other; `agtmux up --register` adds it to their settings"
# Entries that are somebody else's to change.
_OTHERS = ("foreign", "other_instance")
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
        " unregister leaves it as it was. Your decision is remembered: `agtmux up` adds the entry for the agents that"
        " you have agreed to, and `agtmux down` takes it out for as long as the daemon is away. `register` in [mcp] of"
        " config.toml, if it is there, decides instead. On the machine of an SSH target the entry stays until you"
        " unregister it or remove the target. Without --agent, for every agent that is used there; a decision by name"
        " holds for that agent until the next one."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="register|unregister|status|serve")
    for name, summary, description in (
        (
            "register",
            "add the entry, on this machine until the daemon ends",
            "Adds agtmux's MCP server to the settings of the agents you use, or of those you name, and remembers that"
            " you have agreed: the next `agtmux up` adds it again without a question.",
        ),
        (
            "unregister",
            "take it out again",
            "Takes agtmux's MCP server out of agents' settings, and remembers that: `agtmux up` leaves them alone.",
        ),
        ("status", "say what is there", "Says what stands in agents' settings, and whether you have agreed to it."),
    ):
        example = f"example: agtmux mcp {name}"
        action = actions.add_parser(name, help=summary, description=description, epilog=example)
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
        where = "here" if options.target == "host" else f"on {options.target}"
        nobody = f"no agent that agtmux knows has settings or a program {where}; name one with --agent"
        print("\n".join(map(legible, lines)) or nobody)
        if options.action == "status" and options.target == "host":
            print(_decision(answer["consent"]))
    failed = [
        AgtmuxError(ErrorCode(item["error"]["code"]), item["error"]["message"]) for item in items if item["error"]
    ]
    if failed and not options.json:
        raise failed[0]
    return failed[0].exit_status if failed else 0


def settle_registration(asking: Client, choice: bool | None) -> str:
    """What `agtmux up` does about the bridge; returns a line that says what is in force.

    Agents' settings are changed only with the user's consent: `choice` is what the options say, else it is what was
    decided before, else the user is asked, in a terminal. It never keeps agtmux from coming up.
    """
    try:
        return _settled(asking, choice)
    except AgtmuxError as error:
        _say(f"the bridge was not registered: {error.message}")
        return ""


def _settled(asking: Client, choice: bool | None) -> str:
    asked = {"search_path": _search_path()}
    if choice is None:
        found = asking.post("/v1/mcp", {"action": "status", **asked})
        # A daemon of an earlier version says nothing of consent.
        consent = found.get("consent") or {"register": None, "agents": {}, "decided_by": None}
        open_for = [
            item
            for item in found["items"]
            if not item["error"] and item["entry"] not in _OTHERS and item["agent"] not in consent["agents"]
        ]
        if not found["items"]:
            return ""
        if consent["register"] is None and open_for:
            if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
                where = ", ".join(item["path"] for item in open_for)
                _say(f"agents' settings were left alone; `agtmux up --register` lets agents use the bridge ({where})")
            else:
                choice = _consent(open_for)
                if choice is None:
                    return _OFF
    if choice is not None:
        answer = asking.post("/v1/mcp", {"action": "register" if choice else "unregister", **asked})
    else:
        answer = asking.post("/v1/mcp", {"action": "register", "automatic": True, **asked})
    return _told_of(answer["items"])


def _consent(items: list[dict[str, Any]]) -> bool | None:
    """The user's answer; None if there is none. Only a yes is one."""
    width = max(len(item["agent"]) for item in items)
    lines = [
        "agtmux can let your agents see each other and write to each other. For that it adds one MCP server,",
        "called agtmux, to the agents' own settings, and takes it out again when the daemon stops:",
        "",
        *(f"  {item['agent']:<{width}}  {item['path']}" for item in items),
        "",
        "Nothing else in these files changes. agtmux shows and answers agents without it as well.",
        "(What is added: the entry `agtmux`, which starts `agtmux-mcp`; see docs/messaging.md.)",
    ]
    print("\n".join(map(legible, lines)), file=sys.stderr)
    print("Add it to these files? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print(file=sys.stderr)
        return None
    return answer.strip().lower() in ("y", "yes")


def _told_of(items: list[dict[str, Any]]) -> str:
    """Says what has changed and what could not be; returns what is in force."""
    for word, entry in (("can use the bridge from their next start on", "registered"), ("lost the bridge", "absent")):
        changed = [item for item in items if not item["error"] and item["changed"] and item["entry"] == entry]
        if changed:
            where = ", ".join(f"{item['agent']} ({item['path']})" for item in changed)
            _say(f"{where}: {word}; `agtmux mcp status` tells, `agtmux mcp unregister` takes it out")
    for item in items:
        for complaint in [item["error"]["message"]] if item["error"] else item["warnings"]:
            _say(f"{item['agent']}: {complaint}")
    there = [item["agent"] for item in items if not item["error"] and item["entry"] == "registered"]
    return f"bridge: in the settings of {', '.join(there)}; `agtmux mcp unregister` takes it out" if there else _OFF


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(legible(f"agtmux: {text}"), file=sys.stderr)


def _search_path() -> str:
    # The daemon may have been started by something that has another.
    return os.environb.get(b"PATH", b"").decode("utf-8", "replace")


def _decision(consent: dict[str, Any]) -> str:
    """What `agtmux up` will do, and why."""
    said = {
        True: "registers agents, as you have agreed",
        False: "leaves agents alone, as you have decided",
        None: "asks whether to add the bridge to your agents' settings; you have not decided yet",
    }
    by = " (in config.toml)" if consent["decided_by"] == "config" else ""
    but = ", ".join(f"{agent}: {'yes' if allow else 'no'}" for agent, allow in sorted(consent["agents"].items()))
    return f"`agtmux up` {said[consent['register']]}{by}" + (f"; decided by name: {but}" if but else "")


def _lines(item: dict[str, Any], target: str) -> list[str]:
    who = item["agent"] if target == "host" else f"{item['agent']} on {target}"
    if item["error"]:
        return [f"{who}: not done"]
    now = " now" if item["changed"] else ""
    return [
        f"{who}: {_SAID[item['entry']]}{now} ({item['path']})",
        *(f"  {warning}" for warning in item["warnings"]),
    ]
