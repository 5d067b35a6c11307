"""`agtmux log actions`: who did what to which agent, and what came of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.description = "Every action that was asked for, the latest first, refused ones included."
    parser.add_argument("what", choices=["actions"], help="what to show")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many (50)")
    add_common(parser)


def run(options: Namespace) -> int:
    answer = client(options).get(f"/v1/actions?limit={options.limit}")
    if options.json:
        print_json(answer)
        return 0
    from agtmux.cli.table import draw, terminal_width, wants_colour

    heads = ("AT", "ACTION", "RESULT", "BY", "PANE", "RUNTIME", "")
    rows = [_row(item) for item in answer["items"]]
    lines = draw(heads, rows, colour=wants_colour(), width=terminal_width()) if rows else ["nothing was done yet"]
    print("\n".join(lines))
    return 0


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    return (
        item["requested_at"],
        item["action_type"],
        item["result_code"],
        item["about"].get("actor") or "-",
        f"{item['target']}/{item['pane_id']}",
        item["runtime_id"][:12],
        item["error_code"] or "",
    )
