"""`agtmux approve <ref>`: say yes to what an agent asks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli import answer


def configure(parser: ArgumentParser) -> None:
    answer.configure(parser, "Says yes to what the agent asks, this once.")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="approve also what is not shown whole: what has left the screen, is too long, or is hidden",
    )


def run(options: Namespace) -> int:
    return answer.run(options, "approve", "approved", **({"partial": True} if options.partial else {}))
