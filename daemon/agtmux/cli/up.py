"""`agtmux up`: start what is missing, and show the tray where there is a desktop, or else the live table."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from agtmux.cli.table import is_terminal
from agtmux.client import Client

# How long its agents' states are to stay as they are before they are shown.
_STEADY = 0.7
# How long a demo that was just started may take until its agents have said something.
_DEMO_LIMIT = 10.0


_DESCRIPTION = """\
Starts the daemon, and shows the tray on a desktop or else the live table. q leaves
the table; the daemon goes on until `agtmux down`.

The first time, in a terminal, it asks whether your agents may see each other and
write to each other through a bridge (an MCP server). Only after a yes does it add one
entry to their settings; `agtmux down` takes that out. The answer is remembered.
Without a terminal nothing is asked and nothing is added."""


def configure(parser: ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.add_argument("--headless", action="store_true", help="start the daemon and show nothing")
    bridge = parser.add_mutually_exclusive_group()
    bridge.add_argument(
        "--register",
        action="store_const",
        const=True,
        help="add the bridge to the settings of the agents you use, now and at every start, without a question",
    )
    bridge.add_argument(
        "--no-register",
        dest="register",
        action="store_const",
        const=False,
        help="take it out of them and leave them alone, now and at every start",
    )
    parser.add_argument("--demo-if-empty", action="store_true", help="start the demo when there is no agent to show")


def run(options: Namespace) -> int:
    client = Client()
    listing = client.get("/v1/panes")
    from agtmux.cli.mcp import settle_registration

    # Before anything else is shown: a question that a table hides is none.
    bridge = settle_registration(client, options.register)
    if not listing["items"]:
        from agtmux.cli.here import unwatched

        if (why := unwatched(client)) is not None:
            print(f"agtmux: {why}", file=sys.stderr)
    if options.demo_if_empty and not listing["items"]:
        from agtmux.cli.demo import start

        start(client)
        listing = _until_lively(client)
    if options.headless:
        return 0
    if _has_tray():
        print("agtmux is in the tray; `agtmux watch` shows the live table here")
        return 0
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        from agtmux.cli.live import show_live

        return show_live(client, {"scope": "panes"}, bridge)
    from agtmux.cli.panes import draw_panes

    print("\n".join(draw_panes(listing, colour=False, width=None)))
    return 0


def _has_tray() -> bool:
    """Whether there is a desktop that shows one; then it is started, if it is not there yet."""
    if sys.platform == "darwin":
        from AgtmuxBar.mac.starting import start as start_app

        return start_app()
    if sys.platform != "linux" or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    from AgtmuxBar.linux.starting import start

    return start()


def _until_lively(client: Client) -> dict[str, Any]:
    """The listing once every agent has a state that has held for a moment: what a screen shows while an agent starts is
    not yet what the agent reports."""
    now = since = time.monotonic()
    deadline, before = now + _DEMO_LIMIT, None
    while True:
        listing: dict[str, Any] = client.get("/v1/panes")
        states = [(item["ref"], item["state"]) for item in listing["items"]]
        now = time.monotonic()
        if states != before:
            before, since = states, now
        is_settled = bool(states) and all(state != "unknown" for _, state in states) and now - since > _STEADY
        if is_settled or now > deadline:
            return listing
        time.sleep(0.1)
