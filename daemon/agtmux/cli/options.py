"""Options that several commands share, and the client they ask for."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from agtmux.client import TIME_LIMIT, Client


def add_common(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--no-start", action="store_true", help="fail if the daemon is not running, do not start it")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of text for people")


def add_conditions(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("only if", "what must be true beside what is always checked")
    group.add_argument("--if-runtime", metavar="ID", help="this runtime is in the pane")
    group.add_argument("--if-state", metavar="STATE", help="the agent is in this state")
    group.add_argument("--if-updated-within", metavar="D", help="its state is not older than this, as 30s or 5m")
    group.add_argument("--force-stale", action="store_true", help="also if its state has changed since you asked")


def conditions(options: Namespace) -> dict[str, object]:
    found = {
        "if_runtime": options.if_runtime,
        "if_state": options.if_state,
        "if_updated_within": options.if_updated_within,
    }
    return {name: value for name, value in found.items() if value is not None} | {"force_stale": options.force_stale}


def client(options: Namespace, time_limit: float = TIME_LIMIT) -> Client:
    return Client(start=not getattr(options, "no_start", False), time_limit=time_limit)


def print_json(content: object) -> None:
    # ASCII, so that no terminal's encoding can change what a program reads.
    print(json.dumps(content))
