"""`agtmux daemon run`, which is what `agtmuxd` is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=["run"], help="run it in the foreground, until a signal ends it")


def run(options: Namespace) -> int:
    from agtmux.daemon import main

    return main()
