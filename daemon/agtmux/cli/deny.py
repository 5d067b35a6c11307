"""`agtmux deny <ref>`: say no to what an agent asks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli import answer


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--reason", default="", metavar="R", help="what the agent is told")
    answer.configure(parser, "Says no to what the agent asks.")


def run(options: Namespace) -> int:
    return answer.run(options, "deny", "denied", reason=options.reason)
