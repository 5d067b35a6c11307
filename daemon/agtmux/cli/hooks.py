"""`agtmux hooks install|uninstall|status`: let agents report what they do, and take that back."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json
from agtmux.domain.errors import AgtmuxError, ErrorCode
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# To connect, and then a few questions that each may take as long as a target may.
_TIME_LIMIT = 60.0


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Adds to an agent's own settings what makes it report to agtmux: nothing else in the file is touched, and"
        " uninstall leaves it as it was. Without --agent, for every agent that is used there. --agent tmux sets tmux's"
        " own hooks, with which changes are seen at once."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|uninstall|status")
    for name, summary in (
        ("install", "add the hooks"),
        ("uninstall", "take them out again"),
        ("status", "say what is there"),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument(
            "--agent", action="append", default=[], metavar="A", help="only this one, or tmux; may be repeated"
        )
        action.add_argument("--target", default="host", metavar="T", help="on which target's machine (host)")
        add_common(action)


def run(options: Namespace) -> int:
    asked = {
        "action": options.action,
        "agents": options.agent,
        "target": options.target,
        # The daemon may have been started by something that has another.
        "search_path": os.environb.get(b"PATH", b"").decode("utf-8", "replace"),
    }
    answer = client(options, _TIME_LIMIT).post("/v1/hooks", asked)
    items, target = answer["items"], answer["target"]
    if options.json:
        print_json(answer)
    else:
        lines = [line for item in items for line in _lines(item, target)]
        print("\n".join(map(legible, lines)) or _none(target))
    failed = [
        AgtmuxError(ErrorCode(item["error"]["code"]), item["error"]["message"]) for item in items if item["error"]
    ]
    if failed and not options.json:
        raise failed[0]
    return failed[0].exit_status if failed else 0


def _where(target: str) -> str:
    return "" if target == "host" else f" on {target}"


def _lines(item: dict[str, Any], target: str) -> list[str]:
    where = _where(target)
    if item["error"]:
        return [f"{item['agent']}{where}: not done"]
    left_out = len(item["left_out"])
    total = sum(len(item[field]) for field in ("added", "replaced", "already_there", "missing", "stale")) + left_out
    did = [
        f"{word} {len(item[field])}{f' of {total}' if left_out and field in ('added', 'already_there') else ''}"
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
    lines = [f"{item['agent']}{where}: {', '.join(did) or 'nothing of agtmux'} ({item['path']})"]
    lines += [f"  {warning}" for warning in item["warnings"]]
    if left_out and not item["version"]:
        there = f" --target {target}" if target != "host" else ""
        lines.append(f"  → start it in a watched pane, then: agtmux hooks install --agent {item['agent']}{there}")
    return lines


def _none(target: str) -> str:
    where = _where(target).strip() or "here"
    return f"no agent that agtmux knows has settings or a program {where}; name one with --agent"
