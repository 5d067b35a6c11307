"""`agtmux approve <ref>`: say yes to what an agent asks."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli import answer


def configure(parser: ArgumentParser) -> None:
    answer.configure(parser, "Says yes to what the agent asks, this once.")


def run(options: Namespace) -> int:
    return answer.run(options, "approve", "approved")
