"""`agtmux demo`: a few scripted agents in a tmux server of their own, and how to look at them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_json, print_json
from agtmux.client import Client
from agtmux.domain.errors import AgtmuxError, ErrorCode

# A forgotten demo goes away by itself.
_LASTS = "60m"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--stop", action="store_true", help="end the demo and remove its target")
    parser.add_argument(
        "--for", dest="lasts", metavar="DURATION", default=_LASTS, help="end by itself after this long (default: 60m)"
    )
    add_json(parser)


def run(options: Namespace) -> int:
    return _stop(options.json) if options.stop else _start(options.lasts, options.json)


def start(client: Client) -> None:
    """Start it on behalf of another command, with one line to say so."""
    from agtmux.demo import stage
    from agtmux.domain.durations import parse_duration

    stage.start(client, parse_duration(_LASTS))
    print(
        "agtmux: no agent is running, so here is a demo, whose agents answer themselves after a while;"
        f" `{_as_typed()} demo --stop` ends it",
        file=sys.stderr,
    )


def _as_typed() -> str:
    """How whoever has started this one gets to it again."""
    import shutil

    program = sys.argv[0]
    return "agtmux" if shutil.which("agtmux") else program if program.endswith("agtmux") else "agtmux"


def is_running() -> bool:
    from agtmux.demo import stage

    return stage.is_running()


def _start(lasts: str, as_json: bool) -> int:
    from agtmux.demo import stage
    from agtmux.domain.durations import parse_duration

    duration = parse_duration(lasts)
    if duration <= 0:
        raise AgtmuxError(ErrorCode.USAGE, f"a demo of {lasts} would never be seen; give it some time, such as 10m")
    started = stage.start(Client(), duration)
    attach = f"tmux -L {started.server} attach"
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "started": not started.was_running,
                "target": stage.TARGET,
                "tmux_socket": started.server,
                "panes": started.panes,
                "attach": attach,
            }
        )
        return 0
    if started.was_running:
        print("The demo is already running.")
    else:
        print(
            f"Started {started.panes} scripted agents in a tmux server of their own; they end by themselves after"
            f" {lasts}.\nWhat they ask they answer themselves after a while, if nobody else does."
        )
    for command, about in (
        ("agtmux list panes", "what they do"),
        ("agtmux up", "the same, live"),
        ("agtmux approve REF", "say yes to one that asks for approval; `agtmux deny REF` says no"),
        (attach, "look at them, answer them, type to them"),
        ("agtmux demo --stop", "end the demo"),
    ):
        print(f"  {command:<{len(attach)}}  {about}")
    return 0


def _stop(as_json: bool) -> int:
    from agtmux.demo import stage

    was_running = stage.stop()
    if as_json:
        print_json({"schema_version": 1, "stopped": was_running})
    else:
        print("The demo has ended." if was_running else "No demo was running.")
    return 0
