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
    print("agtmux: no agent is running, so here is a demo; `agtmux demo --stop` ends it", file=sys.stderr)


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
        print(f"Started {started.panes} scripted agents in a tmux server of their own; they end by themselves.")
    width = len(attach)
    print(f"  {'agtmux list panes':<{width}}  what they do")
    print(f"  {'agtmux up':<{width}}  the same, live")
    print(f"  {attach:<{width}}  look at them, answer them, type to them")
    print(f"  {'agtmux demo --stop':<{width}}  end the demo")
    return 0


def _stop(as_json: bool) -> int:
    from agtmux.demo import stage

    was_running = stage.stop()
    if as_json:
        print_json({"schema_version": 1, "stopped": was_running})
    else:
        print("The demo has ended." if was_running else "No demo was running.")
    return 0
