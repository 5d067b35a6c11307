"""`agtmux status`: is the daemon there, and is it well."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agtmux.cli.options import add_json, print_json
from agtmux.client import Client
from agtmux.domain.legible import legible

# `typing` costs every command four milliseconds and is needed by nobody at run time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    add_json(parser)


def run(options: Namespace) -> int:
    # To ask how something is must not change it: status never starts the daemon.
    health = Client(start=False).get("/v1/health")
    if options.json:
        print_json(health)
    else:
        print("\n".join(map(legible, _lines(health))))
    return 0


def _lines(health: dict[str, Any]) -> list[str]:
    lines = [
        f"agtmuxd {health['version']} is {health['status']}: process {health['pid']}, "
        f"up for {health['uptime_seconds']} s, state in {health['state_directory']}"
    ]
    events = health["events"]
    if events:
        lines.append("events: " + ", ".join(f"{count} {status}" for status, count in sorted(events.items())))
    if health["refused"]:
        lines.append("refused: " + ", ".join(f"{count} {code}" for code, count in sorted(health["refused"].items())))
    if health["database"]["notice"]:
        lines.append(health["database"]["notice"])
    if health["database"]["failed_commits"]:
        lines.append(f"the database refused {health['database']['failed_commits']} times; see the log")
    for target in health["targets"]:
        # A daemon that is older says nothing of warnings.
        trouble, warning = target["error"], target.get("warning")
        well = f"{target['health']}, but {warning}" if warning else target["health"]
        lines.append(f"target {target['name']}: " + (trouble["message"] if trouble else well))
    return lines
