"""`agtmux classify`: what a saved screen says, by the same rules as a live one. Asks no daemon."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from agtmux import paths
from agtmux.cli.options import print_json
from agtmux.domain.errors import AgtmuxError, ErrorCode


def configure(parser: ArgumentParser) -> None:
    parser.description = (
        "Reads a screen from standard input, as `tmux capture-pane -p -e` prints it, and tells what its agent is"
        " doing, as JSON: the state with its evidence, and for a dialog the request (`attention`), its `fingerprint`,"
        " and whether the request is shown whole (`whole`, else `incomplete_reason`). Without -e, colours are missing,"
        " and it is less sure."
    )
    parser.add_argument("--agent", required=True, metavar="A", help="whose screen it is, as `agtmux list` calls it")
    parser.add_argument("--title", default="", metavar="T", help="the pane's title (#{pane_title})")
    parser.add_argument("--command", default="", metavar="C", help="the pane's command (#{pane_current_command})")
    parser.add_argument("--json", action="store_true", help="accepted for symmetry: the answer is always JSON")


def run(options: Namespace) -> int:
    from pathlib import Path

    from agtmux.agents.registry import AGENTS_FOLDER, Registry
    from agtmux.agents.screen.answer import as_json

    if sys.stdin is None or sys.stdin.isatty():
        raise AgtmuxError(
            ErrorCode.USAGE, "give a screen on standard input: tmux capture-pane -p -e | agtmux classify …"
        )
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    registry = Registry.load(Path(paths.config_file()).parent / AGENTS_FOLDER)
    if not registry.knows(options.agent):
        known = ", ".join(registry.agent_types)
        raise AgtmuxError(ErrorCode.USAGE, f"no agent is called {options.agent[:64]!r}; known are {known}")
    print_json(as_json(registry.read_screen(options.agent, text, title=options.title, command=options.command)))
    return 0
