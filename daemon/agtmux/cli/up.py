"""`agtmux up`: start what is missing, and show the tray where there is a desktop, or else the live table."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from agtmux.cli.table import is_terminal
from agtmux.client import Client

# How long a demo that was just started may take until its agents have said something.
_DEMO_LIMIT = 10.0


def configure(parser: ArgumentParser) -> None:
    headless = "start the daemon, tell agents of the bridge, and show nothing"
    parser.add_argument("--headless", action="store_true", help=headless)
    parser.add_argument("--demo-if-empty", action="store_true", help="start the demo when there is no agent to show")


def run(options: Namespace) -> int:
    client = Client()
    listing = client.get("/v1/panes")
    if not listing["items"]:
        from agtmux.cli.here import unwatched

        if (why := unwatched(client)) is not None:
            print(f"agtmux: {why}", file=sys.stderr)
    if options.demo_if_empty and not listing["items"]:
        from agtmux.cli.demo import start

        start(client)
        listing = _until_lively(client)
    from agtmux.cli.mcp import register_at_start

    register_at_start(client)
    if options.headless:
        return 0
    if _has_tray():
        print("agtmux is in the tray; `agtmux watch` shows the live table here")
        return 0
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        from agtmux.cli.live import show_live

        return show_live(client)
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
    """The listing once every agent has said something, so that the first look shows states."""
    deadline = time.monotonic() + _DEMO_LIMIT
    while True:
        listing: dict[str, Any] = client.get("/v1/panes")
        items = listing["items"]
        told = [item for item in items if item["state"] != "unknown"]
        if (items and len(told) >= len(items) - 1) or time.monotonic() > deadline:
            return listing
        time.sleep(0.1)
