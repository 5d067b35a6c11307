"""`agtmux hooks install|uninstall|status`: let agents report what they do, and take that back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.domain.errors import AgtmuxError, ErrorCode

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Adds to an agent's own settings what makes it report to agtmux: nothing else in the file is touched, and"
        " uninstall leaves it as it was. Without --agent, for every agent that is used here."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|uninstall|status")
    for name, summary in (
        ("install", "add the hooks"),
        ("uninstall", "take them out again"),
        ("status", "say what is there"),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument("--agent", action="append", default=[], metavar="A", help="only this one; may be repeated")
        action.add_argument("--target", default="host", metavar="T", help="where (host)")
        add_common(action)


def run(options: Namespace) -> int:
    asked = {"action": options.action, "agents": options.agent, "target": options.target}
    answer = client(options).post("/v1/hooks", asked)
    if options.json:
        print_json(answer)
    else:
        print("\n".join(line for item in answer["items"] for line in _lines(item)) or "no agent is used here")
    failed = [item["error"] for item in answer["items"] if item["error"]]
    if failed and not options.json:
        raise AgtmuxError(ErrorCode(failed[0]["code"]), failed[0]["message"])
    return 1 if failed else 0


def _lines(item: dict[str, Any]) -> list[str]:
    if item["error"]:
        return [f"{item['agent']}: not done"]
    did = [
        f"{word} {len(item[field])}"
        for field, word in (
            ("added", "added"),
            ("replaced", "replaced"),
            ("removed", "removed"),
            ("already_there", "there"),
            ("missing", "missing"),
            ("stale", "out of date"),
        )
        if item[field]
    ]
    lines = [f"{item['agent']}: {', '.join(did) or 'nothing of agtmux'} ({item['path']})"]
    return lines + [f"  {warning}" for warning in item["warnings"]]
