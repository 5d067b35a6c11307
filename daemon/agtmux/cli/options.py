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


def client(options: Namespace, time_limit: float = TIME_LIMIT) -> Client:
    return Client(start=not getattr(options, "no_start", False), time_limit=time_limit)


def print_json(content: object) -> None:
    # ASCII, so that no terminal's encoding can change what a program reads.
    print(json.dumps(content))
