"""`agtmux menu`: the menu of the resident app as text, from the same model."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_common, client, print_json


def configure(parser: ArgumentParser) -> None:
    parser.description = "Prints what the menu bar or the tray would show now, without what only a desktop can tell."
    add_common(parser)


def run(options: Namespace) -> int:
    from datetime import datetime

    from AgtmuxBar import bridge
    from AgtmuxBar.model import build
    from AgtmuxBar.settings import Surroundings, read_settings
    from AgtmuxBar.snapshot import asked_for
    from AgtmuxBar.text import as_json, as_text

    snapshot, generated_at = asked_for(client(options))
    now = max(time.time(), datetime.fromisoformat(generated_at).timestamp())
    menu = build(snapshot, read_settings(), Surroundings(bridges=bridge.state()), now)
    if options.json:
        print_json(as_json(menu))
    else:
        print(as_text(menu), end="")
    return 0
